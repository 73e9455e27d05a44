"""CUSUM: drift when the errors above their running mean add up (Page 1954)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from core.drift.base import DRIFT, IN_CONTROL, Detector, clear
from core.errors import ParameterError
from core.kernels.jit import kernel
from core.kernels.records import Record, word
from core.layout.model import Floats
from core.plugin import count, number

PROBLEMS: Final = ("inputs must be a number of at least 0",)


class CusumState(Record):
    """The inputs since the last reset."""

    n: float = word("inputs")
    mean: float = word("mean of the inputs")
    sum: float = word("sum of deviations less the tolerance, never below 0")
    alarm: float = word("1.0: the last input was a drift")


STATE_WORDS: Final = CusumState.SIZE


@dataclass(frozen=True, slots=True)
class Plugin(Detector):
    """Sum of ``error - mean - tolerance``, never below 0: drift when it is above ``threshold``.

    ``{"name": "cusum", "warm_up": 30, "tolerance": 0.005, "threshold": 50.0}``. The level does not change
    before ``warm_up`` inputs. There is no warning level, so that a rebuild starts with a new tree. MOA's
    CusumDM counts its least number of inputs from 1: there it is larger by one.
    """

    warm_up: int = count(30, at_least=1)
    """Labels before the level may change."""
    tolerance: float = number(0.005, at_least=0.0)
    """Deviation from the mean that is ignored."""
    threshold: float = number(50.0, above=0.0)
    """Sum of deviations that is a drift."""

    def check_together(self) -> None:
        """Refuse a tolerance that no error exceeds."""
        if self.tolerance >= 1.0:
            msg = f"tolerance={self.tolerance} must be below 1: no error is so far above the mean; lower it"
            raise ParameterError(msg)

    def initial(self) -> tuple[float, ...]:
        return (0.0,) * STATE_WORDS

    def error_rate(self, state: Floats) -> float:
        """Return the mean since the last reset."""
        return float(CusumState.over(state).mean)


@kernel
def update(p, state: CusumState, error: float) -> int:
    """Take in one error (1.0) or success (0.0) and return the level."""
    if state.alarm != 0.0:
        clear(state, STATE_WORDS)
    n = state.n + 1.0
    mean = state.mean + (error - state.mean) / n
    sum_ = max(0.0, state.sum + error - mean - p.tolerance)
    state.n = n
    state.mean = mean
    state.sum = sum_
    if n < p.warm_up or sum_ <= p.threshold:
        return IN_CONTROL
    state.alarm = 1.0
    return DRIFT


@kernel
def problem(p, state: CusumState) -> int:
    return 0 if 0.0 <= state.n < math.inf else 1
