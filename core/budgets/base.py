"""Budgets: a gate before the query strategy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final

from core import registry
from core.plugin import Parameters, flag, number

LIMIT: Final = 0
RESPEND: Final = 1
OWN: Final = 2
"""Where the parameters of a budget lie behind ``knobs[at]``: the common ones, then its own."""


@dataclass(frozen=True, slots=True)
class Budget(Parameters):
    """Says whether a label may be asked for; ``limit`` is the share of records it grants (ALGORITHMS 9.1).

    A request is spent when it is made, whatever becomes of it. With ``respend`` one that was declined or has
    expired is *returned* and may be spent again.

    The module has two kernels. ``is_open(knobs, at, floats, state, spent, returned, t) -> bool`` gets the
    requests before record t less those returned, and how many were returned (0 without ``respend``);
    ``spend(knobs, at, floats, state, asked, reserved)`` is told of every record what was decided, and whether
    it was asked for the evaluation's sake, past the gate. A closed budget leaves the strategy unasked and its
    state as it is [D20].
    """

    family: ClassVar[str] = "budgets"

    limit: float = number(1.0, above=0.0, at_most=1.0)
    """Share of the records whose label may be asked for."""
    respend: bool = flag(False)
    """A request that was declined or has expired may be spent again."""

    def initial(self) -> tuple[float, ...]:
        """Return the state of a new model."""
        return ()


def dispatcher() -> tuple[Any, Any]:
    """Return ``is_open(kind, …)`` and ``spend(kind, …)`` over all budgets."""
    return (
        registry.dispatch("budgets", "is_open", "knobs, at, floats, state, spent, returned, t"),
        registry.dispatch("budgets", "spend", "knobs, at, floats, state, asked, reserved"),
    )
