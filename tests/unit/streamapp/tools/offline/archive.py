"""A partition that keeps what Kafka would: logs, a journal that may be trimmed, parts of snapshots."""

from __future__ import annotations

from typing import Any

from streamapp.tools.offline.time_travel import TimeTravel
from streamapp.worker.journal.entry import Manifest, Reset
from streamapp.worker.journal.ledger import Ledger
from streamapp.worker.restore.journal_replay import Process, Replay
from streamapp.worker.snapshots.index import Index
from streamapp.worker.task.sources import Positions
from streamapp.worker.task.task import Task
from streamapp.worker.task.task_config import TaskConfig
from tests.topology.logged import Logged
from tests.topology.partition import PARTITION, Record
from tests.topology.snapshot_store import SnapshotStore
from tests.unit.streamapp.worker.restore.test_tail import Journal


class Archive(Logged):
    """Journals the records of a partition.

    digests: a digest of the state before each instance, if `keeps_digests`. A digest costs milliseconds.
    """

    def __init__(self, given: TaskConfig, *, keeps_digests: bool = False) -> None:
        super().__init__(given)
        self.keeps_digests = keeps_digests
        self.journal, self.store = Journal(), SnapshotStore()
        self.digests: list[bytes] = []

    @property
    def chunks(self) -> dict[bytes, bytes]:
        return self.store.chunks

    def feed(self, *records: Record) -> Any:
        if self.keeps_digests and records[0].source == "instances":
            self.digests.append(self.task.digest())
        return super().feed(*records)

    def commit(self) -> Positions:
        if not self.ledger.is_empty:
            for entry in self.ledger.cut():
                self.journal.add(entry)
        return dict(self.ledger.positions)

    def snapshot(self) -> Manifest:
        """Write a snapshot of where the journal ends."""
        return self.store.put(self.task, self.commit(), self.journal.end)

    def reset(self) -> None:
        """Begin with new models, as `grove models reset` has it."""
        self.journal.add(Reset(1, self.commit()))
        offsets = self.task.next
        self.task = Task(PARTITION, self.task.config)
        self.task.next = dict(offsets)
        self.ledger = Ledger(dict(self.ledger.positions), 2, self.task.config.to_json())
        self.store.index = Index()

    def trim(self, before: int) -> None:
        """Delete the journal before an offset."""
        self.journal.records = [each for each in self.journal.records if each[0] >= before]
        self.journal.first = before

    def travel(self, piece: int = 1000, process: Process = Task.process) -> TimeTravel:
        def replay() -> Replay:
            return Replay(PARTITION, self.reader(piece), process=process)

        return TimeTravel(PARTITION, self.journal.reader(), self.chunks.get, replay, self.task.config)
