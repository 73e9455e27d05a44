"""Flaws: why a row is bad, as the text in its dead letter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from topics.columns.records import Ints32, Malformed
from topics.errors import Reason


class Flaw(NamedTuple):
    """Why a record or a row is bad."""

    reason: Reason
    detail: str


Flaws = dict[int, Flaw]  # row -> its first flaw

DETAIL_MAX_CHARACTERS = 300
NAME_MAX_CHARACTERS = 60

_KINDS = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", type(None): "null"}


def quote(name: str) -> str:
    """Return `name` in quotes, cut to a length that fits a message."""
    if len(name) > NAME_MAX_CHARACTERS:
        name = name[: NAME_MAX_CHARACTERS - 1] + "…"
    return repr(name)


def kind(cell: object) -> str:
    """Return JSON's name for the type of `cell`, with its article."""
    return _KINDS.get(type(cell), "a number")


def malformed(record: int, flaw: Flaw) -> Malformed:
    """Return the outcome of a record with this flaw."""
    detail = flaw.detail
    if len(detail) > DETAIL_MAX_CHARACTERS:
        detail = detail[: DETAIL_MAX_CHARACTERS - 1] + "…"
    return Malformed(record, flaw.reason, detail)


def outcomes(record: Ints32, flaws: Mapping[int, Flaw]) -> list[Malformed]:
    """Return one outcome per bad row; `record` maps a row to its record."""
    return [malformed(int(record[row]), flaw) for row, flaw in flaws.items()]


def add_flaw(flaws: Flaws, rows: Iterable[int], flaw: Flaw) -> None:
    """Give `flaw` to each of the rows that has no flaw yet: the first flaw is the one in the report."""
    for row in rows:
        flaws.setdefault(int(row), flaw)
