"""Local copy of the snapshot table: RocksDB, whose copy of a partition is deleted when it is damaged.

The topic of the table has everything that the copy has, so a damaged copy costs time and no state: it is
deleted, and the topic is read again from its beginning.
"""

from __future__ import annotations

import contextlib
import logging
import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import rocksdict
from faust.stores.rocksdb import RocksDBOptions, Store

from streamapp.errors import LocalCopyError

logger = logging.getLogger(__name__)

DAMAGED: Final = ("Corruption", "corrupt", "does not exist", "No such file")
"""Words of RocksDB's errors about files whose contents are wrong or missing."""

LOCKED: Final = "lock hold"
"""Words of RocksDB's error about a copy that is open already."""

MARK: Final = "DAMAGED"
"""File beside RocksDB's that makes the next opening delete the copy."""


class UncachedOptions(RocksDBOptions):
    """Faust's options for RocksDB without a cache of blocks.

    A restore reads each part of a snapshot once. RocksDB would keep the blocks of tables that are deleted
    since then, so that a worker grew with each restore, up to the size of the cache. Index and filter of an
    open table are in memory without a cache, too.
    """

    def as_options(self) -> Any:
        """Return the options with which a copy is opened."""
        options = super().as_options()
        tables = rocksdict.BlockBasedOptions()
        tables.set_bloom_filter(self.bloom_filter_size, block_based=False)
        tables.disable_cache()
        options.set_block_based_table_factory(tables)
        return options


class TableStore(Store):
    """Faust's store with errors that an operator can act on, and without a cache of blocks."""

    def __init__(self, *arguments: Any, options: Mapping[str, Any] | None, **more: Any) -> None:
        """`options`: of RocksDB, by the names of Faust's `RocksDBOptions`."""
        super().__init__(*arguments, options=options, **more)
        self.rocksdb_options = UncachedOptions(block_cache_size=0, **(options or {}))

    def mark_damaged(self, partition: int) -> None:
        """Let the next opening delete the copy of a partition; may be called in any thread."""
        with contextlib.suppress(OSError):  # without a mark, the next opening finds the damage itself
            (self.partition_path(partition) / MARK).touch()

    def discard(self, partition: int) -> None:
        """Delete the copy of a partition; the next use opens an empty one."""
        self._dbs.pop(partition, None)
        shutil.rmtree(self.partition_path(partition), ignore_errors=True)

    def apply_changelog_batch(
        self, batch: Iterable[Any], to_key: Callable[[Any], Any], to_value: Callable[[Any], Any]
    ) -> None:
        """Store records of the topic; LocalCopyError if the disk does not take them."""
        events = list(batch)
        try:
            super().apply_changelog_batch(events, to_key, to_value)
        except LocalCopyError:
            raise
        except Exception as error:
            partition = events[0].message.partition if events else 0
            raise self.failure(partition, error) from error

    def failure(self, partition: int, error: Exception) -> LocalCopyError:
        """Return the error for an operator, after a mark if the copy of the partition is damaged."""
        if is_damage(error):
            for number in self._dbs:  # the batch may have had records of several partitions
                self.mark_damaged(number)
            remedy = "the next start deletes it and reads the topic again"
            return LocalCopyError(f"{self._name(partition)} is damaged ({first_line(error)}); {remedy}")
        remedy = "make room or let it be written, and start the worker again"
        return LocalCopyError(f"{self._name(partition)} cannot be written ({first_line(error)}); {remedy}")

    def _open_for_partition(self, partition: int) -> Any:
        path = Path(self.partition_path(partition))
        if (path / MARK).exists():
            logger.warning("%s is damaged: it is deleted, and the topic is read again", self._name(partition))
            self.discard(partition)
        try:
            return super()._open_for_partition(partition)
        except Exception as error:
            if LOCKED in str(error):
                raise  # another process has it; Faust looks for these words
            if not is_damage(error) or not path.exists():
                raise self.failure(partition, error) from error
            logger.warning(
                "%s is damaged (%s): it is deleted, and the topic is read again",
                self._name(partition),
                first_line(error),
            )
            self.discard(partition)
            return super()._open_for_partition(partition)

    def _name(self, partition: int) -> str:
        return f"partition {partition}: the copy of the snapshot table in {self.partition_path(partition)}"


def is_damage(error: Exception) -> bool:
    """Whether an error of RocksDB is about the contents of its files, not about the disk."""
    return any(words in str(error) for words in DAMAGED)


def first_line(error: Exception) -> str:
    return " ".join(str(error).split())
