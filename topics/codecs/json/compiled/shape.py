"""Shape: the text between the values of a JSON record, which the records of one producer share."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import orjson

from topics.codecs.lengths import name_flaw
from topics.codecs.limits import Limits

IGNORED, FEATURE, ID, LABEL, WEIGHT, ANNOTATOR, DECLINED = range(7)
"""Roles of a value: a member that is ignored, a cell of the features, or a member of that name."""
TEXTS: Final = (ID, LABEL, ANNOTATOR)
"""Roles for which a whole number may replace a string, and stands for its digits."""
MAX_SLOTS: Final = 4096
"""Values of a record with a shape; records with more are left to the codec."""

_TOKEN: Final = re.compile(rb'\s*("(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+)')


@dataclass(frozen=True, slots=True)
class Members:
    """The members that are read from the records of a topic."""

    roles: Mapping[str, int]
    """Roles by name of the member; features have no entry."""
    required: frozenset[int]
    """Roles without which a record is left to the codec."""


_BOTH: Final = {"id": ID, "label": LABEL, "weight": WEIGHT}
INSTANCES: Final = Members(_BOTH, frozenset({FEATURE}))
LABELS: Final = Members({**_BOTH, "annotator": ANNOTATOR, "declined": DECLINED}, frozenset({ID, LABEL}))


@dataclass(frozen=True, slots=True)
class Shape:
    """A shape: n values, which alternate with n + 1 texts."""

    texts: tuple[bytes, ...]
    roles: tuple[int, ...]
    """n roles: IGNORED, FEATURE, ID and so on."""
    names: tuple[str, ...] | None
    """Names of the features; None if they are given by position."""
    first_feature: int
    """The first value of the features, which are consecutive."""

    @property
    def n_features(self) -> int:
        return self.roles.count(FEATURE)

    def value_of(self, role: int) -> int:
        """Return the number of the value with a role, or -1."""
        return self.roles.index(role) if role in self.roles else -1


def shape_of(record: bytes, members: Members, limits: Limits) -> Shape | None:
    """Return the shape of a record that the codec has read, or None.

    A record with a shape has no nested members except the features, no member twice, and only names that
    every record may have.
    """
    found = _Values(record, members.roles)
    if not found.read() or len(found.roles) > MAX_SLOTS or not members.required <= set(found.roles):
        return None
    names = found.feature_names
    if names is not None and ("" in names or name_flaw(names, limits.text_max_bytes, limits.features_max)):
        return None
    texts = (*(record[start:end] for start, end in found.between()), record[found.end_of_last :])
    roles = tuple(found.roles)
    first = roles.index(FEATURE) if FEATURE in roles else 0
    return Shape(texts, roles, None if names is None else tuple(names), first)


class _Values:
    """The places of a record's values, found by a walk over its tokens."""

    def __init__(self, record: bytes, roles: Mapping[str, int]) -> None:
        self._by_name = roles
        self._tokens = list(_TOKEN.finditer(record))
        self.roles: list[int] = []
        self.feature_names: list[str] | None = None
        self._spans: list[tuple[int, int]] = []

    @property
    def end_of_last(self) -> int:
        return self._spans[-1][1]

    def between(self) -> list[tuple[int, int]]:
        """Return the spans of the texts before each value."""
        ends = [0, *(end for _, end in self._spans)]
        return [(before, start) for before, (start, _) in zip(ends, self._spans, strict=False)]

    def read(self) -> bool:
        """Whether the record is an object of simple members and features."""
        if self._text(0) != b"{":
            return False
        place, seen = 1, set()
        while self._text(place) != b"}":
            name = orjson.loads(self._text(place))
            if name in seen:
                return False
            seen.add(name)
            place += 2  # the name and its colon
            if name == "features":
                place = self._features(place)
            else:
                place = self._value(place, self._by_name.get(name, IGNORED))
            if place < 0:
                return False
            if self._text(place) == b",":
                place += 1
        return place + 1 == len(self._tokens)

    def _features(self, place: int) -> int:
        """Return the place after the features that begin here, or -1 if they are not simple."""
        opening = self._text(place)
        if opening not in (b"{", b"["):
            return -1
        place += 1
        names: list[str] = []
        while self._text(place) not in (b"}", b"]"):
            if opening == b"{":
                names.append(orjson.loads(self._text(place)))
                place += 2
            place = self._value(place, FEATURE)
            if place < 0:
                return -1
            if self._text(place) == b",":
                place += 1
        if len(set(names)) < len(names):
            return -1
        self.feature_names = names if opening == b"{" else None
        return place + 1

    def _value(self, place: int, role: int) -> int:
        """Add a value that is neither object nor array; return the place after it, or -1."""
        if self._text(place) in (b"{", b"["):
            return -1
        self.roles.append(role)
        self._spans.append(self._tokens[place].span(1))
        return place + 1

    def _text(self, place: int) -> bytes:
        return self._tokens[place][1]
