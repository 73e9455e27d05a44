"""Local copy of the snapshot table of one partition: RocksDB, replaced by an empty one if damaged or gone.

The topic of the table has everything that the copy has, so a damaged copy costs time and no state: it is
deleted, and the topic is read again from its beginning. For the same reason RocksDB keeps no log of its own:
the values that are in memory when the process dies are read again, as the offset after them is lost, too.

RocksDB's binding holds the interpreter's lock in all calls but `flush` and `close`. So values are written
into memory, as many as fit, and `flush` writes them to the disk. Before RocksDB is opened or read, a call
without the lock shows that the disk answers.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Sequence
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

STALLED: Final = "Write stall"
"""Words of RocksDB's error about writes that come faster than it can merge its files."""

MARK: Final = "DAMAGED"
"""File beside RocksDB's that makes the next opening delete the copy."""

OFFSET_KEY: Final = Store.offset_key
"""Key of the offset up to which the copy has all records of the topic."""

BATCH_BYTES: Final = 1 << 19
"""Bytes after which a write is divided. A value has at most as many."""
RECORD_BYTES: Final = 64  # that RocksDB needs in memory for a key and a value, beside them
MEMORY_BYTES: Final = 3 * BATCH_BYTES
"""Bytes that are kept in memory: with one part more, RocksDB would write to the disk in a call that holds the
interpreter's lock.
"""
PROBE_S: Final = 0.25  # for which an answer of the disk counts


REPORT_BYTES: Final = 128 << 10
"""Bytes of a file `LOG`, in which RocksDB reports each flush: without a bound it grows by 1 MB an hour."""

REPORTS: Final = 2
"""Number of such files."""

MANIFEST_BYTES: Final = 1 << 20
"""Bytes after which RocksDB begins a new manifest, to which each flush adds a line."""


class UncachedOptions(RocksDBOptions):
    """Faust's options for RocksDB without a cache of blocks, and without compression: chunks are compressed.

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
        options.set_compression_type(rocksdict.DBCompressionType.none())
        options.set_max_log_file_size(REPORT_BYTES)
        options.set_keep_log_file_num(REPORTS)
        options.set_max_manifest_file_size(MANIFEST_BYTES)
        return options


class Probe:
    """Shows that a disk answers, in calls that do not hold the interpreter's lock."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._answered: float | None = None

    def answer(self) -> None:
        """Return when the disk has answered within `PROBE_S`; OSError if it takes nothing."""
        if self._answered is None or time.monotonic() - self._answered > PROBE_S:
            with tempfile.TemporaryFile(dir=self._folder, buffering=0) as file:
                file.write(b"probe")
                os.fsync(file.fileno())
            self._answered = time.monotonic()


