"""Snapshots in a dict, packed as the table of a worker has them."""

from __future__ import annotations

from core.state_version import STATE_VERSION
from streamapp.worker.journal.entry import Manifest
from streamapp.worker.snapshots.chunks import UNIT, Copy, pack
from streamapp.worker.snapshots.index import Index
from streamapp.worker.task.sources import Positions
from streamapp.worker.task.task import Task


class SnapshotStore:
    """The parts of all snapshots of one partition, and the index of the newest."""

    def __init__(self) -> None:
        self.chunks: dict[bytes, bytes] = {}
        self.index = Index()
        self.sequence = 0

    def put(self, task: Task, positions: Positions, start: int) -> Manifest:
        """Write a snapshot of a task as it is now; start: where the journal goes on behind it."""
        self.sequence += 1
        cut, fresh = task.cut(), dict[bytes, Copy]()
        for unit in cut.units():
            name = unit.name.encode()
            fresh[name], items = pack(UNIT, name, 1, self.sequence, unit.data)
            self.chunks.update(items)
        self.index = self.index.after(fresh, [name.encode() for name in cut.removed])
        cut.done()
        copy, items = self.index.pack(1, self.sequence)
        self.chunks.update(items)
        units, size, config = len(self.index.copies), self.index.size, task.config.to_json()
        head = 1, self.sequence, STATE_VERSION, "", positions, start, config
        return Manifest(*head, units, size, copy.chunks, copy.crc, copy.size)

    def forget(self, manifest: Manifest) -> None:
        """Lose what only one snapshot wrote."""
        for key in [key for key in self.chunks if key[-12:-4] == manifest.sequence.to_bytes(8, "big")]:
            del self.chunks[key]
