"""Ask for labels at random, at the rate of the budget (Rnd)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from core import rng
from core.jit import kernel
from core.queries.base import AT_RANDOM, NO, Query
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
    plan: Any,
    knobs: Any,
    at: int,
    ints: Any,
    floats: Any,
    state: int,
    limit: float,
    node: int,
    leaf: int,
    t: int,
) -> tuple[int, float]:
    """Draw for record t."""
    wanted = rng.uniform(plan[layout.PLAN_QUERY_KEY], t << rng.DRAW_BITS) < limit
    return AT_RANDOM if wanted else NO, limit
