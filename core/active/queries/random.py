"""Rnd: request labels at random, at the rate of the budget."""

from __future__ import annotations

from dataclasses import dataclass

from core.active.queries.base import AT_RANDOM, NO, Query, Uncertainty
from core.kernels.jit import kernel
from core.layout.model import ModelHeader
from core.layout.plan import PlanRecord
from core.numeric import rng


@dataclass(frozen=True, slots=True)
class Plugin(Query):
    """Request with the budget's probability: ``{"name": "random"}``.

    ``U < B`` (Rnd; Žliobaitė et al. 2014). The draw of record t depends on seed and t alone, so that a
    replay, or a run with another strategy in between, makes the same decisions.
    """


@kernel
def decide(
    plan: PlanRecord, p, model: ModelHeader, state, limit: float, uncertainty: Uncertainty
) -> tuple[int, float]:
    return draw(plan, limit, uncertainty.number), limit


@kernel
def draw(plan: PlanRecord, limit: float, number: int) -> int:
    """Return AT_RANDOM with the budget's probability, for the record of this number."""
    is_drawn = rng.uniform(plan.query_key, number << rng.DRAW_BITS) < limit
    return AT_RANDOM if is_drawn else NO
