"""The snapshot table on real RocksDB, as Faust uses it; a list stands for the topic and its broker."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import faust
from faust.types import TP

from streamapp.worker.snapshots.local_copy import LocalCopy
from streamapp.worker.snapshots.snapshot_table import SnapshotTable, add_table
from streamapp.worker.snapshots.table_store import TableStore

TOPIC = "t.snapshots"
Item = tuple[bytes, bytes | None]


class Copies:
    """A worker's copies below a directory; made in a running event loop."""

    def __init__(self, directory: Path) -> None:
        app = faust.App("test", store="rocksdb://", autodiscover=False, datadir=str(directory / "topics"))
        faust_table: Any = add_table(app, TOPIC)
        faust_table.send_changelog = self._send
        self.store = cast(TableStore, faust_table.data)
        self.store.read_again = self._read_again  # type: ignore[method-assign]
        self.table = SnapshotTable(faust_table)
        self.topic = defaultdict[int, list[Item]](list)
        self.assigned: tuple[int, ...] = ()
        self.joined = asyncio.Event()  # for once more, because of a copy

    def path(self, partition: int) -> Path:
        return Path(self.store.partition_path(partition))

    def copy(self, partition: int = 0) -> LocalCopy:
        copy = self.store.copy_of(partition)
        assert copy is not None
        return copy

    async def assign(self, *partitions: int) -> None:
        """Give the worker other partitions, and read their topic as far as the copies lack it."""
        self.assigned = partitions
        active = {TP(TOPIC, partition) for partition in partitions}
        await self.store.on_rebalance(active | {TP("instances", partition) for partition in partitions})
        for tp in active:
            if self.store.reads(tp.partition):
                persisted = self.store.persisted_offset(tp)
                self.read(tp.partition, 0 if persisted is None else persisted + 1)
        await self.store.on_recovery_completed({tp for tp in active if self.store.reads(tp.partition)})

    def read(self, partition: int, first: int) -> None:
        """Give the store the records of the topic from an offset on."""
        self.store.apply_changelog_batch(
            [
                SimpleNamespace(
                    message=SimpleNamespace(partition=partition, offset=offset, key=key, value=value)
                )
                for offset, (key, value) in [*enumerate(self.topic[partition])][first:]
            ]
        )

    async def join_again(self) -> None:
        """Wait until the store wants to join the group again, and let it."""
        async with asyncio.timeout(60):
            await self.joined.wait()
        self.joined.clear()
        await self.assign(*self.assigned)
        await self.settle()

    async def settle(self) -> None:
        """Wait until the disk has done all that was requested."""
        async with asyncio.timeout(60):
            await self.store.disk.run(lambda: None)

    def values(self, partition: int = 0) -> dict[bytes, bytes | None]:
        """Return what a restore would read."""
        chunks = self.table.chunks(partition)
        try:
            return {key: chunks.get(key) for key in chunks.keys()}  # noqa: SIM118 - a function, not a dict
        finally:
            chunks.close()

    async def _read_again(self) -> None:
        self.joined.set()

    def _send(self, partition: int, key: bytes, value: bytes | None) -> asyncio.Future[Any]:
        sent = asyncio.get_running_loop().create_future()
        sent.set_result(SimpleNamespace(offset=len(self.topic[partition])))
        self.topic[partition].append((key, value))
        return sent
