"""Which number of partitions a journal was written with, by the headers of its newest records."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from streamapp.worker.journal.partition_count import HEADER, count_headers, count_in
from streamapp.worker.restore.noted_counts import noted_count
from topics.columns.records import Headers, RawRecords


class Written:
    """A journal whose records have these headers, each followed by the marker of its transaction."""

    def __init__(self, headers: list[Headers], first: int = 0) -> None:
        self.headers, self.first, self.at = headers, first, 0
        self.read = 0

    def range(self) -> tuple[int, int]:
        return self.first, self.first + 2 * len(self.headers)

    def open(self, topic: str, partition: int, position: int | None = None) -> None:
        self.at = self.first if position is None else position

    def to_end(self) -> Iterator[RawRecords]:
        for number, headers in enumerate(self.headers):
            offset = self.first + 2 * number
            if offset >= self.at:
                self.read += 1
                yield RawRecords("journal", 0, [offset], [0], [None], [b""], [headers])


TWO, FOUR, NONE = count_headers(2), count_headers(4), count_headers(None)


@pytest.mark.parametrize(
    ("headers", "count"),
    [
        ([], None),
        ([NONE] * 50, None),
        ([TWO], 2),
        ([TWO, FOUR], 4),
        ([TWO, FOUR, NONE], 4),
        ([TWO] + [NONE] * 500, 2),
    ],
    ids=["empty", "of an earlier release", "one", "grown", "restored", "long before"],
)
@pytest.mark.parametrize("first", [0, 1000])
def test_the_newest_count_holds(headers: list[Headers], count: int | None, first: int) -> None:
    assert noted_count(Written(headers, first), "journal", 0) == count


def test_a_long_journal_is_not_read_from_its_beginning() -> None:
    journal = Written([TWO] * 100_000)
    assert noted_count(journal, "journal", 0) == 2
    assert journal.read < 10


@pytest.mark.parametrize("value", [None, b"", b"many", b"-1", "²".encode()])
def test_a_header_that_is_no_number_is_no_count(value: bytes | None) -> None:
    assert count_in([(HEADER, value)]) is None
