"""People store: statistics, agreement and pauses of annotators in SQLite, derived from the topic `audit`.

All of it is a copy of what the topic has, written in one transaction with the next offsets. A lost file is
filled again, with the same figures. Each entry changes a few counts, so that no answer is read twice.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from streamapp.people import annotator_statistics, answer_overlap, pauses
from streamapp.people.annotator_answers import Answer, answer_of
from streamapp.people.pauses import Pause, PauseRule, TooLow
from streamapp.people.topic_copy import TOPIC_TABLES, TopicCopy
from topics.columns.records import LATEST_MS, AuditEntry

VERSION: Final = 1
KEEP_MS: Final = 30 * 24 * 3600 * 1000
"""How long answers are kept for comparison with later answers of other people to the same record."""
_SCHEMA: Final = f"""{TOPIC_TABLES}
CREATE TABLE entry (id TEXT PRIMARY KEY, at_ms INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX entry_by_age ON entry (at_ms);
CREATE TABLE answer (
  key TEXT, instance_id TEXT, request_id TEXT, annotator TEXT, id TEXT, label TEXT, at_ms INTEGER NOT NULL,
  seconds REAL, gold TEXT, compared INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (key, instance_id, request_id, annotator, id)
) WITHOUT ROWID;
CREATE INDEX answer_by_age ON answer (at_ms);
CREATE INDEX compared_answers ON answer (annotator, at_ms) WHERE compared > 0;
CREATE INDEX gold_answers ON answer (annotator, at_ms) WHERE gold IS NOT NULL;
{annotator_statistics.SCHEMA}{answer_overlap.SCHEMA}{pauses.SCHEMA}
"""
_TABLES: Final = ("origin", "position", "entry", "answer", "day", "pace", "pair", "pattern", "pause")


class PeopleStore(TopicCopy):
    """One file and one connection, which threads use in turn; `:memory:` for data that need not last."""

    schema, version, tables = _SCHEMA, VERSION, _TABLES

    def _opened(self) -> None:
        self._pauses = pauses.pauses(self._connection)
        rows = self._connection.execute(
            "SELECT DISTINCT annotator FROM answer WHERE compared > 0 OR gold NOTNULL"
        )
        self._changed = {annotator for (annotator,) in rows}  # people whom the rule has not looked at

    # -- writing ------------------------------------------------------------------------------------------

    def _emptied(self) -> None:
        self._pauses, self._changed = {}, set()

    def apply(self, entries: Iterable[AuditEntry], positions: Mapping[tuple[str, int], int]) -> None:
        """Store entries, and the next offsets. Entries of one user must come in their order."""
        with self._transaction() as db:
            for entry in entries:
                if _is_sound(entry):
                    self._take(db, entry)
            self._note(db, positions)
            self._pauses = pauses.pauses(db)

    def _take(self, db: sqlite3.Connection, entry: AuditEntry) -> None:
        is_new = db.execute("INSERT OR IGNORE INTO entry VALUES (?, ?)", (entry.id, entry.at_ms)).rowcount
        if not is_new:
            return
        if entry.action in (pauses.PAUSE, pauses.RESUME):
            pauses.take_pause(db, entry)
        elif entry.action == "undo":
            if self._take_back(db, entry):
                annotator_statistics.add(db, entry.user, annotator_statistics.day_of(entry.at_ms), undone=1)
        elif (answer := answer_of(entry)) is not None:
            if answer.gold is None:
                self._take_back(db, entry)  # a lost queue may show a record to the same person again
            db.execute(
                "INSERT INTO answer (annotator, key, instance_id, request_id, label, at_ms, seconds, gold, "
                "id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (*answer[:8], entry.id),  # figures need neither reason nor comment
            )
            self._count(db, answer, 1)

    def _take_back(self, db: sqlite3.Connection, entry: AuditEntry) -> bool:
        """Take back the last answer of an entry's user to its request; return whether there was one."""
        where = "WHERE key = ? AND instance_id = ? AND request_id = ? AND annotator = ?"
        place = (entry.key, entry.instance_id, entry.request_id or "", entry.user)
        row = db.execute(
            "SELECT annotator, key, instance_id, request_id, label, at_ms, seconds, gold, id "  # noqa: S608
            f"FROM answer {where} ORDER BY at_ms DESC, id DESC LIMIT 1",
            place,
        ).fetchone()
        if row is None:
            return False
        *row, id_ = row
        db.execute(f"DELETE FROM answer {where} AND id = ?", (*place, id_))  # noqa: S608 - text of ours
        self._count(db, Answer(*row), -1)
        return True

    def _count(self, db: sqlite3.Connection, answer: Answer, times: int) -> None:
        annotator_statistics.count_answer(db, answer, times)
        if answer.gold is not None:
            self._changed.add(answer.annotator)
            return
        if answer.label is None:
            return
        record = (answer.key, answer.instance_id, answer.request_id)
        rows = db.execute(
            "SELECT annotator, key, instance_id, request_id, label, at_ms, seconds, gold FROM answer "
            "WHERE key = ? AND instance_id = ? AND request_id = ? AND annotator <> ? "
            "AND gold IS NULL AND label IS NOT NULL ORDER BY annotator",
            (*record, answer.annotator),
        ).fetchall()
        others = [Answer(*row) for row in rows]
        if not others:
            return
        answer_overlap.compare(db, answer, others, times)
        where = "WHERE key = ? AND instance_id = ? AND request_id = ? AND gold IS NULL AND label IS NOT NULL"
        db.execute(f"UPDATE answer SET compared = ? {where}", (len(others) - (times < 0), *record))  # noqa: S608
        self._changed |= {answer.annotator, *(other.annotator for other in others)}

    def tidy(self, now: int) -> None:
        """Delete answers that are too old to be compared; call it when the topic is read to its end."""
        with self._transaction() as db:
            (newest,) = db.execute("SELECT max(at_ms) FROM entry").fetchone()
            for table in ("answer", "entry"):
                db.execute(f"DELETE FROM {table} WHERE at_ms < ?", (min(newest or 0, now) - KEEP_MS,))  # noqa: S608

    # -- reading ------------------------------------------------------------------------------------------

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Give the connection to this thread for queries of the modules of this package."""
        with self._turn:
            yield self._connection

    @property
    def pause_states(self) -> Mapping[str, Pause]:
        """Return the state of each person who was ever paused or resumed, by name; without a query."""
        return self._pauses

    def to_pause(self, rule: PauseRule) -> list[TooLow]:
        """Return the people whom the rule pauses now, of those with new figures since the last call.

        Call it when the topic is read to its end, because figures of a part of it may be other ones, and
        again when the entries about these people are read, because there may be more.
        """
        with self._turn:
            low = pauses.below_limit(self._connection, sorted(self._changed), rule)
            if not low:
                self._changed.clear()
            return low


def _is_sound(entry: AuditEntry) -> bool:
    """Return whether the members of an entry have their types; the topic may hold anything."""
    texts = (entry.id, entry.user, entry.action)
    about = (entry.key, entry.instance_id, entry.request_id)
    optional = (*about, entry.detail, entry.label, entry.gold, entry.annotator)
    return (
        all(isinstance(text, str) for text in texts)
        and all(isinstance(text, str | None) for text in optional)
        and type(entry.at_ms) is int
        and 0 <= entry.at_ms <= LATEST_MS
        and (entry.seconds is None or _is_time(entry.seconds))
    )


def _is_time(seconds: object) -> bool:
    return isinstance(seconds, int | float) and math.isfinite(seconds) and 0 <= seconds <= LATEST_MS
