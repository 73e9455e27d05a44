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
"""Words of ``params[at:]``: the common parameters, then the budget's from OWN on."""


@dataclass(frozen=True, slots=True)
class Budget(Parameters):
    """Limits label requests; ``limit`` is the share of records that it grants (ALGORITHMS 9.1).

    A request is spent when it is made, however it ends. With ``respend`` a request that was declined or has
    expired is *returned* and may be spent again.

    The module has two kernels. ``is_open(params, at, floats, state, spent, returned, t) -> bool`` gets the
    number of requests before record t without the returned requests, and the number of these (0 without
    ``respend``). ``spend(params, at, floats, state, asked, reserved)`` is called for every record with the
    decision, and with whether the request was made for the evaluation, past the budget. While the budget is
    closed, the strategy is not called and its state does not change [D20]. A budget with a state also has
    ``problem(params, at, floats, state) -> int``, which returns the number of a sentence if the state is
    invalid (core/plugin.py).
    """

    family: ClassVar[str] = "budgets"

    limit: float = number(1.0, above=0.0, at_most=1.0)
    """Share of the records whose label may be requested."""
    respend: bool = flag(False)
    """Whether a request that was declined or has expired may be spent again."""

    def initial(self) -> tuple[float, ...]:
        """Return the state of a new model."""
        return ()


def dispatcher() -> tuple[Any, Any]:
    """Return ``is_open(kind, …)`` and ``spend(kind, …)`` over all budgets."""
    return (
        registry.dispatch(
            "budgets",
            "is_open",
            "p, state, spent, returned, number",
            by_offset="p.floats, p.start, state.floats, state.start, spent, returned, number",
        ),
        registry.dispatch(
            "budgets",
            "spend",
            "p, state, asked, reserved",
            by_offset="p.floats, p.start, state.floats, state.start, asked, reserved",
        ),
    )


@kernel
def returned_requests(params, at: int, ints) -> int:
    """Return the number of returned requests: with ``respend`` the declined and expired requests."""
    if params[at + RESPEND] == 0.0:
        return 0
    return ints[layout.MODEL_DECLINED] + ints[layout.MODEL_EXPIRED]


@kernel
def spent_requests(plan, ints, returned: int, t: int) -> float:
    """Return the requests that count before record t; those for the evaluation count by their rate."""
    spent = float(ints[layout.MODEL_REQUESTS] - ints[layout.MODEL_RESERVED] - returned)
    if plan[layout.PLAN_SLICE] > 0:
        spent += 1.0 + (t - 1) / plan[layout.PLAN_SLICE]
    return spent


def problem_dispatcher() -> Any:
    """Return ``problem(kind, …)`` over the budgets that have it."""
    return registry.dispatch(
        "budgets",
        "problem",
        "p, state",
        otherwise=0,
        by_offset="p.floats, p.start, state.floats, state.start",
    )
