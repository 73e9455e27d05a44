"""Path: a tree buys the attribute that the next inner node on the record's way tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from core.active import purchase_draws
from core.active.acquirers.base import (
    BUDGET,
    EXHAUSTED,
    MAX_TIMEOUT_MS,
    ONE_REGION,
    Acquirer,
    BuyingModel,
    Floats,
    Ints,
    Mask,
    Step,
    affordable,
    costs,
)
from core.errors import ParameterError
from core.learners.protocol import Learner
from core.numeric import rng
from core.plugin import count, number

EXPLORED: Final = 0
"""Word of an episode: the record is bought whole, with the probability whose bits are in the next word."""
CHANCE: Final = 1


@dataclass(frozen=True, slots=True)
class Plugin(Acquirer):
    """Only what the path needs, at its price: ``{"name": "path", "explore": 0.1, "budget": 5.0}``.

    A leaf that bought nothing would never split. So with probability ``explore``, whatever the record looks
    like, all that is unknown of it is bought, as far as ``budget`` reaches, in the order of the schema; its
    label is learned with the inverse probability as its weight, the other labels with weight 1. Both kinds
    are fair samples of what reaches a leaf. A frozen model does not explore. (The sequential tests of Ling,
    Sheng and Yang 2006; weights by Horvitz and Thompson 1952).
    """

    compiled_with: ClassVar[tuple[str, ...]] = (purchase_draws.__name__,)

    explore: float = number(0.1, at_least=0.001, at_most=1.0)
    """Share of the records that are bought whole, to learn from."""
    budget: float = number(1e9, at_least=0.0, at_most=1e9)
    """What one record may cost."""
    timeout_ms: int = count(60_000, at_least=1, at_most=MAX_TIMEOUT_MS)
    """How long an answer waits for its features, in ms of event time."""

    @property
    def limit(self) -> float:
        return self.budget

    def check(self, learner: Learner) -> None:
        """Refuse a learner without paths, or that counts records: one bought whole stands for others."""
        if not learner.has_paths or learner.unit_weights:
            msg = (
                f"acquire='path' must go with a learner that routes records by tests and weighs them, such "
                f"as 'h-tree', not {learner.spelled!r}"
            )
            raise ParameterError(msg)

    def open(self, model: BuyingModel, x: Floats, unknown: Mask, number: int, frozen: bool) -> Ints:
        """Draw whether to buy the record whole; the draw is that of the record's number alone."""
        key = rng.stream_key(model.spec.seed, rng.PURCHASE)
        explored = (
            not frozen and bool(unknown.any()) and float(purchase_draws.uniform(key, number)) < self.explore
        )
        chance = np.array([self.explore if explored else 1.0]).view(np.int64)[0]
        return np.array([explored, chance], dtype=np.int64)

    def step(self, model: BuyingModel, words: Ints, x: Floats, unknown: Mask, left: float) -> Step:
        if words[EXPLORED]:
            return self._whole(model, unknown, left)
        column = model.plan.blocks.next_test(model.ints, model.first, x, unknown)
        if column < 0:
            return Step(stop=ONE_REGION)
        return Step((column,)) if costs(model.schema)[column] <= left else Step(stop=BUDGET)

    def _whole(self, model: BuyingModel, unknown: Mask, left: float) -> Step:
        """Return as much of what is unknown as may be bought."""
        columns = affordable(model.schema, np.flatnonzero(unknown).tolist(), left)
        if columns:
            return Step(columns)
        return Step(stop=BUDGET if unknown.any() else EXHAUSTED)

    def weight(self, words: Ints) -> float:
        return 1.0 / float(words[CHANCE : CHANCE + 1].view(np.float64)[0])
