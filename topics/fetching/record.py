"""Record: a record as it was read from a batch."""

from __future__ import annotations

from typing import NamedTuple

from topics.columns.headers import Headers


class Record(NamedTuple):
    """The needed parts of a record."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers
