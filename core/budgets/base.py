"""Budgets: a gate before the query strategy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from core import registry
from core.plugin import Parameters, number


@dataclass(frozen=True, slots=True)
class Budget(Parameters):
    """Says whether a label may be asked for; ``limit`` is the share of records it grants (ALGORITHMS 9.1).

    The module has two kernels. ``is_open(knobs, at, floats, state, requests, t) -> bool`` gets the labels
    asked for before record t; ``spend(knobs, at, floats, state, asked)`` is told of every record what was
    decided. A closed budget leaves the strategy unasked and its state as it is [D20].
    """

    family: ClassVar[str] = "budgets"

    limit: float = number(1.0, above=0.0, at_most=1.0)

    def initial(self) -> tuple[float, ...]:
        """Return the state of a new model."""
        return ()


def dispatcher() -> tuple[Any, Any]:
    """Return ``is_open(kind, …)`` and ``spend(kind, …)`` over all budgets."""
    return (
        registry.dispatch("budgets", "is_open", "knobs, at, floats, state, requests, t"),
        registry.dispatch("budgets", "spend", "knobs, at, floats, state, asked"),
    )
