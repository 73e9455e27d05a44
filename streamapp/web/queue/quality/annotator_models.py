"""Annotator models of the store: they follow the outcomes on the topic `audit`, and nothing else.

All outcomes have one user, so that they are in one partition, in one order. A store that was lost, and
several applications on one cluster, come to equal models.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Final

import orjson

from streamapp.people import dawid_skene
from streamapp.people.annotator_answers import AGREEMENT
from streamapp.people.dawid_skene import AnnotatorModel
from topics.columns.records import AuditEntry

REMEMBERED: Final = 1000
"""Entries whose ids are remembered; an entry that comes again does so in a batch of at most 500."""
VOTES_MAX: Final = 200
"""Votes of an outcome, at most: twice the largest number of `--agree`."""


def take(db: sqlite3.Connection, entries: Iterable[AuditEntry]) -> None:
    """Learn from the outcomes and gold answers among these entries, each once."""
    models: dict[str, AnnotatorModel] = {}
    for entry in entries:
        if entry.user != AGREEMENT or entry.key is None or entry.votes is None or not _is_sound(entry):
            continue
        if not db.execute("INSERT OR IGNORE INTO outcome (id) VALUES (?)", (entry.id,)).rowcount:
            continue
        model = models.setdefault(entry.key, model_of(db, entry.key))
        if entry.gold is None:
            model.settle(entry.votes, entry.prior)
        else:
            for annotator, label in sorted(entry.votes.items()):
                model.learn_gold(annotator, entry.gold, label)
    if not models:
        return
    for key, model in models.items():
        state = orjson.dumps(dawid_skene.written(model)).decode()
        db.execute("INSERT OR REPLACE INTO crowd VALUES (?, ?)", (key, state))
    db.execute("DELETE FROM outcome WHERE number <= (SELECT max(number) FROM outcome) - ?", (REMEMBERED,))


def _is_sound(entry: AuditEntry) -> bool:
    """Return whether the members of an outcome have their types; the topic may hold anything."""
    votes: object = entry.votes
    prior: object = entry.prior or {}
    return (
        isinstance(entry.id, str)
        and isinstance(entry.key, str)
        and isinstance(entry.gold, str | None)
        and isinstance(votes, dict)
        and len(votes) <= VOTES_MAX
        and all(isinstance(label, str | None) for label in votes.values())
        and isinstance(prior, dict)
        and all(isinstance(share, int | float) and 0 <= share <= 1 for share in prior.values())
    )


def model_of(db: sqlite3.Connection, key: str) -> AnnotatorModel:
    """Return the annotator model of a model key; one without answers if there is none."""
    row = db.execute("SELECT state FROM crowd WHERE key = ?", (key,)).fetchone()
    return AnnotatorModel() if row is None else dawid_skene.read(orjson.loads(row[0]))
