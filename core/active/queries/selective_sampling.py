"""Sel-Samp: request labels at random, the more likely the less sure the answer is."""

from __future__ import annotations

from dataclasses import dataclass

from core.active.queries.base import NO, YES, Query, Uncertainty
from core.active.scores import score_parameter
from core.kernels.jit import kernel
from core.layout.model import ModelHeader
from core.layout.plan import PlanRecord
from core.numeric import rng


@dataclass(frozen=True, slots=True)
class Plugin(Query):
    """Request with probability B / (B + |p̂ - 1/K|), p̂ the largest class share by ``score``.

    ``{"name": "selective_sampling"}`` (Sel-Samp; Žliobaitė et al. 2014, after Cesa-Bianchi et al. 2006). K is
    the number of known classes, at least 2.
    """

    score: str = score_parameter("least_confidence")
    """Measure of doubt about the answer (core/active/scores.py)."""


@kernel
def probability(limit: float, share: float, classes: float) -> float:
    """Return the probability of a request at a leaf with this largest share."""
    return limit / (limit + abs(share - 1.0 / classes))


@kernel
def decide(
    plan: PlanRecord, p, model: ModelHeader, state, limit: float, uncertainty: Uncertainty
) -> tuple[int, float]:
    chance = probability(limit, uncertainty.share, uncertainty.classes)
    u = rng.uniform(plan.query_key, uncertainty.number << rng.DRAW_BITS)
    return YES if u < chance else NO, chance


@kernel
def score(uncertainty: Uncertainty) -> float:
    """Return the distance of the largest share from a pure leaf's, relative to the range above 1/K."""
    evenly = 1.0 / uncertainty.classes
    return 1.0 - evenly - abs(uncertainty.share - evenly)
