"""Journal tail: the newest snapshot or reset in a journal, and the records after it.

It is looked for from the end, in windows that grow, because only what follows the newest snapshot matters.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Protocol

from core.state_version import READABLE
from streamapp.errors import StreamappError
from streamapp.worker.journal.entry import Entry, Manifest, Record, Reset, Skip, decode
from streamapp.worker.restore.errors import of_other_release
from streamapp.worker.task.sources import Positions
from topics.columns.records import RawRecords

WINDOW: Final = 2000
"""Offsets looked at first; a commit takes two of them (its marker is the second)."""


class Log(Protocol):
    """A journal that can be read from any position to its end."""

    def range(self) -> tuple[int, int]:
        """Return the first offset and the end."""

    def open(self, topic: str, partition: int, position: int | None = None) -> None:
        """Go to a position."""

    def to_end(self) -> Iterator[RawRecords]:
        """Yield the records from there on."""


@dataclass(frozen=True, slots=True)
class Tail:
    """Records of a journal from some offset to its end."""

    first: int  # offset of the log
    start: int  # offset of the tail
    bases: tuple[Manifest | Reset, ...]  # newest first; nothing before a reset
    records: tuple[tuple[int, Record], ...]  # with their offsets

    @property
    def whole(self) -> bool:
        """Whether it begins where the log does."""
        return self.start == self.first

    @property
    def end(self) -> Positions | None:
        """Positions of the partition at its end; None: nothing was processed."""
        for _, record in reversed(self.records):
            if isinstance(record, Entry | Reset):  # a snapshot belongs to an earlier point
                return record.after if isinstance(record, Entry) else record.positions
        return None

    @property
    def skips(self) -> tuple[Skip, ...]:
        """The skips in the tail: all that lie ahead, because each snapshot is followed by them."""
        return tuple(record for _, record in self.records if isinstance(record, Skip))

    @property
    def incarnation(self) -> int:
        """The highest one."""
        return max((record.incarnation for _, record in self.records), default=0)


class TailReader:
    """Reads the journal of one partition."""

    def __init__(self, log: Log, topic: str, partition: int) -> None:
        self._log = log
        self._topic = topic
        self._partition = partition
        self._first, self._end = log.range()

    def newest(self) -> Tail:
        """Return as much of the end as contains a snapshot or reset, or everything."""
        window = WINDOW
        while True:
            tail = self.since(self._end - window)
            if tail.bases or tail.whole:
                return tail
            window *= 8

    def since(self, position: int) -> Tail:
        """Return the records from an offset on."""
        start = max(self._first, position)
        start, records = self._read(start)
        bases: list[Manifest | Reset] = []
        for _, record in reversed(records):
            if isinstance(record, Manifest | Reset):
                bases.append(record)
            if isinstance(record, Reset):
                break
        return Tail(self._first, start, tuple(bases), records)

    def _read(self, start: int) -> tuple[int, tuple[tuple[int, Record], ...]]:
        """Return the records from an offset on, and that offset; raise for records of another release.

        If a reset gave up the unreadable records, the returned records begin with the reset.
        """
        self._log.open(self._topic, self._partition, start)
        records: list[tuple[int, Record]] = []
        foreign: StreamappError | None = None
        for raw in self._log.to_end():
            for offset, value in zip(raw.offsets, raw.values, strict=True):
                try:
                    record = self._decode(value or b"")
                except StreamappError as error:
                    foreign = foreign or error
                    continue
                if foreign is not None and isinstance(record, Reset):
                    start, records, foreign = offset, [], None
                records.append((offset, record))
        if foreign is not None:
            raise foreign
        return start, tuple(records)

    def _decode(self, value: bytes) -> Record:
        record = decode(value, self._topic, self._partition)
        if isinstance(record, Entry | Manifest) and record.state_version not in READABLE:
            reason = (
                f"its journal has state version {record.state_version}, this release reads "
                f"{', '.join(map(str, READABLE))}"
            )
            raise of_other_release(self._partition, reason)
        return record


def entries_behind(tail: Tail, base: Manifest | Reset | None) -> list[Entry]:
    """Return the entries after a base (None: after the beginning), in order.

    Entries after a snapshot's cut may precede its record in the journal, because processing continued while
    the snapshot was written.
    """
    if base is None:
        return [record for _, record in tail.records if isinstance(record, Entry)]
    at = next(number for number, (_, record) in enumerate(tail.records) if record == base)
    behind = [record for _, record in tail.records[at:] if isinstance(record, Entry)]
    if isinstance(base, Reset):
        return behind
    entries = [r for offset, r in tail.records if isinstance(r, Entry) and offset >= base.start]
    for number, entry in enumerate(entries):
        if entry.before == base.positions:
            return entries[number:]
    return behind
