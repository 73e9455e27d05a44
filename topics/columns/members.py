"""Members: optional parts of an answer or request, each declared once, with the column that holds it.

A codec writes and reads the members that it finds declared; none of them names one.

    @dataclass(frozen=True)
    class Predictions:
        ids: Sequence[str]
        explanation: list[str | None] | None = field(default=None, metadata=member("explanation", str))
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final, Literal

_MEMBER: Final = "member"

Block = Literal["string", "strings", "shares"]
"""A text; a list of texts; a number for each class."""


def _same(cell: Any) -> Any:
    return cell


def _nothing() -> None:
    return None


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a JSON object that a row may lack, and its forms in other formats."""

    name: str  # in JSON and in blocks
    type: type  # of its value in JSON
    to_json: Callable[[Any], Any] = _same  # None: the row does not have the member
    from_json: Callable[[Any], Any] = _same  # raises LookupError, TypeError or ValueError for a bad value
    absent: Callable[[], Any] = _nothing  # makes the cell of a row that lacks the member
    block: Block | None = None  # form of its Arrow column; None: blocks leave it out
    packed: bool = False  # the packed layout has a place for it
    compiled: bool = False  # kernels write it; only with ``packed``


def member(
    name: str,
    type_: type,
    to_json: Callable[[Any], Any] = _same,
    from_json: Callable[[Any], Any] = _same,
    *,
    absent: Callable[[], Any] = _nothing,
    block: Block | None = None,
    packed: bool = False,
    compiled: bool = False,
) -> Mapping[str, Member]:
    """Return metadata that declare a field of a dataclass as a member; the parameters are those of `Member`.

    The column is None if no row has the member, else a list with None for the rows that lack it.
    """
    return {_MEMBER: Member(name, type_, to_json, from_json, absent, block, packed, compiled)}


@lru_cache
def members(kind: type) -> Mapping[str, Member]:
    """Return the members of a dataclass by column, in the order in which they are written."""
    return MappingProxyType(
        {
            column.name: column.metadata[_MEMBER]
            for column in dataclasses.fields(kind)
            if _MEMBER in column.metadata
        }
    )


def given(columns: Any) -> Iterator[tuple[Member, list[Any]]]:
    """Yield the members that some rows have, with their columns."""
    kind: type = type(columns)
    for column, declared in members(kind).items():
        cells = getattr(columns, column)
        if cells is not None:
            yield declared, cells
