"""FixedUn: request labels where the leaf is new, or the answer is less sure than a fixed threshold."""

from __future__ import annotations

from dataclasses import dataclass

from core.active.queries.base import NO, UNKNOWN, YES, Query, Uncertainty
from core.active.scores import columns_of, score_parameter
from core.kernels.jit import kernel
from core.layout.learning import WEIGHT
from core.layout.model import ModelHeader
from core.layout.plan import PlanRecord
from core.plugin import number


@dataclass(frozen=True, slots=True)
class Plugin(Query):
    """Request iff a leaf has seen few labels or the largest class share is below a fixed threshold.

    ``{"name": "fixed_uncertainty", "threshold": 0.9, "cold_start": 30}`` (FixedUn; Žliobaitė et al. 2014).
    With ``threshold`` 0 the threshold is 1/K + B·(1 - 1/K) from classes and budget, as in scikit-activeml. A
    leaf that has seen one label is pure, and no threshold would request more there: therefore the cold start.
    A tree that becomes sure requests less and less: under drift use a strategy with a threshold that moves.
    """

    threshold: float = number(0.9, at_least=0.0, at_most=1.0)
    """Largest class share below which a label is requested; 0: from classes and budget."""
    cold_start: float = number(30.0, at_least=0.0)
    """Labelled weight below which a leaf requests labels for any class shares; 0: none."""
    score: str = score_parameter("least_confidence")
    """Measure of doubt about the answer (core/active/scores.py)."""

    @property
    def columns(self) -> int:
        """Return WEIGHT, the weight of labels, and the columns of the score."""
        return WEIGHT | columns_of(self.score)


@kernel
def decide(
    plan: PlanRecord, p, model: ModelHeader, state, limit: float, uncertainty: Uncertainty
) -> tuple[int, float]:
    """Check whether the leaf is new, else compare the share with the threshold."""
    if 0.0 <= uncertainty.weight < p.cold_start:
        return YES, UNKNOWN
    threshold = p.threshold
    if threshold == 0.0:
        even_share = 1.0 / uncertainty.classes
        threshold = even_share + limit * (1.0 - even_share)
    return YES if uncertainty.share < threshold else NO, UNKNOWN


@kernel
def score(uncertainty: Uncertainty) -> float:
    return 1.0 - uncertainty.share
