"""Always: request every label that the budget allows."""

from __future__ import annotations

from dataclasses import dataclass

from core.active.queries.base import AT_RANDOM, UNKNOWN, YES, Query, Uncertainty
from core.kernels.jit import kernel
from core.layout.model import ModelHeader
from core.layout.plan import PlanRecord


@dataclass(frozen=True, slots=True)
class Plugin(Query):
    """Every record is worth its label: ``{"name": "always"}``. The budget alone decides.

    With a limit of 1 the labels represent all records. With a lower limit the budget chooses records by their
    positions (every tenth at a limit of 0.1), which would bias an estimate on a periodic stream. These labels
    have no importance.
    """


@kernel
def decide(
    plan: PlanRecord, p, model: ModelHeader, state, limit: float, uncertainty: Uncertainty
) -> tuple[int, float]:
    return (AT_RANDOM, 1.0) if limit >= 1.0 else (YES, UNKNOWN)
