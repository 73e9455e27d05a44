"""Ask where the leaf is least sure, with a threshold that adapts (VarUn)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from core.jit import kernel
from core.plugin import number
from core.queries.base import NO, UNKNOWN, YES, Query
from core.tree.statistics import largest_share


@dataclass(frozen=True, slots=True)
class Plugin(Query):
    """Ask iff the largest class share is below θ; θ shrinks by s after a yes and grows by s after a no.

    ``{"name": "variable_uncertainty", "step": 0.01}`` (ALGORITHMS section 9.2, VarUn; Žliobaitė et al. 2014).
    θ moves only while the budget is open [D20]; the share is the leaf's, whatever the leaf model predicts
    [D22].
    """

    step: float = number(0.01, above=0.0, below=1.0)
    """Share by which the threshold moves at each record."""

    def initial(self) -> tuple[float, ...]:
        """Return θ = 1."""
        return (1.0,)


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
    """Compare the share with θ and move θ."""
    return move(knobs, at, floats, state, largest_share(ints, floats, node) < floats[state]), UNKNOWN


@kernel
def move(knobs: Any, at: int, floats: Any, state: int, unsure: bool) -> int:
    """Move θ and return the answer, without a branch to guess."""
    floats[state] *= 1.0 - knobs[at] if unsure else 1.0 + knobs[at]
    return YES if unsure else NO
