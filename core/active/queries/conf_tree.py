"""ConfTree: request labels until the leaf's majority class is certain by a confidence bound, then seldom."""

from __future__ import annotations

from dataclasses import dataclass

from core.active.queries.base import NO, YES, Query, Uncertainty
from core.active.scores import columns_of, score_parameter
from core.kernels.jit import kernel
from core.layout.learning import LEAD, VOTES
from core.layout.model import ModelHeader
from core.layout.plan import PlanRecord
from core.numeric import rng
from core.numeric.consistency import epsilon, is_consistent
from core.plugin import number


@dataclass(frozen=True, slots=True)
class Plugin(Query):
    """Request at every leaf that is not δ-consistent; at consistent leaves with (B + ε) / (B + ε + gap/2).

    ``{"name": "conf_tree", "delta": 0}`` (De Rosa and Cesa-Bianchi 2017, Algorithm 2 and equation 6). A leaf
    with m labels is δ-consistent iff the two largest class shares among them lie more than 2ε apart, ε =
    sqrt(ln(K·t/δ) / 2m); for two classes this is equation 6, for K classes Theorem 5 still holds: a
    consistent leaf predicts a class other than the best with a probability of at most δ [D11]. ``delta`` 0
    stands for δ = 1/t, the paper's choice. Shares and m count labels that the leaf has seen, without
    inherited weight [D23]: after a split the children are not consistent at first.
    """

    delta: float = number(0.0, at_least=0.0, below=1.0)
    """Largest probability that a consistent leaf predicts the wrong class; 0 stands for 1/t."""
    score: str = score_parameter("leaf_share")
    """With another score than ``leaf_share`` the gap is at most the certainty of the answer by that score."""

    @property
    def columns(self) -> int:
        """Return LEAD and WEIGHT, the lead and the labels that it is based on, and VOTES by the score."""
        return LEAD | (columns_of(self.score) & VOTES)


@kernel
def probability(limit: float, width: float, gap: float) -> float:
    """Return the probability of a request for a record of a consistent leaf; width is ε."""
    return (limit + width) / (limit + width + 0.5 * gap)


@kernel
def chance_at(p, limit: float, uncertainty: Uncertainty) -> float:
    """Return the probability of a request for a record at a place with this lead and weight of labels."""
    if uncertainty.weight <= 0.0:
        return 1.0
    width = epsilon(uncertainty.weight, uncertainty.number, uncertainty.classes, p.delta)
    return probability(limit, width, uncertainty.lead) if is_consistent(uncertainty.lead, width) else 1.0


@kernel
def draw(plan: PlanRecord, chance: float, number: int) -> int:
    # At chance 1 no draw is needed, but it costs less than a mispredicted branch.
    return YES if rng.uniform(plan.query_key, number << rng.DRAW_BITS) < chance else NO


@kernel
def decide(
    plan: PlanRecord, p, model: ModelHeader, state, limit: float, uncertainty: Uncertainty
) -> tuple[int, float]:
    """Request with the probability of `chance_at`, by the random number of the record."""
    chance = chance_at(p, limit, uncertainty)
    return draw(plan, chance, uncertainty.number), chance


@kernel
def score(uncertainty: Uncertainty) -> float:
    """Return ε as a share of ε and half the gap, with δ = 1/t; above one half the leaf is not consistent."""
    if uncertainty.weight <= 0.0:
        return 1.0
    width = epsilon(uncertainty.weight, uncertainty.number, uncertainty.classes, 0.0)
    return width / (width + 0.5 * uncertainty.lead)
