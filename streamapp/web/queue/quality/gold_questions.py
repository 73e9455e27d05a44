"""Gold questions: records with a settled class that annotators get like any other card.

The cards of an annotator are counted. With a share s, card n belongs to block ⌊(n - 1)·s⌋; each block but
the first may have one gold question, at a place that a hash of the annotator and the block gives. So at most
n·s of the first n cards are gold questions. A gold question takes the place of a request that the annotator
would have got, with its deadline, and the request stays free.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from hashlib import blake2b
from typing import Final

import orjson

from streamapp.people.annotator_answers import AGREEMENT
from streamapp.web import audit_log
from streamapp.web.queue import intake
from streamapp.web.queue.quality.gold_file import GoldRecord
from topics.columns.records import AuditEntry

AGREED_MAX: Final = 200
"""Records of a model key that were promoted because all annotators gave them one class; the newest."""
OWN_ANSWER: Final = 1 << 30
"""Times that stand for an annotator whose answer settled the record: they do not get it."""
_GUESS: Final = ("prediction", "rules", "shares")
_OPEN: Final = f"""
INSERT INTO request (kind, key, subject, instance_id, request_id, features, left_out, gold, gold_for,
  {", ".join(_GUESS)}, seen, utility, reason, partition, asked_ms, expires_ms, strategy, wanted, needed)
SELECT 'gold', g.key, g.number || ':' || :annotator, g.instance_id, :request_id, g.features, g.left_out,
  g.label, :annotator,
  {", ".join(f"CASE WHEN g.prediction IS NULL THEN r.{name} ELSE g.{name} END" for name in _GUESS)},
  ifnull(g.seen, r.seen), r.utility, r.reason, r.partition, r.asked_ms, r.expires_ms, r.strategy, '[]', 1
