"""Columns: the attributes of a schema, and the values of each; immutable and shared.

Equal columns are one object. They are found again by a hash that is carried on when columns grow, and what
was examined before is not examined again: to add an attribute costs copies of a few tuples, no look at each
of the attributes that are there.
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
"""Bytes of an attribute that is not that of all other models: of a nominal one, whose values grow."""


@dataclass(frozen=True, slots=True)
class Attribute:
    """One column: ``numeric``, or ``nominal`` with its values in code order; ``open`` takes in new values.

    ``range`` says between which values those of a numeric one lie, as far as one knows: an observer may cut
    it evenly (core/observers/histogram.py). Nobody is held to it. ``cost`` is what a value costs that has to
    be bought, ``thresholds`` are those that a numeric one is compared with (core/learners/ufodt/ufodt.py).
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
            and all(math.isfinite(each) for each in self.thresholds)
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
        """Hash without looking at the values, of which equal ones are one object."""
        return hash((self.name, self.kind, self.codes, self.open, self.range, self.cost, self.thresholds))

    def with_values(self, values: Iterable[str]) -> Attribute:
        """Return the attribute that knows these values too, all of them new to it."""
        grown = Attribute(self.name, self.kind, (), self.open, self.range, self.cost)
        grown._take(self.codes.with_more(values))
        return grown

    def _take(self, codes: Names) -> None:
        object.__setattr__(self, "codes", codes)
        object.__setattr__(self, "values", codes.texts)


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Columns:
    """The attributes of a schema in column order: what schemas share that differ in classes alone.

    Equal ones are one object, made by ``Columns.of``; ``uid`` stands for it in arrays.
    """

    attributes: tuple[Attribute, ...]
    declared_values: tuple[int, ...]
    """How many of each attribute's values the schema began with."""
    open: bool
    """Whether new attributes are taken in until the first split."""
    uid: int
    name_codes: Names
    """The attributes' names, and the column of each."""
    value_bytes: int
    """What the values take,"""
    content_bytes: int
    """and the names and values, the same on every machine; for a model's ``max_bytes``."""
    size: int
    """What they take beside the values, as it is counted for the process."""
    nominal: int
    """How many attributes are nominal."""
    _key: _ColumnsKey
    """What they are found again by."""

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
        """Return the columns of a key; `before`: columns that they have grown from, else None."""
        found = cls._known.get(key)
        if found is None:
            names, values, nominal = _examined(key, before)
            content = values + names.content_bytes
            size = shared.INTERNED + 16 * len(key.attributes) + ATTRIBUTE_BYTES * nominal
            with cls._making:  # a partition may be restored in a thread of its own
                found = cls._known.get(key)
                if found is None:
                    found = cls._known[key] = cls(
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
        return found

    def __post_init__(self) -> None:
        """Count what it takes; an attribute is counted by everyone who has it."""
        self._tally.hold(self.size)

    def __del__(self) -> None:
        """Count the columns as given up: no schema has them any more."""
        self._tally.give_up(self.size)

    def value_code(self, attribute: int, value: str) -> int:
        """Return the code of a value of a nominal attribute, -1 if unknown."""
        return self.attributes[attribute].codes.code(value)

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes' names in column order."""
        return self.name_codes.texts

    def with_values(self, values: Mapping[int, Iterable[str]]) -> Columns:
        """Return the columns that know these values too, by attribute."""
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
    """What columns are found again by; its hash is carried on when they grow, not made of all of them."""

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
    """Return the sum of the hashes of attributes and their columns; first: the column of attribute 0."""
    return sum(map(hash, enumerate(attributes, first)))


def _examined(key: _ColumnsKey, before: Columns | None) -> tuple[Names, int, int]:
    """Return the names, the bytes of the values and the number of nominal attributes of new columns.

    What they have grown from was examined before. Raise SchemaError if they contradict each other.
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
    """Refuse what no model could learn from; first: those before were looked at; distinct: no two names are
    equal."""
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
