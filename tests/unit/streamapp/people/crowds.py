"""Simulated crowds, and the batch form of Dawid and Skene's estimate, written independently with matrices."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from streamapp.people.dawid_skene import ACCURACY, EVEN, OVERALL, STRENGTH

CASES = {"two classes": (21, 600, 2, [1.0, 1.0]), "three classes": (22, 600, 3, [3.0, 2.0, 1.0])}
"""Arguments of `crowd` whose estimate by crowd-kit is in tests/golden/crowds.json."""


class Record(NamedTuple):
    """A request with its answers and the true class."""

    answers: dict[str, str | None]
    truth: str


def matrix(kind: str, accuracy: float, n_classes: int) -> list[list[float]]:
    """Return P(answer | truth) of one annotator."""
    if kind == "uniform":
        return [[1 / n_classes] * n_classes for _ in range(n_classes)]
    if kind == "constant":
        return [[float(u == 0) for u in range(n_classes)] for _ in range(n_classes)]
    right = 0.1 if kind == "adversarial" else accuracy
    return [
        [right if u == t else (1 - right) / (n_classes - 1) for u in range(n_classes)]
        for t in range(n_classes)
    ]


MIXED: Final = ("uniform", "constant", "adversarial", "uniform")


def crowd(
    seed: int, n_records: int, n_classes: int, shares: list[float], spammers: Sequence[str] = MIXED
) -> list[Record]:
    """Return records with three answers each of twenty annotators, four of whom are spammers."""
    draw = random.Random(seed)
    kinds = [*spammers] + ["honest"] * 16
    matrices = {f"a{n:02}": matrix(kind, draw.uniform(0.65, 0.95), n_classes) for n, kind in enumerate(kinds)}
    records = []
    for _ in range(n_records):
        truth = draw.choices(range(n_classes), shares)[0]
        people = draw.sample(sorted(matrices), 3)
        answers = {name: f"c{draw.choices(range(n_classes), matrices[name][truth])[0]}" for name in people}
        records.append(Record(dict(answers), f"c{truth}"))
    return records


def batch(records: list[Record], n_classes: int, rounds: int = 100) -> tuple[Any, dict[str, Any]]:
    """Return the posterior of each record and the confusion matrices, after expectation maximisation."""
    names = sorted({name for record in records for name in record.answers})
    given = np.full((len(records), len(names)), -1)
    for row, record in enumerate(records):
        for name, label in record.answers.items():
            given[row, names.index(name)] = int(str(label)[1:])
    is_answer = np.stack([given == label for label in range(n_classes)]).astype(float)
    posterior = is_answer.sum(2).T / is_answer.sum((0, 2))[:, None]
    for _ in range(rounds):
        counts = np.einsum("rt,lra->atl", posterior, is_answer)
        shares = (np.einsum("att->at", counts) + OVERALL * ACCURACY) / (counts.sum(2) + OVERALL)
        overall = shares.mean(1)[:, None, None]
        counts += STRENGTH * np.where(np.eye(n_classes), overall, (1 - overall) / (n_classes - 1))
        confusion = counts / counts.sum(2, keepdims=True)
        prevalence = EVEN / n_classes + (1 - EVEN) * (posterior.sum(0) + 1) / (len(records) + n_classes)
        logs = np.log(prevalence) + np.einsum("lra,atl->rt", is_answer, np.log(confusion))
        posterior = np.exp(logs - logs.max(1, keepdims=True))
        posterior /= posterior.sum(1, keepdims=True)
    return posterior, dict(zip(names, confusion, strict=True))
