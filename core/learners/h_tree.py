"""H-Tree: the Hoeffding tree (VFDT)."""

from __future__ import annotations

from dataclasses import dataclass

from core.learners.base import Learner
from core.plugin import number


@dataclass(frozen=True, slots=True)
class Plugin(Learner):
    """Splits when the best test leads the second best by more than ε, or when ε is below ``tau``.

    ``{"name": "h-tree", "grace_period": 200, "delta": 1e-7, "tau": 0.05, "criterion": "info_gain",
    "leaf_model": "nba"}`` (ALGORITHMS section 5; Domingos and Hulten 2000).
    """

    tau: float = number(0.05, at_least=0.0, at_most=1.0)
