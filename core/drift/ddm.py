"""DDM: drift when the error rate leaves its minimum (Gama et al. 2004)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

from core.drift.base import DRIFT, IN_CONTROL, WARNING, Detector
from core.kernels.jit import kernel
from core.plugin import count, number

# State: inputs since the last reset plus one, error rate p, smallest p+s with its p and s, errors, alarm
N: Final = 0
P: Final = 1
MIN_SUM: Final = 2
MIN_P: Final = 3
MIN_S: Final = 4
ERRORS: Final = 5
ALARM: Final = 6

PROBLEMS: Final = ("inputs must be a number of at least 1", "the error rate must be from 0 to 1")


@dataclass(frozen=True, slots=True)
class Plugin(Detector):
    """Error rate p with deviation s against the smallest ``p + s`` so far (ALGORITHMS section 10).

    ``{"name": "ddm", "warm_up": 30, "warning": 2.0, "drift": 3.0, "min_errors": 0}``. Warning at
    ``p + s > p_min + warning·s_min``, drift likewise; the level does not change before ``warm_up`` inputs. A
    stream without an error has p_min = s_min = 0, and its first error is a drift; with ``min_errors = e`` the
    minima are taken only after e errors since the last reset.
    """

    warm_up: int = count(30, at_least=1)
    """Labels before the level may change."""
    warning: float = number(2.0, above=0.0)
    """Standard deviations above the minimum that are a warning."""
    drift: float = number(3.0, above=0.0)
    """Standard deviations above the minimum that are a drift."""
    min_errors: int = count(0, at_least=0)
    """Errors before minima are taken."""

    def initial(self) -> tuple[float, ...]:
        return (1.0, 1.0, math.inf, math.inf, math.inf, 0.0, 0.0)

    def error_rate(self, state: Any) -> float:
        return float(state[P])


@kernel
def update(params, at: int, floats, state: int, error: float) -> int:
    """Take in one error (1.0) or success (0.0) and return the level; state: float64[7] from ``state`` on."""
    if floats[state + ALARM] != 0.0:
        floats[state + N] = 1.0
        floats[state + P] = 1.0
        floats[state + MIN_SUM] = math.inf
        floats[state + MIN_P] = math.inf
        floats[state + MIN_S] = math.inf
        floats[state + ERRORS] = 0.0
        floats[state + ALARM] = 0.0
    n = floats[state + N]
    p = floats[state + P] + (error - floats[state + P]) / n
    s = math.sqrt(p * (1.0 - p) / n)
    n += 1.0
    floats[state + N] = n
    floats[state + P] = p
    floats[state + ERRORS] += error
    warm_up, warning, drift, min_errors = params[at], params[at + 1], params[at + 2], params[at + 3]
    if n < warm_up:
        return IN_CONTROL
    if p + s <= floats[state + MIN_SUM] and floats[state + ERRORS] >= min_errors:
        floats[state + MIN_SUM] = p + s
        floats[state + MIN_P] = p
        floats[state + MIN_S] = s
    if n > warm_up and p + s > floats[state + MIN_P] + drift * floats[state + MIN_S]:
        floats[state + ALARM] = 1.0
        return DRIFT
    if p + s > floats[state + MIN_P] + warning * floats[state + MIN_S]:
        return WARNING
    return IN_CONTROL


@kernel
def problem(params, at: int, floats, state: int) -> int:
    if not 1.0 <= floats[state + N] < math.inf:
        return 1
    return 0 if 0.0 <= floats[state + P] <= 1.0 else 2
