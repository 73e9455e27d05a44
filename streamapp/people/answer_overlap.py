"""Answer overlap: the answers of several people to the same records, counted by pair and by record.

For each model two tables hold all that the coefficients need: the classes that two people gave to the same
record, and the patterns of the answers of a record. Answers to gold questions are compared with the settled
class and not with each other.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Final, NamedTuple

import orjson

from streamapp.people.annotator_answers import Answer
from streamapp.people.annotator_statistics import add, day_of
from streamapp.people.coefficients import (
    Agreement,
    Pairs,
    Patterns,
    cohen_kappa,
    fleiss_kappa,
    krippendorff_alpha,
    pairs_of_class,
    pattern,
    patterns_of_class,
)

SCHEMA: Final = """
CREATE TABLE pair (
  key TEXT, first TEXT, second TEXT, label TEXT, other TEXT, n INTEGER NOT NULL,
  PRIMARY KEY (key, first, second, label, other)
) WITHOUT ROWID;
CREATE TABLE pattern (key TEXT, answers TEXT, n INTEGER NOT NULL, PRIMARY KEY (key, answers)) WITHOUT ROWID;
"""


class ModelAgreement(NamedTuple):
    """The agreement on the records of a model, of all classes or of one class beside all others."""

    key: str
    label: str | None  # None: all classes
    fleiss: Agreement
    krippendorff: Agreement


class PairAgreement(NamedTuple):
    """The agreement of two people on the records of a model, of all classes or of one class."""

    key: str
    first: str
    second: str
    label: str | None  # None: all classes
    cohen: Agreement
    agreed: int  # records to which both gave the same class


def compare(db: sqlite3.Connection, answer: Answer, others: Sequence[Answer], times: int = 1) -> None:
    """Count an answer beside the answers of other people to the same record; times -1: take it back."""
    if not others or answer.label is None:
        return
    for other in others:
        is_equal = times * (answer.label == other.label)
        for compared in (answer, other):
            add(db, compared.annotator, day_of(compared.at_ms), compared=times, agreed=is_equal)
        first, second = sorted((answer, other))
        _count(db, "pair", (answer.key, first.annotator, second.annotator, first.label, second.label), times)
    labels = [other.label for other in others]
    if len(others) > 1:
        _count(db, "pattern", (answer.key, _text(labels)), -times)
    _count(db, "pattern", (answer.key, _text([*labels, answer.label])), times)


def _count(db: sqlite3.Connection, table: str, row: tuple[str | None, ...], times: int) -> None:
    db.execute(
        f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))}, ?) "  # noqa: S608 - names of ours
        "ON CONFLICT DO UPDATE SET n = n + excluded.n",
        (*row, times),
    )


def _text(labels: Sequence[str | None]) -> str:
    return orjson.dumps(pattern(labels)).decode()


def agreement_of_models(db: sqlite3.Connection, most: int) -> list[ModelAgreement]:
    """Return the agreement on each model's records, for the models with most records."""
    keys = db.execute("SELECT key FROM pattern GROUP BY key ORDER BY sum(n) DESC, key LIMIT ?", (most,))
    return [_of_model(key, None, patterns_of(db, key)) for (key,) in keys.fetchall()]


def agreement_of_classes(db: sqlite3.Connection, key: str) -> list[ModelAgreement]:
    """Return the agreement on each class of a model, beside all other classes together."""
    patterns = patterns_of(db, key)
    labels = sorted({label for answers in patterns for label, _ in answers})
    return [_of_model(key, label, patterns_of_class(patterns, label)) for label in labels]


def _of_model(key: str, label: str | None, patterns: Patterns) -> ModelAgreement:
    return ModelAgreement(key, label, fleiss_kappa(patterns), krippendorff_alpha(patterns))


def agreement_of_pairs(
    db: sqlite3.Connection, most: int, *, key: str | None = None, annotator: str | None = None
) -> list[PairAgreement]:
    """Return the agreement of pairs of people on each model's records, for those with most records.

    key: of this model alone. annotator: pairs with this person alone.
    """
    pairs = db.execute(
        "SELECT key, first, second FROM pair WHERE (:key IS NULL OR key = :key) "
        "AND (:annotator IS NULL OR :annotator IN (first, second)) "
        "GROUP BY 1, 2, 3 HAVING sum(n) > 0 ORDER BY sum(n) DESC, 1, 2, 3 LIMIT :most",
        {"key": key, "annotator": annotator, "most": most},
    ).fetchall()
    return [
        _of_pair(model, first, second, None, pairs_of(db, model, first, second))
        for model, first, second in pairs
    ]


def agreement_of_pair(db: sqlite3.Connection, key: str, first: str, second: str) -> list[PairAgreement]:
    """Return the agreement of two people on a model's records: of all classes, then of each class."""
    first, second = sorted((first, second))
    pairs = pairs_of(db, key, first, second)
    labels = sorted({label for labels in pairs for label in labels})
    return [
        _of_pair(key, first, second, None, pairs),
        *(_of_pair(key, first, second, label, pairs_of_class(pairs, label)) for label in labels),
    ]


def _of_pair(key: str, first: str, second: str, label: str | None, pairs: Pairs) -> PairAgreement:
    agreed = sum(n for (label_of_first, other), n in pairs.items() if label_of_first == other)
    return PairAgreement(key, first, second, label, cohen_kappa(pairs), agreed)


def patterns_of(db: sqlite3.Connection, key: str) -> Patterns:
    """Return the patterns of the answers to a model's records."""
    rows = db.execute("SELECT answers, n FROM pattern WHERE key = ? AND n > 0 ORDER BY answers", (key,))
    return {tuple((label, k) for label, k in orjson.loads(answers)): n for answers, n in rows}


def pairs_of(db: sqlite3.Connection, key: str, first: str, second: str) -> Pairs:
    """Return the classes that two people gave to the same records of a model; first: the earlier name."""
    rows = db.execute(
        "SELECT label, other, n FROM pair WHERE key = ? AND first = ? AND second = ? AND n > 0",
        (key, first, second),
    )
    return {(label, other): n for label, other, n in rows}
