"""Dimensions: the counts and sizes of a schema that compiled code depends on, without its names."""

from __future__ import annotations

import operator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from core.schema.schema import Schema

MIN_ROOM = 4
"""Initial room for the values of an open attribute; it doubles."""


@dataclass(frozen=True, eq=False)
class Dimensions:
    """The counts and positions of a schema; schemas that differ only in names have equal dimensions."""

    classes: int
    numeric: tuple[int, ...]
    """Columns of the numeric attributes."""
    ranges: tuple[tuple[float, float] | None, ...]
    """Declared range of each numeric attribute's values; None: not declared."""
    thresholds: tuple[tuple[float, ...], ...]
    """Declared thresholds of each numeric attribute."""
    nominal: tuple[int, ...]
    """Columns of the nominal attributes."""
    rooms: tuple[int, ...]
    """Number of values that each nominal attribute has room for."""
    open: bool
    """Whether any nominal attribute takes in new values."""
    costs: tuple[float, ...]
    """Cost of a value of each column."""

    @cached_property
    def _key(self) -> tuple[object, ...]:
        """All fields as a tuple, for comparisons."""
        return tuple(getattr(self, field.name) for field in fields(self))

    @cached_property
    def _hash(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Dimensions) and self._hash == other._hash and self._key == other._key

    def __hash__(self) -> int:
        """Return the hash of all fields, computed once: plans are looked up by it several times."""
        return self._hash

    @property
    def attributes(self) -> int:
        return len(self.numeric) + len(self.nominal)

    @cached_property
    def values(self) -> int:
        """The room for values of all nominal attributes: the length of the value axis."""
        return sum(self.rooms)

    @property
    def halves(self) -> bool:
        """Whether all attributes are nominal, with room for two values each."""
        return not self.numeric and bool(self.nominal) and all(room == 2 for room in self.rooms)

    @cached_property
    def value_places(self) -> dict[int, tuple[int, int]]:
        """By column of a nominal attribute: its first position on the value axis and its room there."""
        firsts = accumulate(self.rooms, initial=0)
        places = zip(self.nominal, firsts, self.rooms, strict=False)
        return {column: (first, room) for column, first, room in places}


def dimensions(schema: Schema) -> Dimensions:
    """Compute the dimensions of a schema."""
    return _appended(schema, 0, Dimensions(schema.n_classes, (), (), (), (), (), False, ()))


def grown_dimensions(schema: Schema, before: Schema, old: Dimensions) -> Dimensions:
    """Return the dimensions of a schema that has grown from ``before``, whose dimensions are ``old``.

    If no attribute has new values, only the new attributes are visited.
    """
    n_before = len(before.attributes)
    if all(map(operator.is_, schema.attributes, before.attributes)):
        return _appended(schema, n_before, replace(old, classes=schema.n_classes))
    return dimensions(schema)


def _appended(schema: Schema, first: int, old: Dimensions) -> Dimensions:
    """Return dimensions extended by the attributes of a schema from `first` on."""
    columns = list(enumerate(schema.attributes[first:], first))
    if not columns:
        return old
    nominal = [(i, a) for i, a in columns if a.kind == "nominal"]
    numeric = [(i, a) for i, a in columns if a.kind == "numeric"]
    return Dimensions(
        old.classes,
        (*old.numeric, *(i for i, _ in numeric)),
        (*old.ranges, *(a.range for _, a in numeric)),
        (*old.thresholds, *(a.thresholds for _, a in numeric)),
        (*old.nominal, *(i for i, _ in nominal)),
        (*old.rooms, *(_room(len(a.values), a.open) for _, a in nominal)),
        old.open or any(a.open for _, a in nominal),
        (*old.costs, *(a.cost for _, a in columns)),
    )


def values_carried(old: Dimensions, new: Dimensions) -> npt.NDArray[np.int64]:
    """Return, for each position on the value axis of a schema, its position on the axis of a grown schema."""
    rooms = np.array(old.rooms, dtype=np.int64)
    firsts = np.array([new.value_places[column][0] for column in old.nominal], dtype=np.int64)
    moved = firsts - (np.cumsum(rooms) - rooms)
    return np.arange(old.values) + np.repeat(moved, rooms)


def _room(values: int, is_open: bool) -> int:
    """Return the room for an attribute's values: exact, or for an open attribute the next power of two."""
    if not is_open:
        return values
    return max(MIN_ROOM, 1 << (values - 1).bit_length()) if values else MIN_ROOM
