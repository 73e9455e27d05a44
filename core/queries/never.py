"""Never ask: the model learns from the labels that come by themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from core.jit import kernel
from core.queries.base import NO, UNKNOWN, Query


@dataclass(frozen=True, slots=True)
class Plugin(Query):
    """No record is worth its label: ``{"name": "never"}``."""


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
    """Say no."""
    return NO, UNKNOWN
