"""Snapshot table: a Faust table, RocksDB here and a compacted changelog topic for the next owner.

Faust writes a table only inside an agent's event. Snapshots are written between events, so both halves of a
write are done here: to RocksDB, and to the changelog, with a wait for the broker's acknowledgement. RocksDB
is written in the thread of the disk, so that a disk which does not answer holds up snapshots only.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, cast

from faust.tables.table import Table

from streamapp.errors import NotYetError
from streamapp.worker.snapshots.local_copy import OFFSET_KEY
from streamapp.worker.snapshots.table_store import TableStore
from streamapp.worker.state_directory import DISK_HANGS

NAME: Final = "snapshots"

RECOVERY_RECORDS: Final = 32
"""Records read from the changelog before RocksDB gets them; each may have half a megabyte."""

# For each partition. Faust's default is three write buffers of 64 MiB. Parts of snapshots are written often
# and read once, so larger buffers would only let the process grow for hours.
OPTIONS: Final = {
    "write_buffer_size": 2 << 20,
    "max_write_buffer_number": 2,
    "bloom_filter_size": 10,
    "max_open_files": 256,
}


def add_table(app: Any, changelog: str) -> Any:
    """Return the table, made a part of `app`; `changelog`: its topic."""
    topic = app.topic(
        changelog,
        key_type=bytes,
        value_type=bytes,
        key_serializer="raw",
        value_serializer="raw",
        compacting=True,
        acks=False,
        internal=True,
        allow_empty=True,
        maxsize=131_072,
    )
    table = ContiguousTable(
        app,
        name=NAME,
        key_type=bytes,
        value_type=bytes,
        changelog_topic=topic,
        recovery_buffer_size=RECOVERY_RECORDS,
        options=dict(OPTIONS),
    )
    return app.tables.add(table)


class ContiguousTable(Table[bytes, bytes]):
    """A table that keeps track of its copy of the changelog even if another worker has written to it.

    Faust notes the offset of each write of this process as the point up to which RocksDB has everything. A
    worker that was frozen while another worker wrote, and that then writes again, would never read what the
    other worker wrote (`LocalCopy.note`).
    """

    logger = logging.getLogger("faust.kafkabatch")  # keeps service messages out of our log

    store: TableStore | None = None  # None: Faust has not made it yet, and only the event loop's thread may

    def _new_store_by_url(self, url: Any) -> TableStore:
        self.store = TableStore(
            url,
            self.app,
            self,
            table_name=self.name,
            key_type=self.key_type,
            key_serializer=self.key_serializer,
            value_serializer=self.value_serializer,
            value_type=self.value_type,
            loop=self.loop,
            options=self.options,
        )
        return self.store

    def _on_changelog_sent(self, sent: Any) -> None:
        """Do nothing: `SnapshotTable.write` notes the offsets of its records together."""

    async def on_changelog_event(self, event: Any) -> None:
        """Wait until the store can take a record of the changelog."""
        await cast(TableStore, self.data).room(event.message.partition)


class ClosedError(Exception):
    """Raised when an abandoned restore requests chunks."""


@dataclass(frozen=True, slots=True)
class Chunks:
    """The chunks of one partition, for any thread."""

    get: Callable[[bytes], bytes | None]
    keys: Callable[[], Iterable[bytes]]
    close: Callable[[], object] = lambda: None  # afterwards requests raise ClosedError
    check: Callable[[], object] = lambda: None  # raises NotYetError while the chunks cannot be read


class SnapshotTable:
    """Chunks by key. Everything but `Chunks` belongs to the event loop."""

    def __init__(self, table: Any) -> None:
        """`table`: the result of `add_table`."""
        self._table = table

    def chunks(self, partition: int) -> Chunks:
        """Return the chunks of a partition; requests raise NotYetError while its copy lacks some of them."""
        data: TableStore = self._table.data
        loop, copy = asyncio.get_running_loop(), data.copy_of(partition)
        # An abandoned restore must not keep a reference: RocksDB's lock would last as long.
        tables = [None if copy is None or data.lacks(copy) else copy.db]
        is_warm = False

        def check() -> None:
            if tables and tables[0] is None:
                loop.call_soon_threadsafe(data.repair)
                raise NotYetError((copy is not None and data.lacks(copy)) or DISK_HANGS)

        def ask(question: Callable[[Any], Any]) -> Any:
            nonlocal is_warm
            check()
            try:
                db = tables[0]
            except IndexError:
                raise ClosedError from None
            assert copy is not None
            try:
                if not is_warm:
                    copy.warm()
                    is_warm = True
                return question(db)
            except Exception as error:
                if copy.db is not db or copy.is_gone():
                    loop.call_soon_threadsafe(data.lost, copy)
                    message = f"{copy.name} is gone, or was closed"
                    raise NotYetError(message) from error
                raise copy.failed(error) from error

        return Chunks(
            lambda key: cast(bytes | None, ask(lambda db: db.get(key))),
            lambda: [key for key in ask(lambda db: list(db.keys())) if key != OFFSET_KEY],
            tables.clear,
            check,
        )

    def failure(self) -> str:
        """Return why the disk does not take everything, empty if it does; any thread may call this."""
        store: TableStore | None = self._table.store
        return "" if store is None else store.failure()

    async def write(self, partition: int, items: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Write values (None: remove the key); return when the changelog's broker has acknowledged them.

        LocalCopyError if the disk does not take them; a damaged copy is then an empty one. The disk gets all
        of them before the broker gets the first.
        """
        data, values = cast(TableStore, self._table.data), [*items]
        if (copy := data.copy_of(partition)) is None:
            message = f"partition {partition} is not assigned"
            raise NotYetError(message)
        opened = await data.disk.run(partial(copy.write, values))
        if data.copy_of(partition) is not copy:
            message = f"partition {partition} was revoked while the disk was waited for"
            raise NotYetError(message)
        sent = await asyncio.gather(
            *[self._table.send_changelog(partition, key, value) for key, value in values]
        )
        data.disk.run(partial(copy.note, opened, [record.offset for record in sent]))
        data.flush_soon(copy)

    async def remove(self, partition: int, keys: Sequence[bytes]) -> None:
        await self.write(partition, ((key, None) for key in keys))
