"""Records: words of a buffer with fields by name, the same in compiled code and in plain Python.

    class Node(Record):
        kind: int = word("one of LEAF … ABSENT", low=LEAF, high=ABSENT)
        value: float = word("threshold or category")
        masses: Any = words_after(float, "class masses [class]")

    node = Node(ints, floats, start)
    node.value += 1.0
    node.masses[label] += weight

A record is a value: ``ints`` and ``floats``, two views of the same words, and ``start``, the position of its
first word (in compiled code one pointer and ``start``, so that both views must be of one buffer). One
declaration gives the offsets (in the order of the fields), the numba type, the class for plain Python, the
documentation of the words and, with ranges, the check of foreign words. In compiled code a field is one load
or store at a constant offset. Methods and properties of a record are inner kernels.
"""

from __future__ import annotations

import functools
import inspect
from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np

from core.kernels.native import record_types

KINDS = ("int", "float", int, float)
"""Annotations of fields."""

Limit: TypeAlias = int | float | str | None
"""A bound of a word: a number, or the name of another field of the record; None: no bound."""


@dataclass(slots=True, eq=False)
class Word:
    """One word of a record."""

    meaning: str
    low: Limit
    high: Limit
    name: str = ""
    offset: int = 0
    is_float: bool = False

    def accessor(self) -> property:
        """Return a property that reads and writes the word in plain Python."""
        place = f"record.{'floats' if self.is_float else 'ints'}[record.start + {self.offset}]"
        scope: dict[str, Any] = {}
        exec(f"def read(record): return {place}\ndef write(record, value): {place} = value", scope)  # noqa: S102
        return property(scope["read"], scope["write"], doc=self.meaning)


@dataclass(slots=True, eq=False)
class WordsAfter:
    """The words after the fields of a record, as integers or floats: a descriptor for plain Python."""

    is_float: bool
    meaning: str
    offset: int = 0

    def __get__(self, record: Any, owner: type | None = None) -> Any:
        if record is None:
            return self
        return (record.floats if self.is_float else record.ints)[record.start + self.offset :]


def word(meaning: str, *, low: Limit = None, high: Limit = None) -> Any:
    """Declare the next word of a record; its annotation, int or float, is its type.

    low, high: the legal range of the word in a foreign buffer, both included.
    """
    return Word(meaning, low, high)


def words_after(kind: type, meaning: str) -> Any:
    """Declare a name for the words after the fields, of the type ``kind``, int or float, and any number."""
    return WordsAfter(kind is float, meaning)


class Record:
    """Words of a buffer; subclasses declare fields."""

    __slots__ = ("floats", "ints", "start")

    FIELDS: ClassVar[dict[str, Word]] = {}
    """The fields by name, in the order of their offsets."""
    SIZE: ClassVar[int] = 0
    """Number of words of the fields."""
    is_named: ClassVar[bool] = True
    """Signatures may name the class."""
    is_constant: ClassVar[bool] = False
    """No kernel writes the words: what it has read from them it need not read again."""

    def __init__(self, ints: Any, floats: Any, start: Any) -> None:
        """Take the words as int64 and as float64, and the position of the record's first word."""
        self.ints = ints
        self.floats = floats
        self.start = start

    @classmethod
    def over(cls, array: Any) -> Self:
        """Return the record at the start of an array of words, int64 or float64, in Python."""
        return cls(array.view(np.int64), array.view(np.float64), 0)

    @classmethod
    def read(cls, ints: Any, start: int = 0) -> Self:
        """Return a copy of the fields as Python numbers, without the words after them.

        It is cheaper than the record itself if many fields are read.
        """
        words = ints[start : start + cls.SIZE]
        return cls(words.tolist(), words.view(np.float64).tolist(), 0)

    @property
    def address(self) -> int:
        """The address of the buffer, for kernels that get a record from Python."""
        return int(self.ints.ctypes.data)

    def __init_subclass__(cls) -> None:
        annotations = inspect.get_annotations(cls)
        declared = {name: value for name, value in vars(cls).items() if isinstance(value, Word)}
        for base in cls.__mro__[1:]:
            if vars(base).get("FIELDS"):
                msg = f"{cls.__qualname__} must not extend {base.__qualname__}, which has fields of its own"
                raise TypeError(msg)
        for name in declared:
            if hasattr(Record, name):
                msg = f"field {cls.__qualname__}.{name} must have another name: every record has {name!r}"
                raise TypeError(msg)
            if annotations[name] not in KINDS:
                msg = f"field {cls.__qualname__}.{name} must be an int or a float, not {annotations[name]}"
                raise TypeError(msg)
        for offset, (name, field) in enumerate(declared.items()):
            field.name, field.offset, field.is_float = name, offset, annotations[name] in ("float", float)
        for value in vars(cls).values():
            if isinstance(value, WordsAfter):
                value.offset = len(declared)
        cls.FIELDS = declared
        cls.SIZE = len(declared)
        fields = {
            name: (value.offset, value.is_float, isinstance(value, WordsAfter))
            for name, value in vars(cls).items()
            if isinstance(value, Word | WordsAfter)
        }
        record_types.declare(cls, fields, is_named=cls.is_named, is_constant=cls.is_constant)
        for name, field in declared.items():
            setattr(cls, name, field.accessor())


