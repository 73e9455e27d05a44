"""Ask for labels at random, at the rate of the budget (Rnd)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from core import rng
from core.jit import kernel
from core.queries.base import Query


@dataclass(frozen=True, slots=True)
class Plugin(Query):
    """Ask with the budget's probability: ``{"name": "random"}`` (ALGORITHMS section 9.2, Rnd: ``U < B``).

    The draw of record t depends on seed and t alone, so that a replay, and a run with another strategy
    between, decides alike.
    """


@kernel
def decide(
    knobs: Any, at: int, floats: Any, state: int, limit: float, share: float, key: Any, t: int
) -> bool:
    """Draw for record t."""
    return rng.uniform(key, t << rng.DRAW_BITS) < limit
