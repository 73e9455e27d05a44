"""HDDM-A: drift when the mean error leaves its lowest bound (Frías-Blanco et al. 2015, A-test)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Final

from core.drift.base import DRIFT, IN_CONTROL, WARNING, Detector, clear
from core.kernels.jit import kernel
from core.kernels.records import Record, word
from core.layout.model import Floats
from core.plugin import choice, number

PROBLEMS: Final = (
    "inputs must be a number of at least 0",
    "inputs before a cut must be from 0 to the number of inputs",
)

IGNORED: Final = 0.0
RESTART: Final = 1.0
FALLS: Final = {"ignore": IGNORED, "restart": RESTART, "drift": 2.0}
"""Effect of a falling error rate: the number that kernels get for it."""


class HddmAState(Record):
    """Sums of the inputs since the last reset, and of those before the two cuts."""

    n: float = word("inputs")
    total: float = word("sum of the inputs")
    low_n: float = word("inputs before the cut with the lowest upper bound of the mean")
    low_total: float = word("sum of these inputs")
    high_n: float = word("inputs before the cut with the highest lower bound of the mean")
    high_total: float = word("sum of these inputs")
    alarm: float = word("1.0: the last input was a drift")


STATE_WORDS: Final = HddmAState.SIZE


@dataclass(frozen=True, slots=True)
class Plugin(Detector):
    """Mean of all inputs against the mean before the best cut, by Hoeffding's bound.

    ``{"name": "hddm_a", "drift": 0.001, "warning": 0.005, "fall": "restart"}``. The cut is where mean plus
    bound was lowest. ``drift`` and ``warning`` are the confidences of the test that the mean has risen since
    then. A fall of the mean, tested in the same way against the cut where mean minus bound was highest,
    starts the detector again (MOA's default), is a drift as well, or is ignored.
    """

    NUMBERS: ClassVar[tuple[str, ...]] = ("drift", "warning", "fall")
    ASCENDING: ClassVar[tuple[str, ...]] = ("drift", "warning")

    drift: float = number(0.001, above=0.0, below=1.0)
    """Probability that a drift is a false alarm."""
    warning: float = number(0.005, above=0.0, below=1.0)
    """Probability that a warning is a false alarm."""
    fall: str = choice("restart", *FALLS)
    """Effect of a falling error rate: the detector starts again, or there is a drift, or none."""

    def constants(self) -> tuple[float, ...]:
        """Return the parameters in the order of NUMBERS."""
        return self.drift, self.warning, FALLS[self.fall]

    def initial(self) -> tuple[float, ...]:
        return (0.0,) * STATE_WORDS

    def error_rate(self, state: Floats) -> float:
        """Return the mean since the last reset."""
        sums = HddmAState.over(state)
        return float(sums.total / sums.n) if sums.n else 0.0


@kernel
def update(p, state: HddmAState, error: float) -> int:
    """Take in one error (1.0) or success (0.0) and return the level."""
    if state.alarm != 0.0:
        clear(state, STATE_WORDS)
    n = state.n + 1.0
    total = state.total + error
    state.n = n
    state.total = total
    if state.low_n == 0.0:
        state.low_n = n
        state.low_total = total
        state.high_n = n
        state.high_total = total
    mean, logarithm = total / n, math.log(1.0 / p.drift)
    bound = math.sqrt(1.0 / (2.0 * n) * logarithm)
    low_bound = math.sqrt(1.0 / (2.0 * state.low_n) * logarithm)
    if state.low_total / state.low_n + low_bound >= mean + bound:
        state.low_n = n
        state.low_total = total
    high_bound = math.sqrt(1.0 / (2.0 * state.high_n) * logarithm)
    if state.high_total / state.high_n - high_bound <= mean - bound:
        state.high_n = n
        state.high_total = total
    rise = mean - state.low_total / state.low_n
    if state.low_n != n and rise >= bound_between(state.low_n, n, p.drift):
        state.alarm = 1.0
        return DRIFT
    is_warning = state.low_n != n and rise >= bound_between(state.low_n, n, p.warning)
    if p.fall != IGNORED and state.high_n != n:
        fall = state.high_total / state.high_n - mean
        if fall >= bound_between(state.high_n, n, p.drift):
            if p.fall == RESTART:
                clear(state, STATE_WORDS)
            else:
                state.alarm = 1.0
                return DRIFT
    return WARNING if is_warning else IN_CONTROL


@kernel
def bound_between(before: float, n: float, confidence: float) -> float:
    """Return Hoeffding's bound of the difference between the mean of n inputs and that of the first ones."""
    return math.sqrt((n - before) / before * (1.0 / n) / 2.0 * math.log(2.0 / confidence))


@kernel
def problem(p, state: HddmAState) -> int:
    if not 0.0 <= state.n < math.inf:
        return 1
    if not 0.0 <= state.low_n <= state.n or not 0.0 <= state.high_n <= state.n:
        return 2
    return 0