class Words(Record):
    """Words without names: in signatures, the record that each of several kernels has its own class for."""

    __slots__ = ()

    cells: Any = words_after(float, "all words, as floats")
    numbers: Any = words_after(int, "all words, as integers")


class ParameterRecord(Record):
    """The numeric parameters of a plug-in."""

    __slots__ = ()
    is_named = False
    is_constant = True


def offset(record: type[Record], name: str) -> int:
    """Return the offset of a field from the first word of its record."""
    return record.FIELDS[name].offset


@functools.lru_cache(maxsize=1024)
def row_type(record: type[Record], stride: int, first: int = 0, after: int = 0) -> np.dtype[Any]:
    """Return the numpy type of a row of ``stride`` words that holds a record from word ``first`` on.

    An array of this type has the fields of the record as columns, and the ``after`` words after them.
    """
    columns: dict[str, tuple[Any, int]] = {
        name: (np.float64 if field.is_float else np.int64, field.offset)
        for name, field in record.FIELDS.items()
    }
    for name, field in vars(record).items():
        if isinstance(field, WordsAfter) and after:
            columns[name] = ((np.float64 if field.is_float else np.int64, (after,)), field.offset)
    return np.dtype(
        {
            "names": list(columns),
            "formats": [form for form, _ in columns.values()],
            "offsets": [8 * (first + position) for _, position in columns.values()],
            "itemsize": 8 * stride,
        }
    )


class Rows:
    """Rows of an array of records: an attribute is the column of a field, an index selects rows.

    numpy's own ``recarray`` takes several times longer to make and to read.
    """

    __slots__ = ("array",)

    def __init__(self, array: Any) -> None:
        """Take an array of a ``row_type``, or one element of it."""
        object.__setattr__(self, "array", array)

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, chosen: Any) -> Rows:
        return Rows(self.array[chosen])

    def __setitem__(self, chosen: Any, other: Rows) -> None:
        self.array[chosen] = other.array

    def __getattr__(self, name: str) -> Any:
        try:
            return self.array[name]
        except ValueError as error:
            raise AttributeError(*error.args) from error

    def __setattr__(self, name: str, value: Any) -> None:
        self.array[name] = value


def rows(words: Any, row: np.dtype[Any]) -> Any:
    """Return words (int64, contiguous) as rows of a ``row_type``, with their columns as attributes."""
    return Rows(words.view(row))


def parameter_record(owner: type, names: tuple[str, ...]) -> type[Record]:
    """Return a record of float64 parameters with these names; ``owner``: the class that declares them."""
    fields: dict[str, Any] = {name: word(f"parameter {name}") for name in names}
    described = {
        "__annotations__": dict.fromkeys(names, "float"),
        "__module__": owner.__module__,
        "__qualname__": f"{owner.__qualname__}.record",
        "__slots__": (),
    }
    return type(f"{owner.__name__}Record", (ParameterRecord,), fields | described)


def name_tuple(kind: Any, *fields: str) -> None:
    """Let signatures name a class of named tuples; fields: the types of its fields in signatures."""
    record_types.declare_tuple(kind, fields)
