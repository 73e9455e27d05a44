"""Columns: the attributes of a schema, and the values of each; immutable and shared.

Equal columns are one object. They are found by a hash that is updated when columns grow, and only new
attributes are checked: to add an attribute copies a few tuples and does not visit the attributes that exist.
"""

from __future__ import annotations

import itertools
import math
import threading
import weakref
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final, Literal

from core.errors import SchemaError
from core.schema import shared
from core.schema.names import NO_NAMES, Names

Kind = Literal["numeric", "nominal"]

ATTRIBUTE_BYTES: Final = 200
"""Bytes of an attribute object that only one model uses: a nominal attribute, whose values grow."""


@dataclass(frozen=True, slots=True)
class Attribute:
    """One column: ``numeric``, or ``nominal`` with its values in code order; ``open`` takes in new values.

    ``range`` is the expected interval of a numeric attribute's values: an observer may divide it evenly
    (core/observers/histogram.py). Values outside are allowed. ``cost`` is the price of a value that has to be
    bought. ``thresholds`` are those that a numeric attribute is compared with (core/learners/ufodt/ufodt.py).
    """

    name: str
    kind: Kind = "numeric"
    values: tuple[str, ...] = ()
    open: bool = False
    range: tuple[float, float] | None = None
    cost: float = 1.0
    thresholds: tuple[float, ...] = ()
    codes: Names = field(init=False, repr=False, compare=False, default=NO_NAMES)
    """The values, and the code of each."""

    def __post_init__(self) -> None:
        if self.kind not in ("numeric", "nominal"):
            msg = f"kind={self.kind!r} of attribute {self.name!r} must be 'numeric' or 'nominal'"
            raise SchemaError(msg)
        if self.kind == "numeric" and (self.values or self.open):
            msg = f"values={self.values!r} of the numeric attribute {self.name!r} must be empty"
            raise SchemaError(msg)
        if self.range is not None:
            low, high = self.range
            if self.kind != "numeric" or not -math.inf < low < high < math.inf:
                msg = (
                    f"range={self.range!r} of attribute {self.name!r} must be two finite numbers, the first "
                    "below the second, of a numeric attribute"
                )
                raise SchemaError(msg)
        if not 0.0 < self.cost < math.inf:
            msg = (
                f"cost={self.cost!r} of attribute {self.name!r} must be a number above 0; send a feature "
                "that costs nothing with the record"
            )
            raise SchemaError(msg)
        if self.thresholds and not (
            self.kind == "numeric"
            and all(math.isfinite(threshold) for threshold in self.thresholds)
            and all(low < high for low, high in itertools.pairwise(self.thresholds))
        ):
            msg = (
                f"thresholds={self.thresholds!r} of attribute {self.name!r} must be finite numbers in "
                "ascending order, of a numeric attribute"
            )
            raise SchemaError(msg)
        if self.values:
            try:
                self._take(Names.of(self.values))
            except ValueError as error:
                msg = f"values of attribute {self.name!r} must differ from each other: {error}"
                raise SchemaError(msg) from None

    def __hash__(self) -> int:
        """Hash without visiting the values: equal ``Names`` are one object."""
        return hash((self.name, self.kind, self.codes, self.open, self.range, self.cost, self.thresholds))

    def with_values(self, values: Iterable[str]) -> Attribute:
        """Return the attribute with these values added, all of which must be new."""
        grown = Attribute(self.name, self.kind, (), self.open, self.range, self.cost)
        grown._take(self.codes.with_more(values))
        return grown

    def _take(self, codes: Names) -> None:
        object.__setattr__(self, "codes", codes)
        object.__setattr__(self, "values", codes.texts)


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Columns:
    """The attributes of a schema in column order; schemas that differ only in classes share them.

    Equal columns are one object, made by ``Columns.of``; ``uid`` stands for it in arrays.
    """

    attributes: tuple[Attribute, ...]
    declared_values: tuple[int, ...]
    """How many values each attribute had when the schema was made."""
    open: bool
    """Whether new attributes are taken in until the first split."""
    uid: int
    name_codes: Names
    """The attributes' names, and the column of each."""
    value_bytes: int
    """Bytes of the values."""
    content_bytes: int
    """Bytes of the names and values, the same on every machine; counts for a model's ``max_bytes``."""
    size: int
    """Bytes of this object without the values, as the tally of the process counts them."""
    nominal: int
    """How many attributes are nominal."""
    _key: _ColumnsKey
    """The key under which the columns are stored."""

    _making: ClassVar[threading.RLock] = threading.RLock()
    _tally: ClassVar[shared.Tally] = shared.TALLY
    _known: ClassVar[weakref.WeakValueDictionary[_ColumnsKey, Columns]] = weakref.WeakValueDictionary()
    _uids: ClassVar[itertools.count[int]] = itertools.count()

    @classmethod
    def of(
        cls, attributes: tuple[Attribute, ...], declared_values: tuple[int, ...], is_open: bool
    ) -> Columns:
        """Return the columns with these attributes; SchemaError if they contradict each other."""
        return cls._of(_ColumnsKey(attributes, declared_values, is_open, _hash_of(attributes)), None)

    @classmethod
    def _of(cls, key: _ColumnsKey, before: Columns | None) -> Columns:
        """Return the columns of a key; `before`: the columns from which they have grown, else None."""
        columns = cls._known.get(key)
        if columns is None:
            names, values, nominal = _examined(key, before)
            content = values + names.content_bytes
            size = shared.INTERNED + 16 * len(key.attributes) + ATTRIBUTE_BYTES * nominal
            with cls._making:  # a partition may be restored in another thread
                columns = cls._known.get(key)
                if columns is None:
                    columns = cls._known[key] = cls(
                        key.attributes,
                        key.declared_values,
                        key.open,
                        next(cls._uids),
                        names,
                        values,
                        content,
                        size,
                        nominal,
                        key,
                    )
        return columns

    def __post_init__(self) -> None:
        """Add the size to the tally; attributes count once for each Columns that holds them."""
        self._tally.hold(self.size)

    def __del__(self) -> None:
        """Subtract the size from the tally: the last schema that used the columns is freed."""
        self._tally.give_up(self.size)

    def value_code(self, attribute: int, value: str) -> int:
        """Return the code of a value of a nominal attribute, -1 if unknown."""
        return self.attributes[attribute].codes.code(value)

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes' names in column order."""
        return self.name_codes.texts

    def with_values(self, values: Mapping[int, Iterable[str]]) -> Columns:
        """Return the columns with new values added, by attribute."""
        attributes, hashed = list(self.attributes), self._key.hash
        for column, more in values.items():
            before = attributes[column]
            attributes[column] = after = before.with_values(more)
            hashed += hash((column, after)) - hash((column, before))
        return self._of(_ColumnsKey(tuple(attributes), self.declared_values, self.open, hashed), self)

    def with_attributes(self, more: Sequence[Attribute]) -> Columns:
        """Return the columns with these attributes at the end."""
        declared = (*self.declared_values, *(len(a.values) for a in more))
        hashed = self._key.hash + _hash_of(more, len(self.attributes))
        return self._of(_ColumnsKey((*self.attributes, *more), declared, self.open, hashed), self)


