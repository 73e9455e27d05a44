"""Topic copy: an SQLite file that is derived from topics, and is filled again if it is lost."""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Final

from streamapp.errors import StreamappError

logger = logging.getLogger(__name__)

TOPIC_TABLES: Final = """
CREATE TABLE origin (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE position (
  topic TEXT, partition INTEGER, next INTEGER NOT NULL, PRIMARY KEY (topic, partition)
) WITHOUT ROWID;
"""
"""The topics that a file is a copy of, and the next offsets; part of each schema."""


DAMAGE: Final = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


class OtherFormatError(sqlite3.DatabaseError):
    """A file was written by another release."""


def is_damage(error: sqlite3.DatabaseError) -> bool:
    """Whether the file itself cannot be used; a full disk or a lack of rights does not count."""
    code = getattr(error, "sqlite_errorcode", None)  # missing in errors of ours
    return isinstance(error, OtherFormatError) or (code is not None and code & 0xFF in DAMAGE)


class _Turn:
    """The right to use the connection, which threads have in turn; notes that one of them met damage."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self.met_damage = False

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()
        self.met_damage |= isinstance(error, sqlite3.DatabaseError) and is_damage(error)


class TopicCopy:
    """One file and one connection, which threads use in turn; `:memory:` for data that need not last.

    Records are stored in one transaction with the next offsets.
    """

    schema: ClassVar[str]
    """Statements that make the tables, TOPIC_TABLES among them."""
    version: ClassVar[int]
    tables: ClassVar[Sequence[str]]

    def __init__(self, path: Path | str) -> None:
        """Open or create the file; one that is damaged or has another format is made again, as it is a copy.

        Raises StreamappError if the disk is full or cannot be written: that is no reason to lose the file.
        """
        self._turn = _Turn()
        self._path = path
        try:
            self._open_or_make_again()
        except sqlite3.DatabaseError as error:
            self._connection.close()
            message = f"{path}: {error}; make room there, or name another file (it is filled from the topics)"
            raise StreamappError(message) from error

    def _open_or_make_again(self) -> None:
        try:
            self._open(self._path)
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
            self._connection.close()
            logger.warning(
                "%s is damaged or of another release (%s); it is made again, and filled from the topics",
                self._path,
                error,
            )
            self._remove()
            self._open(self._path)

    def _remove(self) -> None:
        """Delete the file, so that it is made again."""
        for suffix in ("", "-wal", "-shm"):
            Path(f"{self._path}{suffix}").unlink(missing_ok=True)

    def _open(self, path: Path | str) -> None:
        if str(path) != ":memory:":
            Path(path).parent.mkdir(parents=True, exist_ok=True)
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        run = self._connection.execute
        run("PRAGMA journal_mode = WAL")
        run("PRAGMA synchronous = NORMAL")  # writes that a failing machine loses are read again
        if str(path) != ":memory:":
            Path(path).chmod(0o600)
        (version,) = run("PRAGMA user_version").fetchone()
        if version == 0:
            self._connection.executescript(
                f"BEGIN; {self.schema} PRAGMA user_version = {self.version}; COMMIT;"
            )
        elif version != self.version:
            message = f"it has format {version}"
            raise OtherFormatError(message)
        self._opened()

    def _opened(self) -> None:
        """Read what is kept in memory; called whenever the file was opened or made."""

    def close(self) -> None:
        """Close the file; one that was found damaged is deleted, and the next start makes it again."""
        with self._turn:
            self._connection.close()
            if self._turn.met_damage:
                logger.warning("%s is damaged; it is deleted, and filled again from the topics", self._path)
                self._remove()

    def begin(self, origin: Mapping[str, str]) -> bool:
        """Empty the file if it has records of other topics; return whether it had."""
        with self._turn:
            stored = dict(self._connection.execute("SELECT name, value FROM origin").fetchall())
            if stored == dict(origin):
                return False
            with self._transaction() as db:
                for table in self.tables:
                    db.execute(f"DELETE FROM {table}")  # noqa: S608 - names of ours
                db.executemany("INSERT INTO origin VALUES (?, ?)", origin.items())
            self._emptied()
            return bool(stored)

    def _emptied(self) -> None:
        """Forget what is kept in memory of a file that was emptied."""

    def positions(self, topic: str) -> dict[int, int]:
        """Return the next offset by partition."""
        with self._turn:
            rows = self._connection.execute("SELECT partition, next FROM position WHERE topic = ?", (topic,))
            return dict(rows.fetchall())

    @staticmethod
    def _note(db: sqlite3.Connection, positions: Mapping[tuple[str, int], int]) -> None:
        """Store the next offsets by topic and partition, within a transaction."""
        db.executemany(
            "INSERT OR REPLACE INTO position VALUES (?, ?, ?)",
            [(topic, partition, offset) for (topic, partition), offset in positions.items()],
        )

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._turn:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
            except BaseException:
                if self._connection.in_transaction:  # SQLite itself has ended it if the disk is full
                    self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")
