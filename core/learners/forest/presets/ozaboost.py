"""OzaBoost: online boosting; each tree learns most from records that the trees before it got wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from core.learners.forest.learner import Forest
from core.plugin import number


@dataclass(frozen=True, slots=True)
class Plugin(Forest):
    """Online boosting: ``{"name": "ozaboost", "members": 10}`` (Oza and Russell 2001).

    Members learn a record in turn, each k times, where k is a Poisson variate of mean ``poisson`` times the
    weight of the record. The weight begins with 1, falls after each member that is right, and rises after one
    that is wrong, so that both kinds of records have half of the weight for the next member. With ``poisson``
    0 a member learns the record once, with its weight. Each member sees all attributes, and votes with the
    logarithm of its odds.

    Boosting concentrates on wrong labels, too: it loses more by noise than bagging. No member is replaced;
    a detector of the spec rebuilds the whole forest. ``compat="moa"`` applies the rules of MOA 2024.07: no
    member votes after one that has made no error, or whose weighted error is a half or more.
    """

    boosts: ClassVar[bool] = True

    poisson: float = number(1.0, at_least=0.0, at_most=100.0)
    """Mean of the Poisson variate for a record of weight 1; 0: weights without chance (MOA's pureBoost)."""
