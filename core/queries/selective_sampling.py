"""Ask at random, the more likely the smaller the margin at the leaf (Sel-Samp)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from core import rng
from core.jit import kernel
from core.queries.base import NO, YES, Query
from core.tree import layout
from core.tree.statistics import known_classes, largest_share


@dataclass(frozen=True, slots=True)
class Plugin(Query):
    """Ask with probability B / (B + |p̂ - 1/K|), p̂ the largest class share at the leaf.

    ``{"name": "selective_sampling"}`` (ALGORITHMS section 9.2, Sel-Samp; Žliobaitė et al. 2014, after
    Cesa-Bianchi et al. 2006). K is the number of known classes, at least 2.
    """


@kernel
def probability(limit: float, share: float, classes: float) -> float:
    """Return how likely a record of a leaf with this largest share is asked for."""
    return limit / (limit + abs(share - 1.0 / classes))


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
    wanted = probability(limit, largest_share(ints, floats, node), known_classes(ints))
    return YES if rng.uniform(plan[layout.PLAN_QUERY_KEY], t << rng.DRAW_BITS) < wanted else NO, wanted
