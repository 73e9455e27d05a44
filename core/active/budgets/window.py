"""Window budget: the share of recent records whose label was requested, with exponential forgetting."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from core.active.budgets.base import LIMIT, OWN, Budget
from core.kernels.jit import kernel
from core.plugin import count

RECENT: Final = 0  # u: requests among the recent records, exponentially forgotten
PAID: Final = 1  # returned requests that were spent again

PROBLEMS: Final = ("recent requests and those spent again must be numbers of at least 0",)


@dataclass(frozen=True, slots=True)
class Plugin(Budget):
    """Open iff ``u / window < limit``, u ← u·(window - 1)/window + asked, after each record.

    ``{"name": "window", "limit": 0.1, "window": 100}`` (Žliobaitė et al. 2014, section 2; ALGORITHMS section
    9.1). Old savings and old debts fade: the rate of requests stays near the limit at any time. With
    ``respend`` a returned request opens the closed gate once and is not counted in u again.
    """

    window: int = count(100, at_least=1)
    """Number of recent records that the rate covers, by exponential forgetting."""

    def initial(self) -> tuple[float, ...]:
        """Return zero requests among the recent records, and zero returned requests that were spent again."""
        return (0.0, 0.0)


@kernel
def is_open(params, at: int, floats, state: int, spent: float, returned: int, t: int) -> bool:
    """Compare the recent share of requests with the limit; if closed, look for a returned request."""
    if floats[state + RECENT] / params[at + OWN] < params[at + LIMIT]:
        return True
    return floats[state + PAID] < returned


@kernel
def spend(params, at: int, floats, state: int, asked: bool, reserved: bool) -> None:
    """Let the window forget one step and count this record."""
    window = params[at + OWN]
    is_paid = asked and not reserved and floats[state + RECENT] / window >= params[at + LIMIT]
    floats[state + RECENT] *= (window - 1.0) / window
    if is_paid:
        floats[state + PAID] += 1.0
    elif asked:
        floats[state + RECENT] += 1.0


@kernel
def problem(params, at: int, floats, state: int) -> int:
    recent, paid = floats[state + RECENT], floats[state + PAID]
    return 0 if 0.0 <= recent < math.inf and 0.0 <= paid < math.inf else 1
