"""Page-Hinkley: drift when deviations from the running mean add up (Page 1954, with a forgetting factor)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Final

from core.drift.base import DRIFT, IN_CONTROL, Detector
from core.errors import ParameterError
from core.kernels.jit import kernel
from core.kernels.records import Record, word
from core.layout.model import Floats
from core.plugin import choice, count, flag, number

PROBLEMS: Final = ("inputs must be a number of at least 0",)


class PageHinkleyState(Record):
    """The deviations of the inputs from their mean, since the last reset."""

    n: float = word("inputs")
    mean: float = word("mean of the inputs")
    rise: float = word("sum of deviations less the tolerance")
    lowest: float = word("smallest of these sums")
    fall: float = word("sum of deviations plus the tolerance")
    highest: float = word("largest of these sums")
    alarm: float = word("1.0: the last input was a drift")


@dataclass(frozen=True, slots=True)
class Plugin(Detector):
    """Cumulative sum of ``error - mean - tolerance``: drift when it is ``threshold`` above its minimum.

    ``{"name": "page_hinkley", "warm_up": 30, "tolerance": 0.005, "threshold": 50.0, "memory": 0.9999}``. Each
    input first multiplies the sum by ``memory``; the level does not change before ``warm_up`` inputs. With
    ``two_sided`` a falling error rate is a drift as well. There is no warning level, so that a rebuild starts
    with a new tree. With ``compat="moa"`` the sum is compared with the threshold without its minimum, which
    reacts the later the longer there were few errors, and the level may change an input earlier [D68].
    """

    NUMBERS: ClassVar[tuple[str, ...]] = (
        "warm_up",
        "tolerance",
        "threshold",
        "memory",
        "two_sided",
        "is_moa",
    )

    warm_up: int = count(30, at_least=1)
    """Labels before the level may change."""
    tolerance: float = number(0.005, at_least=0.0)
    """Deviation from the mean that is ignored."""
    threshold: float = number(50.0, above=0.0)
    """Sum of deviations that is a drift."""
    memory: float = number(0.9999, above=0.0, at_most=1.0)
    """Factor that multiplies the sum at each label, to forget."""
    two_sided: bool = flag(False)
    """Whether a falling error rate is a drift, too."""
    compat: str | None = choice(None, None, "moa")
    """The published formulas, or MOA's."""

    def __post_init__(self) -> None:
        """Check the parameters, separately and together."""
        Detector.__post_init__(self)
        if self.two_sided and self.compat == "moa":
            msg = "two_sided=True must be false with compat='moa': MOA's looks for rising error rates alone"
            raise ParameterError(msg)

    def check_together(self) -> None:
        """Refuse a memory with which no sum reaches the threshold.

        Deviations are from -1 to 1. With a memory of m a sum is less than 2 / (1 - m) above its minimum.
        """
        reach = 2.0 / (1.0 - self.memory) if self.memory < 1.0 else math.inf
        if self.threshold >= reach:
            msg = (
                f"threshold={self.threshold} must be below {reach:.4g} with memory={self.memory}: sums that "
                "forget so fast never reach it; lower threshold, or raise memory"
            )
            raise ParameterError(msg)

    def constants(self) -> tuple[float, ...]:
        """Return the parameters in the order of NUMBERS."""
        return (*Detector.constants(self), float(self.compat == "moa"))

    def initial(self) -> tuple[float, ...]:
        return (0.0, 0.0, 0.0, math.inf, 0.0, -math.inf, 0.0)

    def error_rate(self, state: Floats) -> float:
        """Return the mean since the last reset."""
        return float(PageHinkleyState.over(state).mean)


@kernel
def update(p, state: PageHinkleyState, error: float) -> int:
    """Take in one error (1.0) or success (0.0) and return the level."""
    if state.alarm != 0.0:
        state.n = 0.0
        state.mean = 0.0
        state.rise = 0.0
        state.lowest = math.inf
        state.fall = 0.0
        state.highest = -math.inf
        state.alarm = 0.0
    n = state.n + 1.0
    mean = state.mean + (error - state.mean) / n
    rise = p.memory * state.rise + (error - mean) - p.tolerance
    fall = p.memory * state.fall + (error - mean) + p.tolerance
    lowest = min(rise, state.lowest)
    highest = max(fall, state.highest)
    state.n = n
    state.mean = mean
    state.rise = rise
    state.lowest = lowest
    state.fall = fall
    state.highest = highest
    if p.is_moa != 0.0:
        alarm = n + 1.0 >= p.warm_up and rise > p.threshold
    else:
        has_fallen = p.two_sided != 0.0 and highest - fall > p.threshold
        alarm = n >= p.warm_up and (rise - lowest > p.threshold or has_fallen)
    state.alarm = 1.0 if alarm else 0.0
    return DRIFT if alarm else IN_CONTROL


@kernel
def problem(p, state: PageHinkleyState) -> int:
    return 0 if 0.0 <= state.n < math.inf else 1
