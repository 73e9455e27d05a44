"""Store: the data of the web application in SQLite.

Requests and labels are copies of what the topics have, written in one transaction with the next offsets. A
restart continues where the process stopped, and a lost store is read from the topics again. Only leases,
skips, sessions and answers within their undo window exist here alone.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final, TextIO

from streamapp.errors import StreamappError

VERSION: Final = 8
CHECKPOINT_S: Final = 5.0
LOG_PAGES: Final = 16_384
"""With more log pages (of 4 KiB) than this, all threads wait until the log is copied and starts again."""
_BUSY_S: Final = 5.0

_CROWD: Final = """
CREATE TABLE crowd (key TEXT PRIMARY KEY, state TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE outcome (number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE);
CREATE TABLE gold (
  number INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL, instance_id TEXT NOT NULL,
  label TEXT NOT NULL, source TEXT NOT NULL CHECK (source IN ('file', 'agreed')),
  features TEXT NOT NULL, left_out INTEGER NOT NULL DEFAULT 0, prediction TEXT, rules TEXT, shares TEXT,
  seen TEXT, UNIQUE (key, instance_id)
);
CREATE TABLE gold_shown (
  annotator TEXT, gold INTEGER REFERENCES gold ON DELETE CASCADE, times INTEGER NOT NULL,
  PRIMARY KEY (annotator, gold)
) WITHOUT ROWID;
CREATE INDEX gold_shown_by_gold ON gold_shown (gold);
CREATE TABLE dealt (
  annotator TEXT PRIMARY KEY, cards INTEGER NOT NULL, last_gold INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TRIGGER request_came AFTER INSERT ON request WHEN new.kind <> 'gold' BEGIN
  UPDATE tally SET n = n + 1 WHERE name = 'request'; END;
CREATE TRIGGER request_went AFTER DELETE ON request WHEN old.kind <> 'gold' BEGIN
  UPDATE tally SET n = n - 1 WHERE name = 'request'; END;
CREATE TRIGGER answer_came AFTER INSERT ON answer WHEN new.kind <> 'gold' BEGIN
  UPDATE tally SET n = n + 1 WHERE name = new.state; END;
CREATE TRIGGER answer_changed AFTER UPDATE OF state ON answer WHEN new.kind <> 'gold' BEGIN
  UPDATE tally SET n = n - 1 WHERE name = old.state;
  UPDATE tally SET n = n + 1 WHERE name = new.state; END;
CREATE TRIGGER answer_went AFTER DELETE ON answer WHEN old.kind <> 'gold' BEGIN
  UPDATE tally SET n = n - 1 WHERE name = old.state; END;
"""
"""Tables of annotators' quality and gold questions, and triggers that do not count gold questions."""

_REVIEW: Final = """
CREATE TABLE review (
  key TEXT, instance_id TEXT, request_id TEXT, at_ms INTEGER NOT NULL, label TEXT, weight REAL,
  certainty REAL NOT NULL, votes TEXT NOT NULL, PRIMARY KEY (key, instance_id, request_id)
) WITHOUT ROWID;
CREATE INDEX review_by_age ON review (at_ms);
CREATE INDEX review_by_certainty ON review (certainty);
CREATE TABLE adjudication (
  key TEXT, instance_id TEXT, request_id TEXT, reviewer TEXT NOT NULL, label TEXT,
  reviewed_ms INTEGER NOT NULL, PRIMARY KEY (key, instance_id, request_id)
) WITHOUT ROWID;
CREATE TABLE past_record (
  key TEXT, instance_id TEXT, request_id TEXT, record TEXT NOT NULL, kept_ms INTEGER NOT NULL,
  PRIMARY KEY (key, instance_id, request_id)
) WITHOUT ROWID;
"""
_DAY: Final = """
CREATE TABLE day (
  annotator TEXT, day INTEGER, labels INTEGER NOT NULL, declined INTEGER NOT NULL, given INTEGER NOT NULL,
  PRIMARY KEY (annotator, day)
) WITHOUT ROWID;
"""
_SCHEMA: Final = """
CREATE TABLE identity (name TEXT NOT NULL);
CREATE TABLE origin (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE position (
  topic TEXT, partition INTEGER, next INTEGER NOT NULL, PRIMARY KEY (topic, partition)
) WITHOUT ROWID;
CREATE TABLE clock (partition INTEGER PRIMARY KEY, event_ms INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE class (
  key TEXT, name TEXT, answered_ms INTEGER, PRIMARY KEY (key, name)
) WITHOUT ROWID;
CREATE TABLE declared (key TEXT PRIMARY KEY, classes TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE attribute (
  key TEXT, name TEXT, declared TEXT NOT NULL, PRIMARY KEY (key, name)
) WITHOUT ROWID;
CREATE TABLE range (key TEXT PRIMARY KEY, ranges TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE request (
  number INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, key TEXT NOT NULL, subject TEXT NOT NULL,
  instance_id TEXT NOT NULL, request_id TEXT NOT NULL, partition INTEGER NOT NULL, asked_ms INTEGER NOT NULL,
  expires_ms INTEGER NOT NULL, utility REAL, prediction TEXT, strategy TEXT NOT NULL,
  features TEXT NOT NULL, left_out INTEGER NOT NULL, wanted TEXT NOT NULL, cost REAL, rules TEXT,
  shares TEXT NOT NULL, seen TEXT NOT NULL, needed INTEGER NOT NULL, reason TEXT,
  gold TEXT, gold_for TEXT,
  UNIQUE (kind, key, subject)
);
CREATE INDEX by_utility ON request (ifnull(utility, -9e999) DESC, asked_ms, number);
CREATE INDEX by_expiry ON request (partition, expires_ms);
CREATE INDEX by_instance ON request (key, instance_id);
CREATE INDEX request_by_model ON request (key, asked_ms, expires_ms);
CREATE TABLE settled (
  key TEXT, instance_id TEXT, label_ms INTEGER NOT NULL, seen_ms INTEGER NOT NULL,
  PRIMARY KEY (key, instance_id)
) WITHOUT ROWID;
CREATE INDEX settled_by_age ON settled (seen_ms);
CREATE TABLE given (
  key TEXT, instance_id TEXT, name TEXT, given_ms INTEGER NOT NULL, seen_ms INTEGER NOT NULL,
  PRIMARY KEY (key, instance_id, name)
) WITHOUT ROWID;
CREATE INDEX given_by_age ON given (seen_ms);
CREATE TABLE lease (
  request INTEGER PRIMARY KEY REFERENCES request ON DELETE CASCADE, annotator TEXT NOT NULL,
  until_ms INTEGER NOT NULL, several INTEGER NOT NULL
);
CREATE INDEX lease_by_annotator ON lease (annotator);
CREATE TABLE skip (
  request INTEGER REFERENCES request ON DELETE CASCADE, annotator TEXT, skipped_ms INTEGER NOT NULL,
  PRIMARY KEY (request, annotator)
) WITHOUT ROWID;
CREATE TABLE vote (
  request INTEGER REFERENCES request ON DELETE CASCADE, annotator TEXT, label TEXT,
  answered_ms INTEGER NOT NULL, due_ms INTEGER NOT NULL, PRIMARY KEY (request, annotator)
) WITHOUT ROWID;
CREATE INDEX vote_by_annotator ON vote (annotator, due_ms);
CREATE TABLE answer (
  number INTEGER PRIMARY KEY AUTOINCREMENT, request INTEGER UNIQUE REFERENCES request ON DELETE SET NULL,
  kind TEXT NOT NULL, key TEXT NOT NULL, instance_id TEXT NOT NULL, partition INTEGER NOT NULL,
  asked_ms INTEGER NOT NULL, annotator TEXT NOT NULL, label TEXT, given TEXT, weight REAL NOT NULL,
  answered_ms INTEGER NOT NULL, due_ms INTEGER NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('waiting', 'sending', 'doubt', 'sent', 'overtaken'))
);
CREATE INDEX answer_by_state ON answer (state, due_ms);
CREATE INDEX answer_by_annotator ON answer (annotator, due_ms) WHERE state = 'waiting';
CREATE TABLE tally (name TEXT PRIMARY KEY, n INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO tally VALUES
  ('request', 0), ('waiting', 0), ('sending', 0), ('doubt', 0), ('sent', 0), ('overtaken', 0);
CREATE TABLE audit (number INTEGER PRIMARY KEY AUTOINCREMENT, entry TEXT NOT NULL);
CREATE TABLE session (
  digest BLOB PRIMARY KEY, annotator TEXT NOT NULL, until_ms INTEGER NOT NULL, proof TEXT NOT NULL
) WITHOUT ROWID;
"""

_FROM_3: Final = """
ALTER TABLE class ADD COLUMN answered_ms INTEGER;
CREATE TABLE declared (key TEXT PRIMARY KEY, classes TEXT NOT NULL) WITHOUT ROWID;
DELETE FROM position WHERE topic LIKE '%controls';
DELETE FROM session;
ALTER TABLE session ADD COLUMN proof TEXT NOT NULL DEFAULT '';
"""
"""Upgrade from format 3. Controls are read again, for the classes they close, and people sign in again."""
_FROM_4: Final = "ALTER TABLE request ADD COLUMN reason TEXT;"
_FROM_5: Final = (
    "CREATE INDEX IF NOT EXISTS request_by_model ON request (key, asked_ms, expires_ms);"
    "CREATE INDEX IF NOT EXISTS answer_by_day ON answer (annotator, answered_ms);"
)
_FROM_6: Final = f"""
ALTER TABLE request ADD COLUMN gold TEXT;
ALTER TABLE request ADD COLUMN gold_for TEXT;
DROP TRIGGER request_came; DROP TRIGGER request_went;
DROP TRIGGER answer_came; DROP TRIGGER answer_changed; DROP TRIGGER answer_went;
{_CROWD}{_REVIEW}"""
_FROM_7: Final = f"""{_DAY}
INSERT INTO day SELECT annotator, answered_ms / 86400000, total(kind <> 'features' AND label IS NOT NULL),
  total(kind <> 'features' AND label IS NULL), total(kind = 'features') FROM answer
  WHERE instr(annotator, '+') = 0 GROUP BY 1, 2;
DROP INDEX answer_by_day;
"""  # noqa: S608 - text of ours
"""Upgrade from format 7. An answer of several people ("ann+bob") does not show what each has answered."""
_UPGRADES: Final = {
    3: _FROM_3 + _FROM_4 + _FROM_5 + _FROM_6 + _FROM_7,
    4: _FROM_4 + _FROM_5 + _FROM_6 + _FROM_7,
    5: _FROM_5 + _FROM_6 + _FROM_7,
    6: _FROM_6 + _FROM_7,
    7: _FROM_7,
}
"""Format of an older release → the statements that bring its file to the present format."""


class Store:
    """One file, with one connection for writing and one for reading, each used by one thread at a time.

    Readers do not wait for writers. Transactions that several threads have committed reach the disk with
    one sync. A third connection, in a separate thread, copies the log into the file while other threads
    write. `:memory:`, for data that need not last, has one connection for everything.
    """

    def __init__(self, path: Path | str) -> None:
        """Open or create the file; StreamappError if another process has it or it has another format."""
        self._turn = threading.RLock()
        self._reading = threading.Lock()
        self._syncing = threading.Lock()
        self._committed = self._synced = 0  # durable transactions, and those that are on the disk
        self._log: int | None = None  # descriptor of SQLite's write-ahead log
        self._writer: int | None = None  # the thread whose transaction is open
        self._closing = threading.Event()
        self._checkpoints: threading.Thread | None = None
        self._lock_file = self._locked(Path(path)) if str(path) != ":memory:" else None
        self._connection = self._reader = sqlite3.connect(
            path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False
        )
        try:
            self._prepare(path)
            if self._lock_file is not None:
                self._open_others(path)
        except StreamappError:
            self.close()
            raise
        except sqlite3.DatabaseError as error:
            self.close()
            message = f"--state {path}: {error}; name another file (what is lost is read from the topics)"
            raise StreamappError(message) from None

    @staticmethod
    def _locked(path: Path) -> TextIO:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.with_name(path.name + ".lock").open("w")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            message = f"--state {path} must be of one process; another 'grove web' has it: name another file"
            raise StreamappError(message) from None
        return file

    def _prepare(self, path: Path | str) -> None:
        run = self._connection.execute
        run("PRAGMA journal_mode = WAL")
        run("PRAGMA synchronous = NORMAL")  # `_wait_for_disk` syncs durable transactions
        run("PRAGMA foreign_keys = ON")
        if str(path) != ":memory:":
            Path(path).chmod(0o600)
        (version,) = run("PRAGMA user_version").fetchone()
        if version == 0:
            self._connection.executescript(
                f"BEGIN; {_SCHEMA} {_CROWD}{_REVIEW}{_DAY} PRAGMA user_version = {VERSION}; COMMIT;"
            )
            run("INSERT INTO identity VALUES (?)", (secrets.token_hex(8),))
        elif version in _UPGRADES:
            self._connection.executescript(
                f"BEGIN; {_UPGRADES[version]} PRAGMA user_version = {VERSION}; COMMIT;"
            )
        elif version != VERSION:
            message = (
                f"--state {path}: it has format {version}, this release reads {min(_UPGRADES)} to {VERSION}; "
                "run the release that wrote it, or a later one, or name another file (labels that were not "
                "sent stay in this one)"
            )
            raise StreamappError(message)

    def _open_others(self, path: Path | str) -> None:
        self._reader = sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False)
        self._reader.execute("PRAGMA query_only = ON")
        self._log = os.open(f"{path}-wal", os.O_RDONLY)
        self._connection.execute("PRAGMA wal_autocheckpoint = 0")  # or each commit would copy the log
        self._checkpoints = threading.Thread(
            target=self._keep_log_short, args=(path,), name="checkpoints", daemon=True
        )
        self._checkpoints.start()

    def _keep_log_short(self, path: Path | str) -> None:
        """Copy the log into the file now and then; the log starts again when no thread writes or reads."""
        with closing(sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None)) as connection:
            while not self._closing.wait(CHECKPOINT_S):
                if self._checkpoint(connection) > LOG_PAGES:  # only a little has come since the first copy
                    with self._turn, self._reading:
                        self._checkpoint(connection)

    def _checkpoint(self, connection: sqlite3.Connection) -> int:
        """Copy the pages that can be copied without waiting; return how many pages the log has."""
        _, pages, _ = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        return int(pages)

    @contextmanager
    def transaction(self, *, durable: bool = True) -> Iterator[sqlite3.Connection]:
        """Give the connection to this thread for one atomic transaction.

        A transaction within another is a part of it. Durable: the changes are on disk when the context
        ends. Not durable: there is no wait for the disk, and if the machine fails, these changes and later
        ones that are not durable may be lost.
        """
        mine = 0
        with self._turn:
            if self._connection.in_transaction:
                yield self._connection
                return
            before = self._connection.total_changes
            self._connection.execute("BEGIN IMMEDIATE")
            self._writer = threading.get_ident()
            try:
                yield self._connection
            except BaseException:
                if self._connection.in_transaction:  # SQLite itself has ended it if the disk is full
                    self._connection.execute("ROLLBACK")
                raise
            finally:
                self._writer = None
            self._connection.execute("COMMIT")
            if durable and self._connection.total_changes != before:
                self._committed += 1
                mine = self._committed
        self._wait_for_disk(mine)

    def _wait_for_disk(self, mine: int) -> None:
        """Wait until the first `mine` durable transactions are on disk.

        SQLite writes commits to the log in order, so that one sync covers all commits before it, of any
        thread.
        """
        if self._log is None or mine <= self._synced:
            return
        with self._syncing:
            if mine <= self._synced:
                return
            upto = self._committed
            os.fsync(self._log)
            self._synced = upto

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Give a connection to this thread for queries; within a transaction, the transaction's."""
        if self._log is None or self._writer == threading.get_ident():
            with self._turn:
                yield self._connection
            return
        with self._reading:
            yield self._reader

    def compact(self) -> None:
        """Write the file again, without the bytes of deleted rows, and empty the log."""
        with self._turn, self._reading:
            self._connection.execute("VACUUM")
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Close the file; a process that ends without this loses nothing."""
        self._closing.set()
        if self._checkpoints is not None:
            self._checkpoints.join()
        with self._turn, self._reading, self._syncing:
            if self._log is not None:
                os.close(self._log)
                self._log = None
            self._reader.close()
            self._connection.close()
            if self._lock_file is not None:
                self._lock_file.close()
                self._lock_file = None
