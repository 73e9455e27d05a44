"""Common parts of the experiments of LFT (Learning Forests of Trees): systems, sets, training and testing."""

from __future__ import annotations

import functools
import time
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from core.batch.c45 import C45
from core.kernels import jit
from core.layout.model import Floats
from core.model.model import Model, Summary
from core.model_table import ANSWER_ONLY, LABELLED, ModelTable
from core.plan_words import compiled_modules
from core.schema.schema import Attribute, Schema
from core.spec import Spec
from core.streams.base import open_generator
from streamapp.lab.experiments.base import Row

LEARNER: Final = "ufft"
WITHOUT_DETECTION: Final[dict[str, Any]] = {"drift": "none"}
"""α = ∞: nodes have no detector."""
LEAVES: Final = ("mc", "nb", "idbd")
BATCH: Final = "C4.5"
SYSTEMS: Final = (*LEAVES, BATCH)
VARIANTS: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "mc, δ = 0.05": ("mc", {"delta": 0.05}),
    "mc, τ = 0.05": ("mc", {"tau": 0.05}),
}
"""Leaves with another δ or τ than the default, which the slides do not give: trees with these do split."""

TRAINING: Final = 300_000
"""Records that are learned, at most; the test set is drawn after them."""
TEST: Final = 250_000
SEED: Final = 1
BATCH_ROWS: Final = 8192

GENERATED: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "Waveform-21": ("waveform", {}),
    "Waveform-40": ("waveform", {"irrelevant": True}),
    "LED": ("led", {}),
}
BAYES: Final = {"Waveform-21": 0.1338, "Waveform-40": 0.1338, "LED": 0.259978}
"""Bayes error of each generator; the slides give 0.16 for Waveform, which is not the generator's."""

Labels = npt.NDArray[np.int32]


def spec_of(leaf_model: str, detects: bool = True) -> dict[str, Any]:
    """Return the spec of a forest with these leaves or a variant, with or without detection at its nodes."""
    leaf_model, parameters = VARIANTS.get(leaf_model, (leaf_model, {}))
    learner: dict[str, Any] = {"name": LEARNER, "leaf_model": leaf_model, **parameters}
    return {
        "learner": learner if detects else learner | WITHOUT_DETECTION,
        "evaluation": {"every": 0},
    }


def numeric_schema(names: Sequence[str], classes: Sequence[str]) -> Schema:
    return Schema.of([Attribute(name) for name in names], tuple(classes))


class Learned:
    """A model that learns records in order, and is tested without learning."""

    def __init__(self, spec: dict[str, Any], schema: Schema) -> None:
        """Make a model that has learned nothing."""
        parsed = Spec.parse(spec)
        jit.warm(compiled_modules(parsed))  # compile before the time is taken
        self.table = ModelTable()
        self.index = self.table.add(Model.create(parsed, schema))
        self.seconds = 0.0
        """Processor time of answering and learning."""

    def learn(self, x: Floats, y: Labels) -> Labels:
        """Answer and learn records (x float64[n, d], y int32[n]); return the answers, int32[n]."""
        began = time.process_time()
        answers = [self._answer(x[part], y[part], LABELLED) for part in parts(len(y))]
        self.seconds += time.process_time() - began
        return np.concatenate(answers) if answers else np.zeros(0, np.int32)

    def predict(self, x: Floats) -> Labels:
        """Return the class codes of records without learning them."""
        none = np.full(len(x), -1, np.int32)
        return np.concatenate([self._answer(x[part], none[part], ANSWER_ONLY) for part in parts(len(x))])

    def _answer(self, x: Floats, y: Labels, mode: int) -> Labels:
        which = np.full(len(y), self.index, np.int64)
        return self.table.answer(which, np.ascontiguousarray(x), y, np.ones(len(y)), mode).prediction

    @property
    def summary(self) -> Summary:
        return self.table.model(self.index).summary()


def parts(n: int) -> list[slice]:
    return [slice(first, min(first + BATCH_ROWS, n)) for first in range(0, n, BATCH_ROWS)]


@functools.lru_cache(maxsize=4)
def drawn(name: str, n: int, start: int = 0) -> tuple[Floats, Labels]:
    """Return n records of a generated set from number ``start`` on (x float64[n, d], y int32[n])."""
    generator, options = GENERATED[name]
    return open_generator(generator, seed=SEED, **options).take(n, start=start)


def test_set(name: str, n: int) -> tuple[Floats, Labels]:
    """Return n records that come after all training records."""
    return drawn(name, n, TRAINING)


def schema_of(name: str) -> Schema:
    """Return the schema of a generated set; LED's bits are the numbers 0 and 1."""
    generator, options = GENERATED[name]
    schema = open_generator(generator, seed=SEED, **options).schema
    return numeric_schema(schema.names, schema.classes)


def curve(
    name: str, system: str, sizes: Sequence[int], train: tuple[Floats, Labels], test: tuple[Floats, Labels]
) -> list[dict[str, Any]]:
    """Return error on the test set, leaves and seconds of learning after each of the sizes (ascending)."""
    (x, y), (test_x, test_y) = train, test
    points: list[dict[str, Any]] = []
    model = None if system == BATCH else Learned(spec_of(system), schema_of(name))
    n_learned = 0
    for n in sizes:
        if model is None:
            began = time.process_time()
            tree = C45().fit(x[:n], y[:n], classes=schema_of(name).n_classes)
            seconds, leaves = time.process_time() - began, tree.leaves
            answers = tree.predict(test_x).astype(np.int32)
        else:
            model.learn(x[n_learned:n], y[n_learned:n])
            seconds, leaves = model.seconds, model.summary.leaves
            answers = model.predict(test_x)
        n_learned = n
        error = float(np.mean(answers != test_y))
        points.append({"n": n, "error": error, "leaves": leaves, "seconds": round(seconds, 4)})
    return points


def doublings(at_most: int) -> list[int]:
    """Return 100·2^k up to a number, and the number itself [D66]."""
    sizes, n = [], 100
    while n <= at_most:
        sizes.append(n)
        n *= 2
    return sizes if sizes and sizes[-1] == at_most else [*sizes, at_most]


Claim = tuple[str, str, bool | None, str]
"""A claim of the slides, its place, whether our runs confirm it (None: undecided), and our figures."""


def claims_table(claims: Sequence[Claim]) -> list[Row]:
    return [
        {"claim": claim, "where": where, "seen": {True: "yes", False: "no", None: "-"}[seen], "ours": ours}
        for claim, where, seen, ours in claims
    ]
