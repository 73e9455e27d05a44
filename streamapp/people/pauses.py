"""Pauses: annotators who get no cards for now, by audit entries that pause and resume them.

The newest entry about a person counts, by its time, because the partitions of the topic are read side by
side.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from streamapp.people.wilson_interval import wilson_interval
from topics.columns.records import LATEST_MS, AuditEntry

PAUSE, RESUME = "pause", "resume"
"""Actions of audit entries."""
USER: Final = "pausing"
"""The user of an entry of the rule."""
NEWEST: Final = 500
"""Gold questions, and compared answers, that the rule looks at: the newest ones of a person."""
CHANGEABLE_MS: Final = LATEST_MS - 24 * 3600 * 1000
"""A day before the last time of an audit entry: a pause from then on could never be taken back."""
SCHEMA: Final = """
CREATE TABLE pause (
  annotator TEXT PRIMARY KEY, at_ms INTEGER NOT NULL, id TEXT NOT NULL, is_paused INTEGER NOT NULL,
  user TEXT NOT NULL, reason TEXT NOT NULL
) WITHOUT ROWID;
"""


class PauseRule(NamedTuple):
    """The rule that pauses a person whose answers are too often wrong."""

    below: float  # share of right gold questions, or of equal answers, that a person must be able to reach
    after: int = 20  # gold questions, or comparisons, from which on the rule applies


class TooLow(NamedTuple):
    """A person whose share of right or equal answers is below the limit."""

    annotator: str
    share: float
    reason: str  # for the person and for operators


@dataclass(frozen=True, slots=True)
class Pause:
    """The state of a person who was paused or resumed."""

    annotator: str
    at_ms: int
    is_paused: bool
    user: str  # the operator, or USER for the rule
    reason: str


def take_pause(db: sqlite3.Connection, entry: AuditEntry) -> None:
    """Apply an entry that pauses or resumes a person; an entry older than the stored one changes nothing."""
    if entry.annotator is None or (entry.action == PAUSE and entry.at_ms >= CHANGEABLE_MS):
        return
    row = db.execute("SELECT at_ms, id FROM pause WHERE annotator = ?", (entry.annotator,)).fetchone()
    if row is None or tuple(row) < (entry.at_ms, entry.id):
        db.execute(
            "INSERT OR REPLACE INTO pause VALUES (?, ?, ?, ?, ?, ?)",
            (
                *(entry.annotator, entry.at_ms, entry.id, entry.action == PAUSE),
                *(entry.user, entry.detail or "no reason is given"),
            ),
        )


def pauses(db: sqlite3.Connection) -> dict[str, Pause]:
    """Return the state of each person who was ever paused or resumed, by name."""
    rows = db.execute("SELECT annotator, at_ms, is_paused, user, reason FROM pause ORDER BY annotator")
    return {
        name: Pause(name, at_ms, bool(paused), user, reason) for name, at_ms, paused, user, reason in rows
    }


def below_limit(db: sqlite3.Connection, annotators: Sequence[str], rule: PauseRule) -> list[TooLow]:
    """Return the people whom the rule pauses, of some people with new figures.

    Only answers after a person's last resumption count. A person is paused if even the upper end of the 95 %
    interval of their share is below the limit. Of those who answer otherwise than others only the one with
    the lowest share is paused: then the answers of this person do not count for the others any more.
    """
    having_cards = [name for name in annotators if not _state(db, name)[1]]
    by_gold = [low for name in having_cards if (low := _by_gold(db, name, rule)) is not None]
    if by_gold:
        return by_gold
    by_others = [low for name in having_cards if (low := _by_others(db, name, rule)) is not None]
    return sorted(by_others, key=lambda low: (low.share, low.annotator))[:1]


def _state(db: sqlite3.Connection, annotator: str) -> tuple[int, int]:
    """Return the time of the last pause or resumption, and whether the person is paused."""
    row = db.execute("SELECT at_ms, is_paused FROM pause WHERE annotator = ?", (annotator,)).fetchone()
    return row or (0, 0)


def _by_gold(db: sqlite3.Connection, annotator: str, rule: PauseRule) -> TooLow | None:
    gold, right = db.execute(
        "SELECT count(*), total(label = gold) FROM (SELECT label, gold FROM answer WHERE annotator = ? "
        "AND gold IS NOT NULL AND label IS NOT NULL AND at_ms > ? ORDER BY at_ms DESC LIMIT ?)",
        (annotator, _state(db, annotator)[0], NEWEST),
    ).fetchone()
    return _too_low(annotator, int(right), gold, "gold questions right", rule)


def _by_others(db: sqlite3.Connection, annotator: str, rule: PauseRule) -> TooLow | None:
    """Compare a person's answers with the commonest answer of others who have cards; ties do not count."""
    rows = db.execute(
        "SELECT a.key, a.instance_id, a.request_id, a.label, o.label FROM (SELECT * FROM answer "
        "WHERE annotator = ? AND compared > 0 AND at_ms > ? ORDER BY at_ms DESC LIMIT ?) a "
        "JOIN answer o ON o.key = a.key AND o.instance_id = a.instance_id AND o.request_id = a.request_id "
        "AND o.annotator <> a.annotator WHERE o.gold IS NULL AND o.label IS NOT NULL AND NOT EXISTS "
        "(SELECT 1 FROM pause p WHERE p.annotator = o.annotator AND p.is_paused)",
        (annotator, _state(db, annotator)[0], NEWEST),
    )
    by_record: dict[tuple[str, ...], list[str]] = {}
    for *record, other in rows:
        by_record.setdefault(tuple(record), []).append(other)
    compared = agreed = 0
    for record, others in by_record.items():
        (label, most), *rest = Counter(others).most_common(2)
        if not rest or rest[0][1] < most:
            compared += 1
            agreed += record[-1] == label
    return _too_low(annotator, agreed, compared, "answers as most other people answered", rule)


def _too_low(annotator: str, hits: int, n: int, sort: str, rule: PauseRule) -> TooLow | None:
    if n < max(rule.after, 1):
        return None
    high = wilson_interval(hits, n)[1]
    if high >= rule.below:
        return None
    most, limit = f"{high * 100:.0f} %", f"{rule.below * 100:.0f} %"
    reason = f"{hits} of {n} {sort}: at most {most} can be expected, and the limit is {limit}"
    return TooLow(annotator, hits / n, reason)
