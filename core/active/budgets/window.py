"""Window budget: the share of recent records whose label was requested, with exponential forgetting."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from core.active.budgets.base import Budget
from core.kernels.jit import kernel
from core.kernels.records import Record, word
from core.plugin import count

PROBLEMS: Final = ("recent requests and those spent again must be numbers of at least 0",)


class SpentState(Record):
    """The requests that count."""

    recent: float = word("u: requests among the recent records, exponentially forgotten")
    again: float = word("returned requests that were spent again")


@dataclass(frozen=True, slots=True)
class Plugin(Budget):
    """Open iff ``u / window < limit``, u ← u·(window - 1)/window + asked, after each record.

    ``{"name": "window", "limit": 0.1, "window": 100}`` (Žliobaitė et al. 2014, section 2). Old savings and
    old debts fade: the rate of requests stays near the limit at any time. With ``respend`` a returned request
    opens the closed gate once and is not counted in u again. Other requests past the closed gate (after an
    alarm of the input detector) are counted in u.
    """

    window: int = count(100, at_least=1)
    """Number of recent records that the rate covers, by exponential forgetting."""

    def initial(self) -> tuple[float, ...]:
        """Return zero requests among the recent records, and zero returned requests that were spent again."""
        return (0.0, 0.0)


@kernel
def is_open(p, state: SpentState, spent: float, returned: int, number: int) -> bool:
    """Compare the recent share of requests with the limit; if closed, look for a returned request."""
    if state.recent / p.window < p.limit:
        return True
    return state.again < returned


@kernel
def spend(p, state: SpentState, asked: bool, reserved: bool) -> None:
    """Let the window forget one step and count this record."""
    is_returned = asked and not reserved and p.respend != 0.0 and state.recent / p.window >= p.limit
    state.recent *= (p.window - 1.0) / p.window
    if is_returned:
        state.again += 1.0
    elif asked:
        state.recent += 1.0


@kernel
def problem(p, state: SpentState) -> int:
    return 0 if 0.0 <= state.recent < math.inf and 0.0 <= state.again < math.inf else 1
