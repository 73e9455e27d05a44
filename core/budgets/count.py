"""The share of all records so far whose label was asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from core.budgets.base import Budget
from core.jit import kernel


@dataclass(frozen=True, slots=True)
class Plugin(Budget):
    """Open iff ``requests / t < limit``, t with this record: ``{"name": "count", "limit": 0.1}`` [D19].

    Labels that never arrive count as spent. ``requests < limit·t + 1`` always holds.
    """


@kernel
def is_open(knobs: Any, at: int, floats: Any, state: int, requests: int, t: int) -> bool:
    """Compare the share of requests with the limit."""
    return requests / t < knobs[at]


@kernel
def spend(knobs: Any, at: int, floats: Any, state: int, asked: bool) -> None:
    """Keep nothing: the model counts its requests."""
