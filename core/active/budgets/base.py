"""Budgets: the limit on label requests, checked before the query strategy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final

from core import registry
from core.kernels.jit import kernel
from core.plugin import Parameters, flag, number
from core.tree import layout

LIMIT: Final = 0
RESPEND: Final = 1
OWN: Final = 2
"""Where the parameters of a budget lie behind ``params[at]``: the common ones, then its own."""


@dataclass(frozen=True, slots=True)
class Budget(Parameters):
    """Says whether a label may be asked for; ``limit`` is the share of records it grants (ALGORITHMS 9.1).

    A request is spent when it is made, whatever becomes of it. With ``respend`` one that was declined or has
    expired is *returned* and may be spent again.

    The module has two kernels. ``is_open(params, at, floats, state, spent, returned, t) -> bool`` gets the
    requests before record t less those returned, and how many were returned (0 without ``respend``);
    ``spend(params, at, floats, state, asked, reserved)`` is told of every record what was decided, and
    whether it was asked for the evaluation's sake, past the gate. A closed budget leaves the strategy unasked
    and its state as it is [D20]. One with a state has ``problem(params, at, floats, state) -> int``, too,
    which says what is wrong with it (core/plugin.py).
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
        registry.dispatch("budgets", "is_open", "params, at, floats, state, spent, returned, t"),
        registry.dispatch("budgets", "spend", "params, at, floats, state, asked, reserved"),
    )


@kernel
def returned_requests(params, at: int, ints) -> int:
    """Return the requests that the budget takes back: with ``respend`` those declined and expired."""
    if params[at + RESPEND] == 0.0:
        return 0
    return ints[layout.MODEL_DECLINED] + ints[layout.MODEL_EXPIRED]


@kernel
def spent_requests(plan, ints, returned: int, t: int) -> float:
    """Return the requests the gate counts before record t, those of the evaluation by their rate."""
    spent = float(ints[layout.MODEL_REQUESTS] - ints[layout.MODEL_RESERVED] - returned)
    if plan[layout.PLAN_SLICE] > 0:
        spent += 1.0 + (t - 1) / plan[layout.PLAN_SLICE]
    return spent


def problem_dispatcher() -> Any:
    """Return ``problem(kind, …)`` over the budgets that have it."""
    return registry.dispatch("budgets", "problem", "params, at, floats, state", otherwise=0)
