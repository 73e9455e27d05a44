"""HDDM-W: drift when a moving average of errors leaves its lowest bound (Frías-Blanco et al. 2015)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Final

from core.drift.base import DRIFT, IN_CONTROL, WARNING, Detector
from core.drift.hddm_a import FALLS, IGNORED, RESTART
from core.errors import ParameterError
from core.kernels.jit import kernel
from core.kernels.records import Record, word
from core.layout.model import Floats
from core.plugin import choice, number

PROBLEMS: Final = ("sums of squared weights must be from 0 to 1",)

EMPTY: Final = -1.0
"""Average of a sample without an input."""


class HddmWState(Record):
    """Moving averages of samples of the inputs, each with the sum of its squared weights."""

    all: float = word("average of all inputs since the last reset")
    all_weight: float = word("its sum of squared weights")
    low: float = word("average of the inputs before the cut with the lowest upper bound")
    low_weight: float = word("its sum of squared weights")
    after_low: float = word("average of the inputs after this cut")
    after_low_weight: float = word("its sum of squared weights")
    lowest: float = word("lowest upper bound")
    high: float = word("average of the inputs before the cut with the highest lower bound")
    high_weight: float = word("its sum of squared weights")
    after_high: float = word("average of the inputs after this cut")
    after_high_weight: float = word("its sum of squared weights")
    highest: float = word("highest lower bound, at least 0")
    alarm: float = word("1.0: the last input was a drift")


@dataclass(frozen=True, slots=True)
class Plugin(Detector):
    """Moving average after the best cut against the one before it, by McDiarmid's bound.

    ``{"name": "hddm_w", "drift": 0.001, "warning": 0.005, "weight": 0.05, "fall": "ignore"}``. An average
    gives ``weight`` (the paper's λ) to each new input. The cut is where average plus bound was lowest.
    ``drift`` and ``warning`` are the confidences of the test that the average after the cut is higher. A fall
    below the cut where average minus bound was highest is ignored (MOA's default), starts the detector again,
    or is a drift as well.
    """

    NUMBERS: ClassVar[tuple[str, ...]] = ("drift", "warning", "weight", "fall")
    ASCENDING: ClassVar[tuple[str, ...]] = ("drift", "warning")

    drift: float = number(0.001, above=0.0, below=1.0)
    """Probability that a drift is a false alarm."""
    warning: float = number(0.005, above=0.0, below=1.0)
    """Probability that a warning is a false alarm."""
    weight: float = number(0.05, above=0.0, below=1.0)
    """Weight of a new input in the moving averages."""
    fall: str = choice("ignore", *FALLS)
    """Effect of a falling error rate: none, or the detector starts again, or there is a drift."""

    def check_together(self) -> None:
        """Refuse a weight with which the bound is above 1, the largest difference of two averages.

        The sum of squared weights of a long average is weight / (2 - weight), that of a short one is larger.
        """
        most = 2.0 / (1.0 + math.log(1.0 / self.drift))
        if self.weight >= most:
            msg = (
                f"weight={self.weight} must be below {most:.3g} with drift={self.drift}: no change of the "
                "errors would be a drift; lower weight, or raise drift"
            )
            raise ParameterError(msg)

    def constants(self) -> tuple[float, ...]:
        """Return the parameters in the order of NUMBERS."""
        return self.drift, self.warning, self.weight, FALLS[self.fall]

    def initial(self) -> tuple[float, ...]:
        return (EMPTY, 0.0, EMPTY, 0.0, EMPTY, 0.0, math.inf, EMPTY, 0.0, EMPTY, 0.0, 0.0, 0.0)

    def error_rate(self, state: Floats) -> float:
        """Return the moving average since the last reset."""
        return max(float(HddmWState.over(state).all), 0.0)


@kernel
def update(p, state: HddmWState, error: float) -> int:
    """Take in one error (1.0) or success (0.0) and return the level."""
    if state.alarm != 0.0:
        start_again(state)
    state.all, state.all_weight = averaged(p.weight, state.all, state.all_weight, error)
    bound = math.sqrt(state.all_weight * math.log(1.0 / p.drift) / 2.0)
    if state.all + bound < state.lowest:
        state.lowest = state.all + bound
        state.low = state.all
        state.low_weight = state.all_weight
        state.after_low = EMPTY
        state.after_low_weight = 0.0
    else:
        state.after_low, state.after_low_weight = averaged(
            p.weight, state.after_low, state.after_low_weight, error
        )
    level = IN_CONTROL
    if state.low >= 0.0 and state.after_low >= 0.0:
        rise, weights = state.after_low - state.low, state.low_weight + state.after_low_weight
        if rise > math.sqrt(weights * math.log(1.0 / p.drift) / 2.0):
            state.alarm = 1.0
            return DRIFT
        if rise > math.sqrt(weights * math.log(1.0 / p.warning) / 2.0):
            level = WARNING
    if p.fall != IGNORED and has_fallen(p, state, error, bound):
        if p.fall != RESTART:
            state.alarm = 1.0
            return DRIFT
        start_again(state)
    return level


@kernel
def has_fallen(p, state: HddmWState, error: float, bound: float) -> bool:
    """Take in an input after the cut with the highest lower bound; return whether the average has fallen."""
    if state.all - bound > state.highest:
        state.highest = state.all - bound
        state.high = state.all
        state.high_weight = state.all_weight
        state.after_high = EMPTY
        state.after_high_weight = 0.0
        return False
    state.after_high, state.after_high_weight = averaged(
        p.weight, state.after_high, state.after_high_weight, error
    )
    if state.high < 0.0:
        return False
    weights = state.high_weight + state.after_high_weight
    return state.high - state.after_high > math.sqrt(weights * math.log(1.0 / p.drift) / 2.0)


@kernel
def averaged(weight: float, average: float, squares: float, error: float) -> tuple[float, float]:
    """Return the moving average with one input more, and its sum of squared weights."""
    if average < 0.0:
        return error, 1.0
    rest = 1.0 - weight
    return weight * error + rest * average, weight * weight + rest * rest * squares


@kernel
def start_again(state: HddmWState) -> None:
    """Forget all inputs."""
    state.all = EMPTY
    state.all_weight = 0.0
    state.low = EMPTY
    state.low_weight = 0.0
    state.after_low = EMPTY
    state.after_low_weight = 0.0
    state.lowest = math.inf
    state.high = EMPTY
    state.high_weight = 0.0
    state.after_high = EMPTY
    state.after_high_weight = 0.0
    state.highest = 0.0
    state.alarm = 0.0


@kernel
def problem(p, state: HddmWState) -> int:
    sums = (
        state.all_weight,
        state.low_weight,
        state.after_low_weight,
        state.high_weight,
        state.after_high_weight,
    )
    for sum_ in sums:
        if not 0.0 <= sum_ <= 1.0:
            return 1
    return 0