class _ColumnsKey:
    """Key of stored columns; its hash is updated when they grow, not computed from all attributes again."""

    __slots__ = ("attributes", "declared_values", "hash", "open")

    def __init__(
        self, attributes: tuple[Attribute, ...], declared_values: tuple[int, ...], is_open: bool, hashed: int
    ) -> None:
        self.attributes = attributes
        self.declared_values = declared_values
        self.open = is_open
        self.hash = hashed

    def __hash__(self) -> int:
        return hash(self.hash)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _ColumnsKey)
            and self.hash == other.hash
            and self.attributes == other.attributes
            and self.declared_values == other.declared_values
            and self.open == other.open
        )


def _hash_of(attributes: Sequence[Attribute], first: int = 0) -> int:
    """Return the sum of the hashes of attributes with their columns; first: the column of attribute 0."""
    return sum(map(hash, enumerate(attributes, first)))


def _examined(key: _ColumnsKey, before: Columns | None) -> tuple[Names, int, int]:
    """Return the names, the bytes of the values and the number of nominal attributes of new columns.

    Only attributes that are not in `before` are checked. Raise SchemaError if attributes contradict each
    other.
    """
    attributes, first = key.attributes, 0
    names, values, nominal = NO_NAMES, 0, 0
    if before is not None and len(before.attributes) < len(attributes):
        first = len(before.attributes)
        names, values, nominal = before.name_codes, before.value_bytes, before.nominal
    elif before is not None:
        return before.name_codes, sum(a.codes.content_bytes for a in attributes), before.nominal
    more = attributes[first:]
    try:
        names = names.with_more(a.name for a in more)
    except ValueError:
        names = NO_NAMES
    _check_attributes(attributes, key.declared_values, first, distinct=len(names) == len(attributes))
    values += sum(a.codes.content_bytes for a in more)
    return names, values, nominal + sum(a.kind == "nominal" for a in more)


def _check_attributes(
    attributes: Sequence[Attribute], declared_values: Sequence[int], first: int, *, distinct: bool
) -> None:
    """Refuse attributes that no model could learn from.

    first: attributes before it were checked earlier; distinct: the names are known to be distinct.
    """
    if not attributes:
        msg = "attributes=() must hold at least one attribute"
        raise SchemaError(msg)
    if not distinct:
        names = [a.name for a in attributes]
        twice = sorted(name for name, times in Counter(names).items() if times > 1)
        msg = f"attributes={', '.join(twice)} must have names that differ from each other"
        raise SchemaError(msg)
    more = zip(declared_values[first:], attributes[first:], strict=False)
    if len(declared_values) != len(attributes) or any(not 0 <= d <= len(a.values) for d, a in more):
        sizes = [len(a.values) for a in attributes]
        msg = f"declared_values={declared_values} must be one count per attribute, at most {sizes}"
        raise SchemaError(msg)
