"""Topic copy: an SQLite file that is derived from topics, and is filled again if it is lost."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar, Final

TOPIC_TABLES: Final = """
CREATE TABLE origin (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE position (
  topic TEXT, partition INTEGER, next INTEGER NOT NULL, PRIMARY KEY (topic, partition)
) WITHOUT ROWID;
"""
"""The topics that a file is a copy of, and the next offsets; part of each schema."""


class TopicCopy:
    """One file and one connection, which threads use in turn; `:memory:` for data that need not last.

    Records are stored in one transaction with the next offsets.
    """

    schema: ClassVar[str]
    """Statements that make the tables, TOPIC_TABLES among them."""
    version: ClassVar[int]
    tables: ClassVar[Sequence[str]]

    def __init__(self, path: Path | str) -> None:
        """Open or create the file; a file of another format is made again, since it is a copy."""
        self._turn = threading.RLock()
        try:
            self._open(path)
        except sqlite3.DatabaseError:
            self._connection.close()
            for suffix in ("", "-wal", "-shm"):
                Path(f"{path}{suffix}").unlink(missing_ok=True)
            self._open(path)

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
            raise sqlite3.DatabaseError(message)

    def close(self) -> None:
        """Close the file."""
        with self._turn:
            self._connection.close()

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