class LocalCopy:
    """The copy of one partition.

    Its methods wait for the disk and are called in one thread. Attributes may be read in any thread.
    """

    def __init__(
        self, partition: int, path: Path, home: Path, options: UncachedOptions, probe: Probe | None = None
    ) -> None:
        """`home`: the worker's directory, without which the copy is not created; `probe`: of that directory,
        for all copies there.
        """
        self.partition = partition
        self.db: Any = None  # None: it is not open
        self.opened = 0  # how often
        self.persisted: int | None = None  # the offset up to which all records of the topic are here
        self.is_whole = False  # it has everything that the topic had at the newest recovery
        self.failure = ""  # why it is not open; empty: it is, or was not opened yet
        self._path = path
        self._home = home
        self._options = options
        self._probe = probe or Probe(home)
        self._unflushed = 0  # bytes, about
        self._place: tuple[int, int] | None = None  # device and inode of its folder

    @property
    def name(self) -> str:
        """Return the name of the copy in log lines and errors."""
        return f"partition {self.partition}: the copy of the snapshot table in {self._path}"

    def ensure(self) -> None:
        """Open the copy unless it is open; make an empty one if its files are gone.

        LocalCopyError if that is impossible at the moment.
        """
        try:
            if self.db is not None and self.is_gone():
                logger.warning("%s is gone", self.name)
                self.close()
            if self.db is None:
                self._open()
        except LocalCopyError as error:
            self.failure = str(error)
            raise
        self.failure = ""

    def complete(self, opened: int) -> None:
        """Note that all records of the topic were given to the copy; `opened`: to which opening of it."""
        self.is_whole = self.db is not None and opened == self.opened

    def write(self, items: Iterable[tuple[bytes, bytes | None]]) -> int:
        """Write values (None: remove the key); return the number of the opening, for `note`.

        LocalCopyError if the disk does not take them; a damaged copy is then an empty one.
        """
        self.ensure()
        try:
            self._put(items)
        except Exception as error:
            raise self._given_up(error) from error
        return self.opened

    def note(self, opened: int, offsets: Sequence[int]) -> None:
        """Note the offsets of written values in the topic, in order, as far as no other record is between.

        `opened`: from `write`; a copy that was opened again since may lack these values.
        """
        if self.db is None or opened != self.opened:
            return
        last = self.persisted
        for offset in offsets:
            if offset == (0 if last is None else last + 1):
                last = offset
        if last is None or last == self.persisted:
            return
        try:
            self.db.put(OFFSET_KEY, str(last).encode())
            self._unflushed += 1
            self.persisted = last
        except Exception as error:  # noqa: BLE001 - RocksDB's; what is not noted is read again
            logger.warning("partition %d: %s", self.partition, first_line(error))

    def apply(self, opened: int, records: Sequence[tuple[bytes, bytes | None]], last: int) -> None:
        """Store records of the topic up to an offset; LocalCopyError if the disk does not take them.

        `opened`: the opening of the copy after which the topic was read from where the copy ends. A copy that
        fails is closed, so that it takes no later records: they would hide that these are missing.
        """
        if self.db is None or opened != self.opened:
            return
        try:
            if self.is_gone():
                message = f"{self.name} is gone"
                raise LocalCopyError(message)
            self._put([*records, (OFFSET_KEY, str(last).encode())])
            self.persisted = last
        except Exception as error:
            failure = error if isinstance(error, LocalCopyError) else self.failed(error)
            self.close()
            self.failure = str(failure)
            raise failure from error

    def is_gone(self) -> bool:
        """Whether the folder was deleted or replaced since the opening; RocksDB does not notice it."""
        try:
            (self._path / "CURRENT").stat()
            return self._place != _place_of(self._path)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ESTALE):
                return True
            raise self.failed(error) from error

    def flush(self) -> None:
        """Write to the disk what is in memory; LocalCopyError if the disk does not take it."""
        if self.db is None or not self._unflushed:
            return
        opened = self.opened
        self.ensure()
        if opened != self.opened:
            return  # its files were gone
        try:
            self.db.flush()
        except Exception as error:
            raise self._given_up(error) from error
        self._unflushed = 0

    def warm(self) -> None:
        """Read the files of the copy into the system's cache, so that reads of RocksDB find them there.

        Any thread may call this.
        """
        for path in self._path.glob("*.sst"):
            with contextlib.suppress(FileNotFoundError), path.open("rb", buffering=0) as file:
                while file.read(1 << 20):
                    pass

    def close(self) -> None:
        """Flush and close the copy; reads of it then fail."""
        db, self.db = self.db, None
        self.persisted, self.is_whole, self._place, self._unflushed = None, False, None, 0
        if db is not None:
            try:
                db.close()
            except Exception as error:  # noqa: BLE001 - RocksDB's; what is not flushed is read again
                logger.debug("%s: %s", self.name, first_line(error))

    def discard(self) -> None:
        """Close the copy and delete it."""
        self.close()
        shutil.rmtree(self._path, ignore_errors=True)

    def failed(self, error: Exception) -> LocalCopyError:
        """Return the error for an operator, after a mark if the copy is damaged; any thread may call this."""
        if is_damage(error):
            try:
                (self._path / MARK).touch()
            except OSError:  # without a mark, the next opening finds the damage itself
                logger.debug("%s cannot be marked as damaged", self.name)
            remedy = "the next start deletes it and reads the topic again"
            return LocalCopyError(f"{self.name} is damaged ({first_line(error)}); {remedy}")
        remedy = "make room or let it be written; the worker goes on by itself"
        return LocalCopyError(f"{self.name} cannot be written ({first_line(error)}); {remedy}")

    def _open(self) -> None:
        if not self._home.is_dir():
            message = f"{self._home} is gone"
            raise LocalCopyError(message)
        try:
            self._probe.answer()
            self._path.parent.mkdir(parents=True, exist_ok=True)
            is_marked = (self._path / MARK).exists()
        except OSError as error:
            raise self.failed(error) from error
        if is_marked:
            self._delete_damaged("")
        try:
            self._open_files()
        except Exception as error:
            if LOCKED in str(error):  # by a restore that was abandoned and lists its keys
                message = f"{self.name} is still open ({first_line(error)})"
                raise LocalCopyError(message) from error
            if not is_damage(error) or not self._path.exists():
                raise self.failed(error) from error
            self._delete_damaged(f" ({first_line(error)})")
            try:
                self._open_files()
            except Exception as again:
                raise self.failed(again) from again
        self.opened += 1

    def _open_files(self) -> None:
        self.db = self._options.open(self._path)
        try:
            self.db.set_write_options(_unlogged())
            offset = self.db.get(OFFSET_KEY)
            self.persisted = None if offset is None else int(offset)
            self._place = _place_of(self._path)
        except Exception:
            self.close()
            raise

    def _given_up(self, error: Exception) -> LocalCopyError:
        """Return the error for an operator after a write that failed; the copy is closed.

        RocksDB takes no writes any more after some errors, until it is opened again.
        """
        failure = self.failed(error)
        if is_damage(error):
            self.discard()
        elif STALLED not in str(error):
            self.close()
        self.failure = str(failure)
        return failure

    def _put(self, items: Iterable[tuple[bytes, bytes | None]]) -> None:
        batch = rocksdict.WriteBatch(raw_mode=True)
        for key, value in items:
            if value is None:
                batch.delete(key)
            else:
                batch.put(key, value)
            if batch.size_in_bytes() >= BATCH_BYTES:
                self._put_together(batch)
                batch = rocksdict.WriteBatch(raw_mode=True)
        self._put_together(batch)

    def _put_together(self, batch: Any) -> None:
        size = batch.size_in_bytes() + RECORD_BYTES * len(batch)
        if self._unflushed and self._unflushed + size > MEMORY_BYTES:
            self.db.flush()
            self._unflushed = 0
        self.db.write(batch)
        self._unflushed += size

    def _delete_damaged(self, reason: str) -> None:
        logger.warning("%s is damaged%s: it is deleted, and the topic is read again", self.name, reason)
        self.discard()


def _unlogged() -> Any:
    options = rocksdict.WriteOptions()
    options.disable_wal = True  # type: ignore[assignment,method-assign] # a property, described as a method
    options.no_slowdown = True  # an error in place of a wait that holds the interpreter's lock
    return options


def _place_of(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_dev, status.st_ino


def is_damage(error: Exception) -> bool:
    """Whether an error of RocksDB is about the contents of its files, not about the disk."""
    return any(words in str(error) for words in DAMAGED)


def first_line(error: Exception) -> str:
    return " ".join(str(error).split())