FROM gold g, request r WHERE g.number = :gold AND r.number = :request RETURNING number
"""  # noqa: S608 - names of ours
"""A gold question has its own guess, if it has one; deadline, utility and reason are those of the request."""


def replace_file(db: sqlite3.Connection, records: Iterable[GoldRecord]) -> None:
    """Make these the records of the gold file; who has seen which of them stays."""
    places = set()
    for record in records:
        places.add((record.key, record.instance_id))
        db.execute(
            "INSERT INTO gold (key, instance_id, label, source, features, left_out, prediction, rules, "
            "shares) VALUES (?, ?, ?, 'file', ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET label = "
            "excluded.label, source = 'file', features = excluded.features, left_out = excluded.left_out, "
            "prediction = excluded.prediction, rules = excluded.rules, shares = excluded.shares, seen = NULL",
            (
                *(record.key, record.instance_id, record.label),
                *(orjson.dumps(record.features).decode(), record.left_out),
                *(record.prediction, record.rules, orjson.dumps(record.shares).decode()),
            ),
        )
    intake.take_names(db, [(record.key, record.label) for record in records], [])
    rows = db.execute("SELECT number, key, instance_id FROM gold WHERE source = 'file'").fetchall()
    gone = [(number,) for number, key, instance_id in rows if (key, instance_id) not in places]
    db.executemany("DELETE FROM gold WHERE number = ?", gone)


def promote(db: sqlite3.Connection, request: int, label: str, annotators: Sequence[str]) -> None:
    """Keep a request on whose class all annotators agreed, for other annotators."""
    row = db.execute(
        "INSERT INTO gold (key, instance_id, label, source, features, left_out, prediction, "
        "rules, shares, seen) SELECT key, instance_id, ?, 'agreed', features, left_out, "
        "prediction, rules, shares, seen FROM request WHERE number = ? ON CONFLICT DO NOTHING "
        "RETURNING number, key",
        (label, request),
    ).fetchone()
    if row is None:
        return
    number, key = row
    rows = [(name, number, OWN_ANSWER) for name in annotators]
    db.executemany("INSERT INTO gold_shown VALUES (?, ?, ?)", rows)
    db.execute(
        "DELETE FROM gold WHERE source = 'agreed' AND key = ? AND number NOT IN (SELECT number FROM gold "
        "WHERE source = 'agreed' AND key = ? ORDER BY number DESC LIMIT ?)",
        (key, key, AGREED_MAX),
    )


def deal(db: sqlite3.Connection, share: float, annotator: str, request: int) -> int:
    """Return the card that the annotator gets: this request, or a gold question in its place."""
    if share <= 0.0:
        return request
    row = db.execute("SELECT cards, last_gold FROM dealt WHERE annotator = ?", (annotator,)).fetchone()
    cards, last_gold = row or (0, 0)
    cards += 1
    number = None
    if is_due(Fraction(repr(share)), annotator, cards, last_gold):
        number = _question(db, annotator, request, cards)
    db.execute(
        "INSERT OR REPLACE INTO dealt VALUES (?, ?, ?)",
        (annotator, cards, last_gold if number is None else cards),
    )
    return request if number is None else number


def is_due(share: Fraction, annotator: str, card: int, last_gold: int) -> bool:
    """Return whether card number `card` of an annotator (1, 2, …) may be a gold question.

    last_gold: number of the card that was the last gold question; 0: there was none.
    """
    block = int((card - 1) * share)
    if block == 0:
        return False
    first, after = (1 - int(-block // share), 1 - int(-(block + 1) // share))
    return last_gold < first and card >= first + _draw(annotator, block) % (after - first)


def _draw(annotator: str, number: int) -> int:
    text = f"{number}:{annotator}".encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(text, digest_size=8).digest())


def _question(db: sqlite3.Connection, annotator: str, request: int, card: int) -> int | None:
    """Open a gold question in the place of a request; None: its model has none for this annotator now."""
    row = db.execute("SELECT key FROM request WHERE number = ? AND kind = 'label'", (request,)).fetchone()
    if row is None:
        return None
    (key,) = row
    allowed = intake.lets_in_of(db, key)
    choices = db.execute(
        "SELECT g.number, g.label, ifnull(s.times, 0) FROM gold g "
        "LEFT JOIN gold_shown s ON s.gold = g.number AND s.annotator = ? "
        "WHERE g.key = ? AND ifnull(s.times, 0) < ? "
        "AND NOT EXISTS (SELECT 1 FROM request r WHERE r.key = g.key AND r.instance_id = g.instance_id "
        "AND (r.kind = 'label' OR r.gold_for = ?)) ORDER BY 3, 1",
        (annotator, key, OWN_ANSWER, annotator),
    ).fetchall()
    choices = [(number, times) for number, label, times in choices if allowed is None or label in allowed]
    fewest = [number for number, times in choices if times == choices[0][1]]
    if not fewest:
        return None
    gold = fewest[_draw(annotator, card) % len(fewest)]
    (times,) = db.execute(
        "INSERT INTO gold_shown VALUES (?, ?, 1) ON CONFLICT DO UPDATE SET times = times + 1 RETURNING times",
        (annotator, gold),
    ).fetchone()
    (number,) = db.execute(
        _OPEN, {"annotator": annotator, "gold": gold, "request": request, "request_id": f"gold-{times}"}
    ).fetchone()
    return int(number)


def finish(db: sqlite3.Connection, now: int) -> None:
    """Note the gold answers whose undo windows are over for the annotator model; none of them is sent."""
    rows = db.execute(
        "SELECT a.number, a.annotator, a.label, r.number, r.gold, r.key, r.instance_id, r.request_id "
        "FROM answer a JOIN request r ON r.number = a.request "
        "WHERE a.state = 'waiting' AND a.due_ms <= ? AND a.kind = 'gold' ORDER BY a.due_ms, a.number",
        (now,),
    ).fetchall()
    for answer, annotator, label, request, gold, key, instance_id, request_id in rows:
        entry = AuditEntry("", AGREEMENT, "gold", now, key, instance_id, request_id)
        entry = replace(entry, gold=gold, votes={annotator: label})
        audit_log.note(db, entry)
        db.execute("UPDATE answer SET state = 'sent' WHERE number = ?", (answer,))
        db.execute("DELETE FROM request WHERE number = ?", (request,))


def drop_unheld(db: sqlite3.Connection) -> None:
    """Delete the gold questions that nobody has on display, or has answered within the undo window."""
    db.execute(
        "DELETE FROM request WHERE kind = 'gold' AND number NOT IN (SELECT request FROM lease) "
        "AND number NOT IN (SELECT request FROM answer WHERE request IS NOT NULL)"
    )


def recall(db: sqlite3.Connection, entries: Iterable[AuditEntry], store: str) -> None:
    """Count the gold questions that annotators answered before a store was lost; store: name of this one."""
    for entry in entries:
        about = (entry.id, entry.user, entry.key, entry.instance_id, entry.gold)
        is_answer = all(isinstance(text, str) for text in about) and entry.user != AGREEMENT
        if is_answer and not entry.id.startswith(f"{store}-"):
            db.execute(
                "INSERT INTO gold_shown SELECT ?, number, 1 FROM gold WHERE key = ? AND instance_id = ? "
                "ON CONFLICT DO UPDATE SET times = times + 1",
                (entry.user, entry.key, entry.instance_id),
            )
