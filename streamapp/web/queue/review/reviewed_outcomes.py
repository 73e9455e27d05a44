"""Reviewed outcomes: results of several answers that a reviewer should see, and records of their requests.

Outcomes and adjudications come from the topic `audit`, in any order of its partitions, so that a lost store
gets them again. The record of a request is kept when its outcome is made; after a lost store it is known
only as long as the request is read again before its label.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from typing import Final

import orjson

from streamapp.people.annotator_answers import AGREEMENT
from streamapp.web.annotation_terms import Terms
from topics.columns.records import AuditEntry

REVIEW: Final = "review"
"""Action of a reviewer's decision in `audit`."""
OUTCOMES_MAX: Final = 20_000
_RECORD: Final = (
    "partition, asked_ms, expires_ms, prediction, strategy, features, left_out, rules, shares, seen, utility"
)


def needs_review(terms: Terms, label: str | None, votes: Mapping[str, str | None], certainty: float) -> bool:
    """Return whether annotators gave different classes, or the outcome is not certain enough.

    >>> needs_review(Terms(), "a", {"ann": "a", "bob": "b"}, 0.99)
    True
    >>> needs_review(Terms(), "a", {"ann": "a", "bob": None}, 0.99)
    False
    >>> needs_review(Terms(), None, {"ann": None}, 1.0)
    False
    """
    classes = set(votes.values()) - {None}
    if len(classes) > 1:
        return True
    return label is not None and certainty < terms.review_below


def certainty_of(label: str | None, votes: Mapping[str, str | None], posterior: float | None) -> float:
    """Return the posterior of a label or, without one, its share of the votes; 0 for a tie of classes."""
    if posterior is not None:
        return posterior
    if label is None:
        return 0.0 if any(vote is not None for vote in votes.values()) else 1.0
    return sum(vote == label for vote in votes.values()) / max(1, len(votes))


def take(db: sqlite3.Connection, terms: Terms, entries: Iterable[AuditEntry]) -> None:
    """Store the outcomes that need a review, and the adjudications, among these entries."""
    for entry in entries:
        if entry.key is None or entry.instance_id is None:
            continue
        about = (entry.key, entry.instance_id, entry.request_id or "")
        if entry.action == REVIEW:
            take_adjudication(db, about, entry.user, entry.label, entry.at_ms)
            continue
        if entry.user != AGREEMENT or entry.action != "outcome" or not entry.votes:
            continue
        certainty = certainty_of(entry.label, entry.votes, entry.posterior)
        if needs_review(terms, entry.label, entry.votes, certainty):
            db.execute(
                "INSERT OR IGNORE INTO review VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    *(*about, entry.at_ms, entry.label, entry.weight, certainty),
                    orjson.dumps(entry.votes, option=orjson.OPT_SORT_KEYS).decode(),
                ),
            )


def take_adjudication(
    db: sqlite3.Connection, about: tuple[str, str, str], reviewer: str, label: str | None, at_ms: int
) -> None:
    """Store a decision about a request, the newest counts; about: key, instance id and request id."""
    db.execute(
        "INSERT INTO adjudication VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
        "reviewer = excluded.reviewer, label = excluded.label, reviewed_ms = excluded.reviewed_ms "
        "WHERE (excluded.reviewed_ms, excluded.reviewer) > (reviewed_ms, reviewer)",
        (*about, reviewer, label, at_ms),
    )


def keep_record(db: sqlite3.Connection, number: int, now: int) -> None:
    """Keep the record of a request, which is deleted when its label is sent."""
    db.execute(
        f"INSERT OR REPLACE INTO past_record SELECT key, instance_id, request_id, json_array({_RECORD}), ? "  # noqa: S608 - names of ours
        "FROM request WHERE number = ? AND kind = 'label'",
        (now, number),
    )


def tidy(db: sqlite3.Connection, before_ms: int) -> None:
    """Delete outcomes and records that are too old, and the surest of too many outcomes."""
    db.execute("DELETE FROM review WHERE at_ms < ?", (before_ms,))
    db.execute("DELETE FROM adjudication WHERE reviewed_ms < ?", (before_ms,))
    db.execute("DELETE FROM past_record WHERE kept_ms < ?", (before_ms,))
    (count,) = db.execute("SELECT count(*) FROM review").fetchone()
    if count > OUTCOMES_MAX:
        db.execute(
            "DELETE FROM review WHERE (key, instance_id, request_id) IN (SELECT key, instance_id, request_id "
            "FROM review ORDER BY certainty DESC, at_ms, key, instance_id, request_id LIMIT ?)",
            (count - OUTCOMES_MAX,),
        )
