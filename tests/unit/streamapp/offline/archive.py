"""A partition that keeps what Kafka would: logs, a journal that may be trimmed, parts of snapshots."""

from __future__ import annotations

from typing import Any

from core.snapshot import STATE_VERSION
from streamapp.journal.entry import Manifest, Positions, Reset
from streamapp.journal.ledger import Ledger, step_of
from streamapp.offline.travel import Travel
from streamapp.restore.replay import Replay
from streamapp.snapshots.chunks import UNIT, Copy, pack
from streamapp.snapshots.index import Index
from streamapp.task.config import TaskConfig
from streamapp.task.task import Source, Task
from tests.property.test_replay import Log
from tests.topology.partition import PARTITION, Partition, Record
from tests.unit.streamapp.test_tail import Journal
from topics.records import RawRecords


class Archive(Partition):
    """What went in is journalled; `digests` keeps the state before each instance."""

    def __init__(self, given: TaskConfig) -> None:
        super().__init__(given)
        self.logs: dict[Source, list[RawRecords]] = {"instances": [], "labels": [], "controls": []}
        self.journal = Journal()
        self.ledger = Ledger((0, 0, 0), 1, given.to_json())
        self.chunks: dict[bytes, bytes] = {}
        self.digests: list[bytes] = []
        self.index, self.sequence = Index(), 0

    def feed(self, *records: Record) -> Any:
        if records[0].source == "instances":
            self.digests.append(self.task.digest())
        effects = super().feed(*records)
        raw, source = self._last, records[0].source
        self.logs[source].append(raw)
        self.ledger.note(step_of(source, raw, raw.offsets[-1] + 1, effects))
        return effects

    def _raw(self, source: Source, records: Any) -> RawRecords:
        self._last = super()._raw(source, records)
        return self._last

    def commit(self) -> Positions:
        if not self.ledger.is_empty:
            for entry in self.ledger.cut():
                self.journal.add(entry)
        return tuple(self.ledger.positions)

    def snapshot(self) -> Manifest:
        """Write a snapshot of where the journal ends."""
        positions, start = self.commit(), self.journal.end
        self.sequence += 1
        cut, fresh = self.task.cut(), dict[bytes, Copy]()
        for unit in cut.units():
            name = unit.name.encode()
            fresh[name], items = pack(UNIT, name, 1, self.sequence, unit.data)
            self.chunks.update(items)
        self.index = self.index.after(fresh, [name.encode() for name in cut.removed])
        cut.done()
        copy, items = self.index.pack(1, self.sequence)
        self.chunks.update(items)
        units, size, config = len(self.index.copies), self.index.size, self.task.config.to_json()
        self.waiting = Manifest(
            1, self.sequence, STATE_VERSION, "", positions, start, config, units, size, *copy[2:]
        )
        return self.waiting

    def reset(self) -> None:
        """Begin with new models, as `grove models reset` has it."""
        self.journal.add(Reset(1, self.commit()))
        offsets = self.task.next
        self.task = Task(PARTITION, self.task.config)
        self.task.next = dict(offsets)
        self.ledger = Ledger(tuple(self.ledger.positions), 2, self.task.config.to_json())
        self.index = Index()

    def trim(self, before: int) -> None:
        """Delete the journal before an offset."""
        self.journal.records = [each for each in self.journal.records if each[0] >= before]
        self.journal.first = before

    def travel(self, piece: int = 1000) -> Travel:
        def replay() -> Replay:
            return Replay(PARTITION, lambda source, at: Log(self.logs[source], at, piece))

        return Travel(PARTITION, self.journal.reader(), self.chunks.get, replay, self.task.config)
