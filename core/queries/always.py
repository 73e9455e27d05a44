"""Ask for every label the budget allows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from core.jit import kernel
from core.queries.base import AT_RANDOM, UNKNOWN, YES, Query


@dataclass(frozen=True, slots=True)
class Plugin(Query):
    """Every record is worth its label: ``{"name": "always"}``. The budget alone decides.

    With a budget for all of them they stand for all records. Below that the budget picks them by their places
    (each tenth at a limit of 0.1), which a stream with a period would not be fair to: then they do not.
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
) -> tuple[int, float]:
    """Say yes."""
    return (AT_RANDOM, 1.0) if limit >= 1.0 else (YES, UNKNOWN)
