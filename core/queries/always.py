"""Ask for every label the budget allows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from core.jit import kernel
from core.queries.base import AT_RANDOM, Query


@dataclass(frozen=True, slots=True)
class Plugin(Query):
    """Every record is worth its label: ``{"name": "always"}``. The budget alone decides.

    The budget does not look at records, so that those asked for may stand for all.
    """


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
) -> int:
    """Say yes."""
    return AT_RANDOM
