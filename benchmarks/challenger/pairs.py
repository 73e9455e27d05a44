"""Pairs of models on generated streams: their answers to all records, and their true difference over time.

Both models of a pair learn the same labels, a tenth of all, drawn at random. After every CHUNK records both
answer, without learning, records of other streams with the same concept: the difference of their accuracy
there is the expectation that a comparison estimates, within the error of so many records.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from benchmarks.datasets import Rows, load
from core.model.model import Model
from core.model_table import ANSWER_ONLY, LABELLED, ModelTable
from core.spec import Spec

RECORDS: Final = 36_000
HEAD: Final = 6000
"""Records before the comparison."""
WARM_UP: Final = 2000
"""Records before the comparison that the challenger of a ``crossing`` pair sees, instead of HEAD."""
CHUNK: Final = 300
"""Records between two measurements of the true difference."""
SHADOWS: Final = 6
"""Other streams with the same concept: records per measurement, in chunks."""
LEARNED: Final = 0.1
"""Share of the records whose label both models learn."""

STREAMS: Final = {
    "rbf": "gen:rbf?seed={seed}&model_seed={concept}",
    "random-tree": "gen:random_tree?seed={seed}&model_seed={concept}",
    "agrawal": "gen:agrawal?function=2&seed={seed}",
    "sea": "gen:sea?function=2&seed={seed}",
    "led": "gen:led?seed={seed}",
    "waveform": "gen:waveform?seed={seed}",
    "sine": "gen:sine?function=3&seed={seed}",
    "sea-drift": "gen:drift?before=(sea?seed={seed})&after=(sea?function=3&seed={seed})&position=21000",
    "agrawal-drift": (
        "gen:drift?before=(agrawal?function=1&seed={seed})&after=(agrawal?function=3&seed={seed})"
        "&position=21000"
    ),
    "rbf-drift": "gen:rbf_drift?seed={seed}&model_seed={concept}&speed=0.0005",
}
"""Addresses; {concept} is that of a pair, {seed} also differs between a stream and its shadows."""

MAJORITY_LEAVES: Final = {"name": "h-tree", "leaf_model": "mc"}
FEW: Final = {"name": "arf", "members": 2}
SOME: Final = {"name": "arf", "members": 3}
MORE: Final = {"name": "arf", "members": 5}
KINDS: Final[dict[str, tuple[Any, Any]]] = {
    "equal": (SOME, SOME),
    "slightly better": (FEW, MORE),
    "better": (MAJORITY_LEAVES, "h-tree"),
    "worse": ("h-tree", MAJORITY_LEAVES),
    "crossing": ("naive-bayes", SOME),
}
"""Learners of champion and challenger; the two models of an ``equal`` pair differ by their seed alone.

The challenger of a ``crossing`` pair starts late: it is often worse at first, and better in the end.
"""


@dataclass(frozen=True)
class Pair:
    """The records of a challenge, after the head, as both models answered them."""

    champion: npt.NDArray[np.int32]
    challenger: npt.NDArray[np.int32]
    label: npt.NDArray[np.int32]
    truth: npt.NDArray[np.float64]
    """Mean expected difference over all records up to each record, challenger minus champion."""


def play(stream: str, kind: str, seed: int, records: int = RECORDS, warm_up: int = WARM_UP) -> Pair:
    """Return the pair of a kind on a stream; the seed determines concept, records, labels and models."""
    address, concept = STREAMS[stream], 100 + seed
    rows = _rows(address, concept, seed, records)
    shadows = [_rows(address, concept, 1000 * (seed + 1) + copy, records) for copy in range(SHADOWS)]
    table = ModelTable()
    models = [
        table.add(_model(learner, seed + 500 * number, rows)) for number, learner in enumerate(KINDS[kind])
    ]
    learned = np.random.default_rng(seed).random(records) < LEARNED
    label = np.where(learned, rows.y, -1).astype(np.int32)
    answers = [np.full(records, -1, dtype=np.int32) for _ in models]
    begins = 0, HEAD - warm_up if kind == "crossing" else 0
    expected = np.zeros(records)
    for start in range(0, records, CHUNK):
        part = slice(start, min(start + CHUNK, records))
        if start >= HEAD:
            copies = [Rows(stream, s.x[part], s.y[part], s.attributes, s.classes) for s in shadows]
            accuracy = [
                np.mean([np.mean(_answer(table, model, c.x, None) == c.y) for c in copies])
                for model in models
            ]
            expected[part] = accuracy[1] - accuracy[0]
        for number, model in enumerate(models):
            if start >= begins[number]:
                answers[number][part] = _answer(table, model, rows.x[part], label[part])
    after = slice(HEAD, None)
    truth = np.cumsum(expected[after]) / np.arange(1, records - HEAD + 1)
    return Pair(answers[0][after], answers[1][after], rows.y[after], truth)


def _rows(address: str, concept: int, seed: int, records: int) -> Rows:
    return load(address.format(seed=seed, concept=concept), records)


def _model(learner: Any, seed: int, rows: Rows) -> Model:
    """Return a new model that requests no label itself."""
    spec = {"learner": learner, "query": "never", "evaluation": {"every": 0}, "seed": seed}
    return Model.create(Spec.parse(spec), rows.schema)


def _answer(
    table: ModelTable, model: int, x: npt.NDArray[np.float64], label: npt.NDArray[np.int32] | None
) -> npt.NDArray[np.int32]:
    """Return a model's answers, int32[n]; it learns the labels from 0 on. Without labels it never changes."""
    n = len(x)
    mode = ANSWER_ONLY if label is None else LABELLED
    labels = np.full(n, -1, dtype=np.int32) if label is None else label
    return table.answer(np.full(n, model), x, labels, np.ones(n), mode).prediction
