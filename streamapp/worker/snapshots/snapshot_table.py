"""Snapshot table: a Faust table, RocksDB here and a compacted changelog topic for the next owner.

Faust writes a table only inside an agent's event. Snapshots are written between events, so both halves of a
write are done here: to RocksDB, and to the changelog, with a wait for the broker's acknowledgement.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from faust.tables.table import Table

from streamapp.worker.snapshots.table_store import TableStore, is_damage

logger = logging.getLogger(__name__)

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
    other worker wrote.
    """

    logger = logging.getLogger("faust.kafkabatch")  # keeps service messages out of our log

    def _new_store_by_url(self, url: Any) -> TableStore:
        return TableStore(
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

    def _on_changelog_sent(self, sent: Any) -> None:
        written = sent.result()
        open_ones: Any = cast(Any, self.data)._dbs  # noqa: SLF001 - asking for a closed one would open it
        if written.topic_partition.partition not in open_ones:
            return  # the partition was revoked: its next owner reads this again
        persisted = self.data.persisted_offset(written.topic_partition)
        if written.offset == (0 if persisted is None else persisted + 1):
            try:
                self.data.set_persisted_offset(written.topic_partition, written.offset)
            except Exception as error:  # noqa: BLE001 - RocksDB's; what is not noted is read again
                logger.warning("partition %d: %s", written.topic_partition.partition, error)


class ClosedError(Exception):
    """Raised when an abandoned restore requests chunks."""


@dataclass(frozen=True, slots=True)
class Chunks:
    """The chunks of one partition, for any thread."""

    get: Callable[[bytes], bytes | None]
    keys: Callable[[], Iterable[bytes]]
    close: Callable[[], object] = lambda: None  # afterwards requests raise ClosedError


class SnapshotTable:
    """Chunks by key. Everything but `Chunks` belongs to the event loop."""

    def __init__(self, table: Any) -> None:
        """`table`: the result of `add_table`."""
        self._table = table

    def chunks(self, partition: int) -> Chunks:
        data = self._table.data
        # Faust closes RocksDB by dropping its reference, and RocksDB's lock lasts as long as any other
        # reference to it: an abandoned restore must not keep one.
        tables = [data._db_for_partition(partition)]  # noqa: SLF001 - Faust has no door to one partition

        def ask(question: Callable[[Any], Any]) -> Any:
            try:
                db = tables[0]
            except IndexError:
                raise ClosedError from None
            try:
                return question(db)
            except Exception as error:
                raise data.failure(partition, error) from error

        return Chunks(
            lambda key: cast(bytes | None, ask(lambda db: db.get(key))),
            lambda: [key for key in ask(lambda db: list(db.keys())) if key != data.offset_key],
            tables.clear,
        )

    async def write(self, partition: int, items: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Write values (None: remove the key); return when the changelog's broker has acknowledged them.

        LocalCopyError if the disk does not take them; a damaged copy is then an empty one.
        """
        acknowledged = []
        for key, value in items:
            self._write_here(partition, key, value)
            acknowledged.append(self._table.send_changelog(partition, key, value))
        await asyncio.gather(*acknowledged)

    def _write_here(self, partition: int, key: bytes, value: bytes | None) -> None:
        data = self._table.data
        db = data._db_for_partition(partition)  # noqa: SLF001
        try:
            if value is None:
                db.delete(key)
            else:
                db.put(key, value)
        except Exception as error:
            failure = data.failure(partition, error)
            if is_damage(error):
                del db  # RocksDB's lock lasts as long as any reference
                data.discard(partition)
            raise failure from error

    async def remove(self, partition: int, keys: Sequence[bytes]) -> None:
        await self.write(partition, ((key, None) for key in keys))
