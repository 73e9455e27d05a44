"""H-Tree: the Hoeffding tree (VFDT)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from core import ranking
from core.learners.base import FORGET, Decision, HasState, Learner, Reason
from core.plugin import number
from core.tree import layout as at

MIN_GAIN = 1e-10
"""A gain below this is rounding: never a split [D6]."""


@dataclass(frozen=True, slots=True)
class Plugin(Learner):
    """Splits when the best test leads the second best by more than ε, or when ε is below ``tau``.

    ``{"name": "h-tree", "grace_period": 200, "delta": 1e-7, "tau": 0.05, "criterion": "info_gain",
    "leaf_model": "nba"}`` (ALGORITHMS section 5; Domingos and Hulten 2000).
    """

    tau: float = number(0.05, at_least=0.0, at_most=1.0)

    def screen(self) -> tuple[float, float, float] | None:
        """Solve ε for the weight; a bound without a closed form leaves it to ``decide``."""
        if self.compat is not None or self.bound.constant is None:
            return None
        return *self.limits, MIN_GAIN

    @property
    def limits(self) -> tuple[float, float]:
        """Return what a gap needs, and the weight at which ε falls below ``tau``."""
        gap, _ = super(Plugin, self).limits
        return gap, gap / (self.bound.factor * self.tau) ** 2 if self.tau > 0.0 else math.inf

    def decide(self, model: HasState, t: int, node: int, leaf: int) -> Decision | None:
        """Compare the gap between best and second best with the bound."""
        out = np.empty(ranking.RANKING_WORDS)
        ranking.rank(model.plan.address, model.address, t, leaf, out)
        if out[ranking.CLASSES] < 2:
            return None
        attribute, test, value, best, second, suggestions, _ = out.tolist()
        if self.compat is not None:
            classes = model.ints.item(node + at.NODE_REACH)
        else:
            if attribute == ranking.NOBODY or best < MIN_GAIN:
                return None
            classes = model.ints.item(at.MODEL_CLASSES)
        n = self.weight(model, node, leaf)
        bound = self.bound.epsilon(self.criterion.merit_range(classes), n)
        reason: Reason
        if suggestions == 1:
            reason = "only"
        elif best - second > self.bound.factor * bound:
            reason = "gap"
        elif bound < self.tau:
            reason = "tie"
        else:
            return None
        if attribute == ranking.NOBODY:
            test = FORGET
        return Decision(int(attribute), int(test), value, (best, second), bound, n, reason)
