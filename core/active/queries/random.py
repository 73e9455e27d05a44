"""Rnd: ask at random, at the rate of the budget."""

from __future__ import annotations

from dataclasses import dataclass

from core.active.queries.base import AT_RANDOM, NO, Query
from core.kernels.jit import kernel
from core.numeric import rng
from core.tree import layout


@dataclass(frozen=True, slots=True)
class Plugin(Query):
    """Ask with the budget's probability: ``{"name": "random"}`` (ALGORITHMS section 9.2, Rnd: ``U < B``;
    Žliobaitė et al. 2014).

    The draw of record t depends on seed and t alone, so that a replay, and a run with another strategy
    between, decides alike.
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
