"""Never: request no label; the model learns from labels that arrive without a request."""

from __future__ import annotations

from dataclasses import dataclass

from core.active.queries.base import NO, UNKNOWN, Query
from core.kernels.jit import kernel


@dataclass(frozen=True, slots=True)
class Plugin(Query):
    """No record is worth its label: ``{"name": "never"}``."""


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
    return NO, UNKNOWN
