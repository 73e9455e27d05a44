"""VarUn: request labels where the largest class share is below a threshold that adapts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from core.active.queries.base import NO, UNKNOWN, YES, Query, Uncertainty
from core.active.scores import score_parameter
from core.kernels.jit import kernel
from core.kernels.records import Record, word
from core.layout.model import ModelHeader
from core.layout.plan import PlanRecord
from core.plugin import number

PROBLEMS: Final = ("the threshold must be a number above 0",)


class ThresholdState(Record):
    """The threshold that adapts."""

    threshold: float = word("θ: a label is requested below this class share")


@dataclass(frozen=True, slots=True)
class Plugin(Query):
    """Request iff the largest class share is below θ; θ shrinks by s after a request, else it grows.

    ``{"name": "variable_uncertainty", "step": 0.01}`` (VarUn; Žliobaitė et al. 2014). θ moves only while the
    budget is open [D20]; the share is that of the answer, by ``score`` [D71].
    """

    step: float = number(0.01, above=0.0, below=1.0)
    """Relative step by which the threshold moves at each record."""
    score: str = score_parameter("least_confidence")
    """Measure of doubt about the answer (core/active/scores.py)."""

    def initial(self) -> tuple[float, ...]:
        return (1.0,)


@kernel
def decide(
    plan: PlanRecord, p, model: ModelHeader, state: ThresholdState, limit: float, uncertainty: Uncertainty
) -> tuple[int, float]:
    return move(p, state, uncertainty.share < state.threshold), UNKNOWN


@kernel
def move(p, state: ThresholdState, unsure: bool) -> int:
    """Move θ and return the answer, without a branch that could be mispredicted."""
    state.threshold *= 1.0 - p.step if unsure else 1.0 + p.step
    return YES if unsure else NO


@kernel
def score(uncertainty: Uncertainty) -> float:
    return 1.0 - uncertainty.share


@kernel
def problem(p, state: ThresholdState) -> int:
    return 0 if 0.0 < state.threshold < math.inf else 1
