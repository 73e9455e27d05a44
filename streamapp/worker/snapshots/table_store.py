"""Table store: Faust's store of the snapshot table, with RocksDB in a thread of the disk.

The event loop waits for the disk for `ANSWER_S` at most. A copy that cannot be opened or does not take a
record of the topic in this time is left out: Faust does not read its topic, and partitions that have to be
restored from it wait. It is opened as soon as the disk answers; then the worker joins its group again, and
Faust reads the topic from where the copy ends.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from faust.stores.rocksdb import Store
from faust.types import TP

from streamapp.worker.snapshots.disk_thread import DiskThread, within
from streamapp.worker.snapshots.local_copy import LocalCopy, Probe, UncachedOptions
from streamapp.worker.state_directory import DISK_HANGS

logger = logging.getLogger(__name__)

ANSWER_S: Final = 5.0
"""Seconds without any answer of the disk, after which the event loop goes on without it."""
RETRY_S: Final = 1.0
FLUSH_S: Final = 10.0
"""Seconds from the first value in memory to a flush: after a death in between, so much is read again."""
MOST_UNWRITTEN: Final = 32 << 20
"""Bytes of records of the topic that wait for the disk."""


class TableStore(Store):
    """Copies of the partitions that are assigned, by partition. Everything belongs to the event loop."""

    def __init__(self, *arguments: Any, options: Mapping[str, Any] | None, **more: Any) -> None:
        """`options`: of RocksDB, by the names of Faust's `RocksDBOptions`."""
        super().__init__(*arguments, options=options, **more)
        self._uncached = UncachedOptions(block_cache_size=0, **(options or {}))
        self.disk = DiskThread()
        self._home = Path(self.app.conf.datadir).parent  # the worker's directory
        self._probe = Probe(self._home)
        self._copies: dict[int, LocalCopy] = {}
        self._reading: dict[LocalCopy, int] = {}
        """The copies whose topic Faust reads from where they end, each with the number of its opening."""
        self._openings: dict[LocalCopy, asyncio.Future[None]] = {}  # those not done yet
        self._completions: dict[LocalCopy, asyncio.Future[None]] = {}
        self._applying: dict[asyncio.Future[None], int] = {}  # bytes of each, oldest first
        self._flushes: dict[LocalCopy, asyncio.TimerHandle] = {}
        self._repairing: asyncio.Task[None] | None = None
        self._joins = False  # the worker joins its group again, and the rebalance has not come yet

    def copy_of(self, partition: int) -> LocalCopy | None:
        """Return the copy of a partition; None if the partition is not assigned."""
        return self._copies.get(partition)

    def reads(self, partition: int) -> bool:
        """Whether records of the topic are stored for a partition."""
        copy = self._copies.get(partition)
        return copy is not None and self._is_reading(copy)

    def _is_reading(self, copy: LocalCopy) -> bool:
        return copy.db is not None and self._reading.get(copy) == copy.opened

    def failure(self) -> str:
        """Return why the disk does not take everything, empty if it does; any thread may call this."""
        if self.disk.waits_s() > ANSWER_S:
            return DISK_HANGS
        return next((copy.failure for copy in [*self._copies.values()] if copy.failure), "")

    def persisted_offset(self, tp: TP) -> int | None:
        """Return the offset up to which the copy has all records of the topic."""
        copy = self._copies.get(tp.partition)
        return None if copy is None else copy.persisted

    async def on_rebalance(self, assigned: set[TP], *_: Any, **__: Any) -> None:
        """Close the copies of partitions that are not assigned any more, and open those of assigned ones."""
        topics = self.table.changelog_topic.topics
        here = {tp.partition for tp in assigned if tp.topic in topics}
        for partition in self._copies.keys() - here:
            self._close(self._copies.pop(partition))
        for partition in sorted(here - self._copies.keys()):
            path = self.partition_path(partition)
            self._copies[partition] = LocalCopy(partition, path, self._home, self._uncached, self._probe)
        await self._answers([self._ensure(copy) for copy in self._copies.values()])
        self._reading = {copy: copy.opened for copy in self._copies.values() if copy.db is not None}
        for copy in self._copies.values():
            copy.is_whole = False
        self._completions.clear()
        self._joins = False
        self.repair()

    async def on_recovery_completed(self, active_tps: set[TP], *_: Any, **__: Any) -> None:
        """Note that Faust has read the topics of partitions that are to be processed here."""
        for tp in sorted(active_tps):
            copy = self._copies.get(tp.partition)
            if copy is not None and (opened := self._reading.get(copy)) is not None:
                self._completions[copy] = completion = self.disk.run(partial(copy.complete, opened))
                completion.add_done_callback(partial(self._completed, copy))
        await self._answers([*self._completions.values()])

    def _completed(self, copy: LocalCopy, completion: asyncio.Future[None]) -> None:
        if self._completions.get(copy) is completion:
            del self._completions[copy]

    def apply_changelog_batch(self, batch: Iterable[Any], *_: Any, **__: Any) -> None:
        """Begin to store records of the topic, after everything that was written before."""
        records = defaultdict[int, list[tuple[bytes, bytes | None]]](list)
        last: dict[int, int] = {}
        for event in batch:
            message = event.message
            records[message.partition].append((message.key, message.value))
            last[message.partition] = message.offset
        for partition, items in records.items():
            copy = self._copies.get(partition)
            if copy is not None and (opened := self._reading.get(copy)) is not None:
                applying = self.disk.run(partial(copy.apply, opened, items, last[partition]))
                self._applying[applying] = sum(len(key) + len(value or b"") for key, value in items)
                applying.add_done_callback(self._applied)
                self.flush_soon(copy)

    def _applied(self, applying: asyncio.Future[None]) -> None:
        del self._applying[applying]
        if (error := applying.exception()) is not None:
            logger.warning("%s", error)
            self.repair()

    async def room(self, partition: int) -> None:
        """Wait until a further record of the topic can be taken, or leave out those of a partition."""
        copy = self._copies.get(partition)
        while copy in self._reading and sum(self._applying.values()) > MOST_UNWRITTEN:
            if not await self._answers([next(iter(self._applying))]):
                self._reading.pop(copy, None)
                self.repair()

    def lost(self, copy: LocalCopy) -> None:
        """Note that a restore found the files of a copy gone."""
        self._reading.pop(copy, None)
        self.repair()

    def repair(self) -> None:
        """Open the copies that are not open as soon as the disk lets them be, and let Faust read on."""
        is_needed = not all(map(self._is_reading, self._copies.values()))
        if is_needed and self._repairing is None and not self._joins:
            self._repairing = asyncio.ensure_future(self._repair())

    async def _repair(self) -> None:
        try:
            while True:
                if not self._openings:
                    await asyncio.sleep(RETRY_S)
                broken = [copy for copy in self._copies.values() if not self._is_reading(copy)]
                if not broken:
                    return  # a rebalance has come before
                await asyncio.wait([self._ensure(copy) for copy in broken])
                if any(copy.db is not None and copy in self._copies.values() for copy in broken):
                    logger.info("joining the group again, to read what the copies in state.dir lack")
                    self._joins = True
                    await self.read_again()
                    return  # the rebalance finds copies that are still not open
        finally:
            self._repairing = None

    async def read_again(self) -> None:
        """Let Faust read again what the copies lack."""
        consumer: Any = self.app.consumer
        await consumer.rejoin()

    def lacks(self, copy: LocalCopy) -> str:
        """Return why a restore cannot read from a copy yet; empty: it can."""
        if copy.is_whole:
            return ""
        if copy.db is None:
            return copy.failure or DISK_HANGS
        if copy in self._completions:
            return self.failure() or "parts of its snapshots are being stored"
        return "parts of its snapshots have to be read again"

    def _ensure(self, copy: LocalCopy) -> asyncio.Future[None]:
        if (opening := self._openings.get(copy)) is None:
            before = copy.failure
            opening = self._openings[copy] = self.disk.run(copy.ensure)
            opening.add_done_callback(partial(self._ensured, copy, before))
        return opening

    def _ensured(self, copy: LocalCopy, before: str, opening: asyncio.Future[None]) -> None:
        del self._openings[copy]
        error = opening.exception()
        if error is not None and str(error) != before:
            logger.warning("%s; a partition that has to be restored from it waits", error)
        if copy in self._reading:
            self.repair()  # unless it is what it was

    def flush_soon(self, copy: LocalCopy) -> None:
        """Write to the disk what a copy has in memory, after FLUSH_S."""
        if copy not in self._flushes and self._copies.get(copy.partition) is copy:
            self._flushes[copy] = asyncio.get_running_loop().call_later(FLUSH_S, self._flush, copy)

    def _flush(self, copy: LocalCopy) -> None:
        del self._flushes[copy]
        self.disk.run(copy.flush).add_done_callback(self._flushed)

    def _flushed(self, flush: asyncio.Future[None]) -> None:
        if (error := flush.exception()) is not None:
            logger.warning("%s", error)
            self.repair()

    def _close(self, copy: LocalCopy) -> asyncio.Future[None]:
        if (flush := self._flushes.pop(copy, None)) is not None:
            flush.cancel()
        return self.disk.run(copy.close)

    async def _answers(self, futures: list[asyncio.Future[None]]) -> bool:
        """Wait while the disk answers; return whether everything is done."""
        return await within(futures, 0.0 if self.disk.waits_s() > ANSWER_S else ANSWER_S)

    def _db_for_partition(self, partition: int) -> Any:
        """Raise RuntimeError: a call that Faust makes to RocksDB would hold the event loop."""
        message = f"partition {partition}: RocksDB must be used in the thread of the disk"
        raise RuntimeError(message)

    async def stop(self) -> None:
        """Close all copies; return when they are closed, or the disk does not answer."""
        if self._repairing is not None:
            self._repairing.cancel()
        closing = [self._close(copy) for copy in self._copies.values()]
        self._copies.clear()
        self._reading.clear()
        if not await self._answers(closing):
            logger.warning("%s; ending without closing the copies there", DISK_HANGS)
        self.disk.end()
