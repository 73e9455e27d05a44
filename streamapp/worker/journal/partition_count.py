"""Partition count: the number of partitions of each topic, noted in a header of each journal record.

Committed offsets hold it, too, but they expire while a group has no members. Readers of earlier releases take
no notice of headers, so the format of the records stays the same.
"""

from __future__ import annotations

from typing import Final

from topics.columns.headers import Headers

HEADER: Final = "grove-partitions"


def count_headers(partitions: int | None) -> Headers:
    """Return the headers of a journal record; `partitions`: None if the number is not known."""
    return [] if partitions is None else [(HEADER, b"%d" % partitions)]


def count_in(headers: Headers) -> int | None:
    """Return the number in the headers of a journal record; None: it was not noted."""
    for name, value in headers:
        if name == HEADER and value is not None and value.isdigit():
            return int(value)
    return None
