"""H-Tree: the Hoeffding tree (VFDT)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from core.layout.tree import Leaf, Node, Tree
from core.learners.hoeffding import ranking, split_decision
from core.learners.hoeffding.decision import FORGET, Decision, HasState
from core.learners.hoeffding.learner import HoeffdingLearner
from core.plugin import number

ALIASES: Final = ("vfdt", "hoeffding_tree")


@dataclass(frozen=True, slots=True)
class Plugin(HoeffdingLearner):
    """Splits when the best test leads the second best by more than ε, or when ε is below ``tau``.

    ``{"name": "h-tree", "grace_period": 200, "delta": 1e-7, "tau": 0.05, "criterion": "info_gain",
    "leaf_model": "nba"}`` (Domingos and Hulten 2000). The bound defines ε and the lead that is enough:
    further trees of this kind are presets (``corrh-tree``, ``mcdiarmid-tree``, ``c-tree``, ``osm``, …). Also
    called ``vfdt`` and ``hoeffding-tree``.
    """

    tau: float = number(0.05, at_least=0.0, at_most=1.0)
    """A tie: below this ε the best test is taken with any lead; 0: never."""

    compats: ClassVar[tuple[str | None, ...]] = (None, "moa", "imac", "cdt")
    compiled: ClassVar[bool] = True

    @property
    def tie_threshold(self) -> float:
        return self.tau

    @property
    def limits(self) -> tuple[float, float]:
        """Return the factor for a gap, and the weight at which ε falls below ``tau``."""
        gap, _ = super(Plugin, self).limits
        return gap, gap / (self.bound.factor * self.tau) ** 2 if self.tau > 0.0 else math.inf

    def decide(self, model: HasState, tree: Tree, node: Node, leaf: Leaf) -> Decision | None:
        """Let the bound decide on the lead of the best test over the second best."""
        out = np.empty(ranking.RANKING_WORDS)
        outcome = split_decision.decide_leaf(model.plan.record, tree, node, out)
        reason = split_decision.REASONS.get(outcome)
        if reason is None:
            return None
        attribute, test, value, best, second, _, _, bound, n = out.tolist()
        if attribute == ranking.NO_SPLIT:
            test = FORGET
        return Decision(int(attribute), int(test), value, (best, second), bound, n, reason)
