"""Page-Hinkley: drift when deviations from the running mean add up (Page 1954, with a forgetting factor)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

from core.drift.base import DRIFT, IN_CONTROL, Detector
from core.errors import ParameterError
from core.kernels.jit import kernel
from core.plugin import choice, count, flag, number

# State: inputs and their mean; sum of deviations less the tolerance and its minimum; sum of deviations plus
# the tolerance and its maximum; alarm
N: Final = 0
MEAN: Final = 1
RISE: Final = 2
LOWEST: Final = 3
FALL: Final = 4
HIGHEST: Final = 5
ALARM: Final = 6

# Words of ``params[at:]``: the last of five, and whether MOA's formulas are used
TWO_SIDED: Final = 4
MOA: Final = 5

PROBLEMS: Final = ("inputs must be a number of at least 0",)


@dataclass(frozen=True, slots=True)
class Plugin(Detector):
    """Cumulative sum of ``error - mean - tolerance``: drift when it is ``threshold`` above its minimum.

    ``{"name": "page_hinkley", "warm_up": 30, "tolerance": 0.005, "threshold": 50.0, "memory": 0.9999}``. Each
    input first multiplies the sum by ``memory``; the level does not change before ``warm_up`` inputs. With
    ``two_sided`` a falling error rate is a drift as well. There is no warning level, so that a rebuild starts
    with a new tree. With ``compat="moa"`` the sum is compared with the threshold without its minimum, which
    reacts the later the longer there were few errors, and the level may change an input earlier [D68].
    """

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

    def constants(self) -> tuple[float, ...]:
        """Return the parameters in the order of the kernels' words."""
        return (*Detector.constants(self), float(self.compat == "moa"))

    def initial(self) -> tuple[float, ...]:
        return (0.0, 0.0, 0.0, math.inf, 0.0, -math.inf, 0.0)

    def error_rate(self, state: Any) -> float:
        """Return the mean since the last reset."""
        return float(state[MEAN])


@kernel
def update(params, at: int, floats, state: int, error: float) -> int:
    """Take in one error (1.0) or success (0.0) and return the level; state: float64[7]."""
    if floats[state + ALARM] != 0.0:
        floats[state + N] = 0.0
        floats[state + MEAN] = 0.0
        floats[state + RISE] = 0.0
        floats[state + LOWEST] = math.inf
        floats[state + FALL] = 0.0
        floats[state + HIGHEST] = -math.inf
        floats[state + ALARM] = 0.0
    warm_up, tolerance, threshold, memory = params[at], params[at + 1], params[at + 2], params[at + 3]
    n = floats[state + N] + 1.0
    mean = floats[state + MEAN] + (error - floats[state + MEAN]) / n
    rise = memory * floats[state + RISE] + (error - mean) - tolerance
    fall = memory * floats[state + FALL] + (error - mean) + tolerance
    lowest = min(rise, floats[state + LOWEST])
    highest = max(fall, floats[state + HIGHEST])
    floats[state + N] = n
    floats[state + MEAN] = mean
    floats[state + RISE] = rise
    floats[state + LOWEST] = lowest
    floats[state + FALL] = fall
    floats[state + HIGHEST] = highest
    if params[at + MOA] != 0.0:
        alarm = n + 1.0 >= warm_up and rise > threshold
    else:
        has_fallen = params[at + TWO_SIDED] != 0.0 and highest - fall > threshold
        alarm = n >= warm_up and (rise - lowest > threshold or has_fallen)
    floats[state + ALARM] = 1.0 if alarm else 0.0
    return DRIFT if alarm else IN_CONTROL


@kernel
def problem(params, at: int, floats, state: int) -> int:
    return 0 if 0.0 <= floats[state + N] < math.inf else 1
