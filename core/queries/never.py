"""Never ask: the model learns from the labels that come by themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from core.jit import kernel
from core.queries.base import Query


@dataclass(frozen=True, slots=True)
class Plugin(Query):
    """No record is worth its label: ``{"name": "never"}``."""


@kernel
def decide(
    knobs: Any, at: int, floats: Any, state: int, limit: float, share: float, key: int, t: int
) -> bool:
    """Say no."""
    return False
