"""The tail of a journal: from the newest snapshot or reset on, however long the journal is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from core.state_version import STATE_VERSION
from streamapp.worker.journal.entry import Entry, Manifest, Record, Reset, encode
from streamapp.worker.restore.errors import RestoreError
from streamapp.worker.restore.tail import WINDOW, TailReader, entries_behind
from tests.positions import at
from topics.columns.records import RawRecords


class Journal:
    """A log in memory; each commit takes two offsets, as in a transaction.

    `tests/contract/test_stand_ins.py` holds it to what the real one does.
    """

    def __init__(self) -> None:
        self.first = 0
        self.records: list[tuple[int, Record]] = []
        self.read = 0
        self._at = 0

    @property
    def end(self) -> int:
        return self.records[-1][0] + 2 if self.records else self.first

    def add(self, record: Record) -> int:
        offset = self.end
        self.records.append((offset, record))
        return offset

    def commits(self, n: int) -> None:
        first = next((r.after["instances"] for _, r in reversed(self.records) if isinstance(r, Entry)), 0)
        for n_before in range(first, first + n):
            before, after = at(instances=n_before), at(instances=n_before + 1)
            self.add(Entry(1, STATE_VERSION, "", before, after, ()))

    def range(self) -> tuple[int, int]:
        return self.first, self.end

    def open(self, topic: str, partition: int, position: int | None = None) -> None:
        if position is not None and position < self.first:
            reason = f"topic {topic} begins at offset {self.first}, but records from {position} on are needed"
            raise RestoreError(partition, reason)
        self._at = position or 0

    def to_end(self) -> Iterator[RawRecords]:
        here = [(offset, encode(record)) for offset, record in self.records if offset >= self._at]
        self.read += len(here)
        if here:
            offsets, values = zip(*here, strict=True)
            n = len(here)
            yield RawRecords("j", 0, list(offsets), [0] * n, [None] * n, list(values), [()] * n)

    def reader(self) -> TailReader:
        return TailReader(self, "j", 0)


def manifest(position: int, start: int, sequence: int = 1) -> Manifest:
    return Manifest(1, sequence, STATE_VERSION, "", at(instances=position), start, "{}", 0, 0, 1, 0, 0)


def test_a_journal_without_snapshots_is_read_from_its_beginning() -> None:
    journal = Journal()
    journal.commits(3000)
    tail = journal.reader().newest()
    assert (tail.whole, tail.bases) == (True, ())
    assert len(entries_behind(tail, None)) == 3000


def test_only_the_end_is_read_where_a_snapshot_is_near() -> None:
    journal = Journal()
    journal.commits(5000)
    start = journal.end
    journal.commits(10)
    base = manifest(5005, start)
    journal.add(base)
    journal.commits(5)
    tail = journal.reader().newest()
    assert tail.bases == (base,)
    assert journal.read <= WINDOW / 2
    behind = entries_behind(tail, base)
    assert [entry.before["instances"] for entry in behind] == list(range(5005, 5015)), (
        "also what is before its record"
    )


def test_a_snapshot_far_from_the_end_is_found() -> None:
    journal = Journal()
    journal.commits(10)
    base = manifest(10, 0)
    journal.add(base)
    journal.commits(WINDOW)
    tail = journal.reader().newest()
    assert tail.bases == (base,)
    assert [entry.before["instances"] for entry in entries_behind(tail, base)] == list(range(10, WINDOW + 10))


def test_nothing_before_a_reset_counts() -> None:
    journal = Journal()
    journal.commits(10)
    journal.add(manifest(10, 0))
    reset = Reset(1, at(instances=10))
    journal.add(reset)
    journal.commits(3)
    tail = journal.reader().newest()
    assert tail.bases == (reset,)
    assert [entry.before["instances"] for entry in entries_behind(tail, reset)] == [10, 11, 12]


def test_newest_first() -> None:
    journal = Journal()
    journal.commits(10)
    old, new = manifest(5, 0), manifest(9, 4, sequence=2)
    journal.add(old)
    journal.add(new)
    assert journal.reader().newest().bases == (new, old)


def test_a_snapshot_with_nothing_behind_it() -> None:
    journal = Journal()
    journal.commits(10)
    base = manifest(10, 0)
    journal.add(base)
    assert entries_behind(journal.reader().newest(), base) == []


def test_another_state_version_is_refused() -> None:
    journal = Journal()
    journal.add(Entry(1, STATE_VERSION + 1, "", at(), at(instances=1), ()))
    with pytest.raises(RestoreError, match=f"state version {STATE_VERSION + 1}, this release reads"):
        journal.reader().newest()


def test_what_another_release_wrote_before_a_reset_is_in_nobodys_way() -> None:
    journal = Journal()
    journal.commits(3)
    journal.add(Entry(1, STATE_VERSION + 1, "", at(instances=3), at(instances=4), ()))
    reset = Reset(1, at(instances=4))
    offset = journal.add(reset)
    journal.add(Entry(2, STATE_VERSION, "", at(instances=4), at(instances=5), ()))
    tail = journal.reader().newest()
    assert (tail.bases, tail.end, tail.start, tail.whole) == ((reset,), at(instances=5), offset, False)
    assert len(entries_behind(tail, reset)) == 1
    journal.add(Entry(2, STATE_VERSION + 1, "", at(instances=5), at(instances=6), ()))
    with pytest.raises(RestoreError, match="state version"):
        journal.reader().newest()
