"""Budgets: the limit on label requests, checked before the query strategy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from core import registry
from core.kernels.jit import kernel
from core.layout.model import ModelHeader
from core.layout.plan import PlanRecord
from core.plugin import Parameters, flag, number


@dataclass(frozen=True, slots=True)
class Budget(Parameters):
    """Limits label requests; ``limit`` is the share of records that it grants.

    A request is spent when it is made, however it ends. With ``respend`` a request that was declined or has
    expired is *returned* and may be spent again.

    The module has two kernels, which get the parameters by name (``p.limit``) and the budget's state.
    ``is_open(p, state, spent, returned, number) -> bool`` gets the number of requests before a record without
    the returned requests, the number of these (0 without ``respend``), and the record's number.
    ``spend(p, state, asked, reserved)`` is called for every record with the decision, and with whether the
    request was made for the evaluation, past the budget. While the budget is closed, the strategy is not
    called and its state does not change [D20]. A budget with a state declares a record for it, and has
    ``problem(p, state) -> int``, which returns the number of a sentence if the state is invalid
    (core/plugin.py).
    """

    family: ClassVar[str] = "budgets"

    limit: float = number(1.0, above=0.0, at_most=1.0)
    """Share of the records whose label may be requested."""
    respend: bool = flag(False)
    """Whether a request that was declined or has expired may be spent again."""

    def initial(self) -> tuple[float, ...]:
        """Return the state of a new model."""
        return ()


BudgetLimits: Any = Budget.record()
"""The record of the parameters that all budgets have; they come first."""


def dispatcher() -> tuple[Any, Any]:
    """Return ``is_open(kind, …)`` and ``spend(kind, …)`` over all budgets."""
    return (
        registry.dispatch("budgets", "is_open", "p, state, spent, returned, number"),
        registry.dispatch("budgets", "spend", "p, state, asked, reserved"),
    )


@kernel
def limits_of(plan: PlanRecord) -> Any:
    """Return the parameters that all budgets have: ``limit`` and ``respend``."""
    return BudgetLimits(plan.ints, plan.floats, plan.budgeting_at)


@kernel
def returned_requests(plan: PlanRecord, model: ModelHeader) -> int:
    """Return the number of returned requests: with ``respend`` the declined and expired requests."""
    if limits_of(plan).respend == 0.0:
        return 0
    return model.declined + model.expired


@kernel
def spent_requests(plan: PlanRecord, model: ModelHeader, returned: int, number: int) -> float:
    """Return the requests that count before a record; those for the evaluation count by their rate."""
    spent = float(model.requests - model.reserved - returned)
    if plan.slice > 0:
        spent += 1.0 + (number - 1) / plan.slice
    return spent


def problem_dispatcher() -> Any:
    """Return ``problem(kind, …)`` over the budgets that have it."""
    return registry.dispatch("budgets", "problem", "p, state", otherwise=0)
