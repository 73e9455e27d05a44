"""Rnd: request labels at random, at the rate of the budget."""

from __future__ import annotations

from dataclasses import dataclass

from core.active.queries.base import AT_RANDOM, NO, Query
from core.kernels.jit import kernel
from core.numeric import rng
from core.tree import layout


@dataclass(frozen=True, slots=True)
class Plugin(Query):
    """Request with the budget's probability: ``{"name": "random"}``.

    ``U < B`` (ALGORITHMS section 9.2, Rnd; Žliobaitė et al. 2014). The draw of record t depends on seed and t
    alone, so that a replay, or a run with another strategy in between, makes the same decisions.
    """


@kernel
def decide(
    plan,
    params,
    at: int,
    ints,
    floats,
    state: int,
    limit: float,
    share: float,
    lead: float,
    weight: float,
    classes: float,
    t: int,
) -> tuple[int, float]:
    return draw(plan, limit, t), limit


@kernel
def draw(plan, limit: float, t: int) -> int:
    """Return AT_RANDOM with the budget's probability, for record t."""
    wanted = rng.uniform(plan[layout.PLAN_QUERY_KEY], t << rng.DRAW_BITS) < limit
    return AT_RANDOM if wanted else NO
