"""Path: a tree buys the attribute that the next inner node on the record's way tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from core.active import purchase_draws
from core.active.acquirers.base import (
    BUDGET,
    EXHAUSTED,
    MAX_TIMEOUT_MS,
    ONE_REGION,
    Acquirer,
    BuyingModel,
    Dependence,
    Floats,
    Ints,
    Mask,
    Step,
    affordable,
    costs,
)
from core.errors import ParameterError
from core.kernels.records import Record, word
from core.learners.protocol import Learner
from core.numeric import rng
from core.plugin import count, number


class PathEpisode(Record):
    """The words of an episode."""

    explored: int = word("1: the record is bought whole")
    chance: float = word("probability of this, 1.0 if the record is not bought whole")


@dataclass(frozen=True, slots=True)
class Plugin(Acquirer):
    """Only what the path needs, at its price: ``{"name": "path", "explore": 0.1, "budget": 5.0}``.

    A leaf that bought nothing would never split. So with probability ``explore``, independently of the
    features, all unknown features of a record are bought, as far as ``budget`` allows, in the order of the
    schema. The label of such a record is learned with the inverse probability as its weight, other labels
    with weight 1. Both kinds are fair samples of the records that reach a leaf. A frozen model does not
    explore. (The sequential tests of Ling, Sheng and Yang 2006; weights by Horvitz and Thompson 1952).
    """

    compiled_with: ClassVar[tuple[str, ...]] = (purchase_draws.__name__,)

    explore: float = number(0.1, at_least=0.001, at_most=1.0)
    """Share of the records that are bought whole, to learn from."""
    budget: float = number(1e9, at_least=0.0, at_most=1e9)
    """The most that the features of one record may cost."""
    timeout_ms: int = count(60_000, at_least=1, at_most=MAX_TIMEOUT_MS)
    """How long an answer waits for its features, in ms of event time."""

    @property
    def limit(self) -> float:
        return self.budget

    def check(self, learner: Learner) -> None:
        """Refuse learners without paths or weights: a record that is bought whole represents more records."""
        if not learner.has_paths or learner.unit_weights:
            msg = (
                f"acquire='path' must go with a learner that routes records by tests and weighs them, such "
                f"as 'h-tree', not {learner.spelled!r}"
            )
            raise ParameterError(msg)

    def open(self, model: BuyingModel, x: Floats, unknown: Mask, number: int, frozen: bool) -> Ints:
        """Draw whether to buy the record whole; the draw depends on seed and record number alone."""
        key = rng.stream_key(model.spec.seed, rng.PURCHASE)
        explored = (
            not frozen and bool(unknown.any()) and float(purchase_draws.uniform(key, number)) < self.explore
        )
        words = np.zeros(PathEpisode.SIZE, dtype=np.int64)
        episode = PathEpisode.over(words)
        episode.explored, episode.chance = explored, self.explore if explored else 1.0
        return words

    def step(self, model: BuyingModel, words: Ints, x: Floats, unknown: Mask, left: float) -> Step:
        if PathEpisode.over(words).explored:
            return self._whole(model, unknown, left)
        column = model.plan.blocks.next_test(model.ints, model.first, x, unknown)
        if column < 0:
            return Step(stop=ONE_REGION)
        return Step((column,)) if costs(model.schema)[column] <= left else Step(stop=BUDGET)

    def _whole(self, model: BuyingModel, unknown: Mask, left: float) -> Step:
        """Return a step that buys all unknown features that are affordable."""
        columns = affordable(model.schema, np.flatnonzero(unknown).tolist(), left)
        if columns:
            return Step(columns)
        return Step(stop=BUDGET if unknown.any() else EXHAUSTED)

    def weight(self, words: Ints) -> float:
        return 1.0 / float(PathEpisode.over(words).chance)

    def depends_on(self, x: Floats, unknown: Mask) -> Dependence:
        """Return LABELS, which change the tree, or ANSWERS, if a missing value takes the fullest branch."""
        is_missing = bool((np.isnan(x) & ~unknown).any())
        return Dependence.ANSWERS if is_missing else Dependence.LABELS
