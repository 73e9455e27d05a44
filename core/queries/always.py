"""Ask for every label the budget allows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from core.jit import kernel
from core.queries.base import Query


@dataclass(frozen=True, slots=True)
class Plugin(Query):
    """Every record is worth its label: ``{"name": "always"}``. The budget alone decides."""


@kernel
def decide(
    knobs: Any, at: int, floats: Any, state: int, limit: float, share: float, key: int, t: int
) -> bool:
    """Say yes."""
    return True
