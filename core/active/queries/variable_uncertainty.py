"""VarUn: request labels where the largest class share at the leaf is below a threshold that adapts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from core.active.queries.base import NO, UNKNOWN, YES, Query
from core.kernels.jit import kernel
from core.plugin import number
from core.tree import layout

PROBLEMS: Final = ("the threshold must be a number above 0",)


@dataclass(frozen=True, slots=True)
class Plugin(Query):
    """Request iff the largest class share is below θ; θ shrinks by s after a request, else it grows.

    ``{"name": "variable_uncertainty", "step": 0.01}`` (ALGORITHMS section 9.2, VarUn; Žliobaitė et al. 2014).
    θ moves only while the budget is open [D20]; the share is the leaf's, independent of the leaf model's
    prediction [D22].
    """

    step: float = number(0.01, above=0.0, below=1.0)
    """Relative step by which the threshold moves at each record."""

    @property
    def columns(self) -> int:
        return layout.SHARE

    def initial(self) -> tuple[float, ...]:
        return (1.0,)


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
    return move(params, at, floats, state, share < floats[state]), UNKNOWN


@kernel
def move(params, at: int, floats, state: int, unsure: bool) -> int:
    """Move θ and return the answer, without a branch that could be mispredicted."""
    floats[state] *= 1.0 - params[at] if unsure else 1.0 + params[at]
    return YES if unsure else NO


@kernel
def score(share: float, lead: float, weight: float, classes: float, t: int) -> float:
    return 1.0 - share


@kernel
def problem(params, at: int, ints, floats, state: int) -> int:
    return 0 if 0.0 < floats[state] < math.inf else 1
