"""DDM: drift when the error rate leaves its minimum (Gama et al. 2004)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from core.drift.base import DRIFT, IN_CONTROL, WARNING, Detector
from core.kernels.jit import kernel
from core.kernels.records import Record, word
from core.layout.model import Floats
from core.plugin import count, number

PROBLEMS: Final = ("inputs plus one must be a number of at least 1", "the error rate must be from 0 to 1")


class DdmState(Record):
    """The errors since the last reset."""

    n: float = word("inputs since the last reset plus one")
    p: float = word("error rate")
    min_sum: float = word("smallest p + s, with s the standard deviation of p")
    min_p: float = word("p of the smallest sum")
    min_s: float = word("s of the smallest sum")
    errors: float = word("errors")
    alarm: float = word("1.0: the last input was a drift")


@dataclass(frozen=True, slots=True)
class Plugin(Detector):
    """Error rate p with deviation s against the smallest ``p + s`` so far.

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

    def error_rate(self, state: Floats) -> float:
        return float(DdmState.over(state).p)


@kernel
def update(p, state: DdmState, error: float) -> int:
    """Take in one error (1.0) or success (0.0) and return the level."""
    if state.alarm != 0.0:
        state.n = 1.0
        state.p = 1.0
        state.min_sum = math.inf
        state.min_p = math.inf
        state.min_s = math.inf
        state.errors = 0.0
        state.alarm = 0.0
    rate = state.p + (error - state.p) / state.n
    deviation = math.sqrt(rate * (1.0 - rate) / state.n)
    n = state.n + 1.0
    state.n = n
    state.p = rate
    state.errors += error
    if n < p.warm_up:
        return IN_CONTROL
    if rate + deviation <= state.min_sum and state.errors >= p.min_errors:
        state.min_sum = rate + deviation
        state.min_p = rate
        state.min_s = deviation
    if n > p.warm_up and rate + deviation > state.min_p + p.drift * state.min_s:
        state.alarm = 1.0
        return DRIFT
    if rate + deviation > state.min_p + p.warning * state.min_s:
        return WARNING
    return IN_CONTROL


@kernel
def problem(p, state: DdmState) -> int:
    if not 1.0 <= state.n < math.inf:
        return 1
    return 0 if 0.0 <= state.p <= 1.0 else 2
