"""A partition that keeps what went in, and what its journal is made of."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from streamapp.worker.journal.ledger import Ledger, step_of
from streamapp.worker.task.sources import SourceName
from streamapp.worker.task.task_config import TaskConfig
from tests.positions import at
from tests.topology.partition import PARTITION, Partition, Record
from topics.columns.records import RawRecords


class Log:
    """What was written to a source, read from a position on in pieces of some size.

    `tests/contract/test_stand_ins.py` holds it to what the real one does.
    """

    def __init__(self, records: list[RawRecords], position: int, piece: int) -> None:
        self._records = [
            (offset, raw, at)
            for raw in records
            for at, offset in enumerate(raw.offsets)
            if offset >= position
        ]
        self._piece = piece

    def up_to(self, position: int, unread: object = ()) -> Iterator[RawRecords]:
        due = [record for record in self._records if record[0] < position]
        self._records = self._records[len(due) :]
        for start in range(0, len(due), self._piece):
            part = due[start : start + self._piece]
            columns = [
                [getattr(raw, name)[at] for _, raw, at in part]
                for name in ("offsets", "timestamps", "keys", "values", "headers")
            ]
            yield RawRecords(part[0][1].topic, PARTITION, *columns)


class Logged(Partition):
    """Its logs can be read again, its ledger says what was done with them."""

    def __init__(self, given: TaskConfig, gaps: random.Random | None = None) -> None:
        """`gaps`: draws how many offsets a log lacks, before records and behind a run (markers)."""
        super().__init__(given)
        self._gaps = gaps
        self.logs: dict[SourceName, list[RawRecords]] = {"instances": [], "labels": [], "controls": []}
        self.ledger = Ledger(at(), 1, given.to_json())

    def feed(self, *records: Record) -> Any:
        effects = super().feed(*records)
        raw, source = self._last, records[0].source
        self.logs[source].append(raw)
        self.ledger.note(step_of(source, raw, self._offsets[source], effects))
        return effects

    def _raw(self, source: SourceName, records: Any) -> RawRecords:
        at, self._last = self._offsets[source], super()._raw(source, records)
        if self._gaps is not None:
            holes = [max(0, self._gaps.randrange(-3, 4)) for _ in range(len(records) + 1)]
            ends = list(itertools.accumulate(holes, lambda end, hole: end + hole + 1, initial=at - 1))
            self._last = replace(self._last, offsets=ends[1:-1])
            self._offsets[source] = ends[-1]
        return self._last

    def reader(self, piece: int) -> Callable[[SourceName, int], Log]:
        """Return what opens a log at a position, to be read in pieces of some size."""
        return lambda source, at: Log(self.logs[source], at, piece)
