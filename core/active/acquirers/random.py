"""Random: a share of the unknown features is bought, chosen at random."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from core.active import purchase_draws
from core.active.acquirers.base import (
    BUDGET,
    EXHAUSTED,
    MAX_TIMEOUT_MS,
    Acquirer,
    BuyingModel,
    Dependence,
    Floats,
    Ints,
    Mask,
    Step,
    affordable,
)
from core.numeric import rng
from core.plugin import count, number


@dataclass(frozen=True, slots=True)
class Plugin(Acquirer):
    """Each unknown feature is bought with one probability: ``{"name": "random", "share": 0.3}``.

    All chosen features are requested at once, as far as ``budget`` allows, in the order of the schema. With a
    share of 1 everything is bought. It is the baseline for other acquirers and supports every learner: values
    are missing completely at random, so no label needs a weight.
    """

    compiled_with: ClassVar[tuple[str, ...]] = (purchase_draws.__name__,)

    share: float = number(0.3, at_least=0.0, at_most=1.0)
    """Probability with which an unknown feature is bought."""
    budget: float = number(1e9, at_least=0.0, at_most=1e9)
    """The most that the features of one record may cost."""
    timeout_ms: int = count(60_000, at_least=1, at_most=MAX_TIMEOUT_MS)
    """How long an answer waits for its features, in ms of event time."""

    @property
    def limit(self) -> float:
        return self.budget

    def open(self, model: BuyingModel, x: Floats, unknown: Mask, number: int, frozen: bool) -> Ints:
        """Return the key of the record's draws; the draw for a column has the column as its counter."""
        bits = int(purchase_draws.bits(rng.stream_key(model.spec.seed, rng.PURCHASE), number))
        return np.array([rng.stream_key(bits, rng.PURCHASE)], dtype=np.uint64).view(np.int64)

    def step(self, model: BuyingModel, words: Ints, x: Floats, unknown: Mask, left: float) -> Step:
        key = words.view(np.uint64)[0]
        chosen = [
            column
            for column in np.flatnonzero(unknown).tolist()
            if float(purchase_draws.uniform(key, column)) < self.share
        ]
        columns = affordable(model.schema, chosen, left)
        if columns:
            return Step(columns)
        return Step(stop=BUDGET if chosen else EXHAUSTED)

    def depends_on(self, x: Floats, unknown: Mask) -> Dependence:
        """Return NOTHING: draws and prices are the same at any time."""
        return Dependence.NOTHING
