"""Annotator statistics: answers, time, agreement, gold questions, declines and undo by annotator and UTC day.

Counts are kept by annotator and day, and change with each answer. All of them are sums, so that the order in
which the partitions of the topic are read makes no difference.
"""

from __future__ import annotations

import math
import sqlite3
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any, Final

from streamapp.people.annotator_answers import Answer
from streamapp.people.wilson_interval import wilson_interval

DAY_MS: Final = 24 * 3600 * 1000
SCHEMA: Final = """
CREATE TABLE day (
  annotator TEXT, day INTEGER, answers INTEGER NOT NULL DEFAULT 0, declined INTEGER NOT NULL DEFAULT 0,
  undone INTEGER NOT NULL DEFAULT 0, compared INTEGER NOT NULL DEFAULT 0, agreed INTEGER NOT NULL DEFAULT 0,
  gold INTEGER NOT NULL DEFAULT 0, gold_right INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (annotator, day)
) WITHOUT ROWID;
CREATE INDEX day_by_day ON day (day);
CREATE TABLE pace (
  annotator TEXT, day INTEGER, tenths INTEGER, n INTEGER NOT NULL, PRIMARY KEY (annotator, day, tenths)
) WITHOUT ROWID;
CREATE INDEX pace_by_day ON pace (day);
"""
_COUNTS: Final = ("answers", "declined", "undone", "compared", "agreed", "gold", "gold_right")


@dataclass(frozen=True, slots=True)
class Figures:
    """Figures of an annotator, for a day or for several days together."""

    annotator: str
    day: date | None  # UTC; None: several days
    answers: int  # declined ones and answers to gold questions included; without those that were taken back
    declined: int
    undone: int  # answers that were taken back
    compared: int  # answers of other people to the same records
    agreed: int  # of these: answers with the same class
    gold: int  # gold questions answered with a class
    gold_right: int
    seconds: float | None  # median time of an answer, to two digits; None: not known

    @property
    def declined_share(self) -> float | None:
        """Return the share of answers that were declined; None: no answer."""
        return self.declined / self.answers if self.answers else None

    @property
    def agreement(self) -> float | None:
        """Return the share of equal answers among comparisons with other people; None: no comparison."""
        return self.agreed / self.compared if self.compared else None

    @property
    def gold_accuracy(self) -> tuple[float, float, float] | None:
        """Return the share of right answers to gold questions with its 95 % interval; None: no question."""
        if not self.gold:
            return None
        return self.gold_right / self.gold, *wilson_interval(self.gold_right, self.gold)

    def document(self) -> dict[str, Any]:
        """Return the figures as a JSON object of one level."""
        accuracy, low, high = self.gold_accuracy or (None, None, None)
        return {
            "annotator": self.annotator,
            "day": None if self.day is None else self.day.isoformat(),
            "answers": self.answers,
            "seconds": self.seconds,
            "compared": self.compared,
            "agreed": self.agreed,
            "agreement": self.agreement,
            "gold": self.gold,
            "gold_right": self.gold_right,
            "gold_accuracy": accuracy,
            "gold_low": low,
            "gold_high": high,
            "declined": self.declined,
            "declined_share": self.declined_share,
            "undone": self.undone,
        }


def day_of(at_ms: int) -> int:
    """Return the number of a time's UTC day since the epoch."""
    return at_ms // DAY_MS


def count_answer(db: sqlite3.Connection, answer: Answer, times: int = 1) -> None:
    """Count an answer; times -1: take it back."""
    day = day_of(answer.at_ms)
    is_gold = answer.gold is not None and answer.label is not None
    add(
        db,
        answer.annotator,
        day,
        answers=times,
        declined=times * (answer.label is None),
        gold=times * is_gold,
        gold_right=times * (is_gold and answer.label == answer.gold),
    )
    if answer.seconds is not None:
        db.execute(
            "INSERT INTO pace VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET n = n + excluded.n",
            (answer.annotator, day, two_digits(answer.seconds), times),
        )


def add(db: sqlite3.Connection, annotator: str, day: int, **counts: int) -> None:
    """Add to the counts of an annotator's day."""
    names = [name for name in _COUNTS if counts.get(name)]
    if not names:
        return
    db.execute(
        f"INSERT INTO day (annotator, day, {', '.join(names)}) "  # noqa: S608 - names of ours
        f"VALUES (?, ?, {', '.join('?' * len(names))}) ON CONFLICT DO UPDATE SET "
        + ", ".join(f"{name} = {name} + excluded.{name}" for name in names),
        (annotator, day, *(counts[name] for name in names)),
    )


def two_digits(seconds: float) -> int:
    """Return a time in tenths of a second with its first two digits.

    >>> two_digits(0.04), two_digits(6.23), two_digits(62.3), two_digits(1234.0)
    (0, 62, 620, 12000)
    """
    tenths = round(seconds * 10)
    unit: int = 10 ** max(0, len(str(tenths)) - 2)
    return tenths // unit * unit


def by_annotator(
    db: sqlite3.Connection, first_day: int, last_day: int, annotator: str | None = None
) -> list[Figures]:
    """Return the figures of each annotator for all these days together, by name; annotator: theirs alone."""
    return _figures(db, first_day, last_day, annotator, is_by_day=False)


def by_day(
    db: sqlite3.Connection, first_day: int, last_day: int, annotator: str | None = None
) -> list[Figures]:
    """Return the figures of each annotator and day, by day and name; annotator: theirs alone."""
    return _figures(db, first_day, last_day, annotator, is_by_day=True)


def _figures(
    db: sqlite3.Connection, first_day: int, last_day: int, annotator: str | None, *, is_by_day: bool
) -> list[Figures]:
    words = {"first": first_day, "last": last_day, "annotator": annotator}
    where = "day BETWEEN :first AND :last AND (:annotator IS NULL OR annotator = :annotator)"
    day = "day" if is_by_day else "NULL"
    paces: dict[tuple[str, int | None], list[tuple[int, int]]] = {}
    for name, number, tenths, n in db.execute(
        f"SELECT annotator, {day}, tenths, sum(n) FROM pace WHERE {where} "  # noqa: S608 - names of ours
        "GROUP BY 1, 2, 3 HAVING sum(n) > 0 ORDER BY 1, 2, 3",
        words,
    ):
        paces.setdefault((name, number), []).append((tenths, n))
    sums = ", ".join(f"sum({name})" for name in _COUNTS)
    rows = db.execute(
        f"SELECT annotator, {day}, {sums} FROM day WHERE {where} GROUP BY 1, 2 ORDER BY 2, 1",  # noqa: S608
        words,
    )
    return [
        Figures(
            name,
            None if number is None else datetime.fromtimestamp(number * DAY_MS / 1000, UTC).date(),
            **dict(zip(_COUNTS, counts, strict=True)),
            seconds=_median(paces.get((name, number), [])),
        )
        for name, number, *counts in rows
        if any(counts)
    ]


def _median(paces: list[tuple[int, int]]) -> float | None:
    """Return the median of (tenths of a second, number), which are in order; of two the lower."""
    middle = math.ceil(sum(n for _, n in paces) / 2)
    for tenths, n in paces:
        middle -= n
        if middle <= 0:
            return tenths / 10
    return None
