"""Never: request no label; the model learns from labels that arrive without a request."""

from __future__ import annotations

from dataclasses import dataclass

from core.active.queries.base import NO, UNKNOWN, Query, Uncertainty
from core.kernels.jit import kernel
from core.layout.model import ModelHeader
from core.layout.plan import PlanRecord


@dataclass(frozen=True, slots=True)
class Plugin(Query):
    """No record is worth its label: ``{"name": "never"}``."""


@kernel
def decide(
    plan: PlanRecord, p, model: ModelHeader, state, limit: float, uncertainty: Uncertainty
) -> tuple[int, float]:
    return NO, UNKNOWN
