"""Count budget: the share of all records so far whose label was requested."""

from __future__ import annotations

from dataclasses import dataclass

from core.active.budgets.base import Budget
from core.kernels.jit import kernel


@dataclass(frozen=True, slots=True)
class Plugin(Budget):
    """Open iff ``spent / t < limit``, t with this record: ``{"name": "count", "limit": 0.1}`` [D19]
    (De Rosa and Cesa-Bianchi 2017).

    Labels that never arrive count as spent, unless ``respend`` returns them. ``spent < limit·t + 1`` always
    holds: requests that were saved early may be spent at once later. The budget ``window`` forgets them
    instead.
    """


@kernel
def is_open(p, state, spent: float, returned: int, number: int) -> bool:
    """Compare the share of requests with the limit."""
    return spent / number < p.limit


@kernel
def spend(p, state, asked: bool, reserved: bool) -> None:
    """Has no state: the model counts its requests."""
