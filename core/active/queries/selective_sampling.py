"""Sel-Samp: request labels at random, the more likely the smaller the margin at the leaf."""

from __future__ import annotations

from dataclasses import dataclass

from core.active.queries.base import NO, YES, Query
from core.kernels.jit import kernel
from core.numeric import rng
from core.tree import layout


@dataclass(frozen=True, slots=True)
class Plugin(Query):
    """Request with probability B / (B + |p̂ - 1/K|), p̂ the largest class share at the leaf.

    ``{"name": "selective_sampling"}`` (ALGORITHMS section 9.2, Sel-Samp; Žliobaitė et al. 2014, after
    Cesa-Bianchi et al. 2006). K is the number of known classes, at least 2.
    """

    @property
    def columns(self) -> int:
        return layout.SHARE


@kernel
def probability(limit: float, share: float, classes: float) -> float:
    """Return the probability of a request at a leaf with this largest share."""
    return limit / (limit + abs(share - 1.0 / classes))


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
    wanted = probability(limit, share, classes)
    return YES if rng.uniform(plan[layout.PLAN_QUERY_KEY], t << rng.DRAW_BITS) < wanted else NO, wanted


@kernel
def score(share: float, lead: float, weight: float, classes: float, t: int) -> float:
    """Return the distance of the largest share from a pure leaf's, relative to the range above 1/K."""
    evenly = 1.0 / classes
    return 1.0 - evenly - abs(share - evenly)
