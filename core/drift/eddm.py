"""EDDM: drift when the distance between errors becomes smaller than before (Baena-García et al. 2006)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

from core.drift.base import DRIFT, IN_CONTROL, WARNING, Detector
from core.errors import ParameterError
from core.kernels.jit import kernel
from core.plugin import choice, count, number

# State: inputs, position of the last error, errors; mean distance of errors and its squared deviations;
# largest mean + 2 deviations; level; alarm
N: Final = 0
LAST: Final = 1
ERRORS: Final = 2
MEAN: Final = 3
M2: Final = 4
LARGEST: Final = 5
LEVEL: Final = 6
ALARM: Final = 7
FIELDS: Final = 8

MOA: Final = 3
"""Word of ``params[at:]``: whether MOA's formulas are used."""

PROBLEMS: Final = (
    "level must be control (0), warning (1) or drift (2)",
    "inputs and errors must be numbers of at least 0",
)


@dataclass(frozen=True, slots=True)
class Plugin(Detector):
    """Mean distance between two errors plus two deviations, as a share of the largest value so far.

    ``{"name": "eddm", "warm_up": 30, "warning": 0.95, "drift": 0.9}``: warning below a share of ``warning``
    (the paper's α), drift below ``drift`` (β); the level does not change before more than ``warm_up`` errors.
    The level changes at errors only. With ``compat="moa"`` the variance has the number of errors as its
    divisor, not that number less one, and inputs are counted from 1 [D68].
    """

    warm_up: int = count(30, at_least=1)
    """Errors before the level may change."""
    warning: float = number(0.95, above=0.0, at_most=1.0)
    """Share of the largest distance below which there is a warning."""
    drift: float = number(0.9, above=0.0, at_most=1.0)
    """Share of the largest distance below which there is a drift."""
    compat: str | None = choice(None, None, "moa")
    """The published formulas, or MOA's."""

    def __post_init__(self) -> None:
        """Check the parameters, separately and together."""
        Detector.__post_init__(self)
        if self.drift > self.warning:
            msg = f"drift={self.drift} must be at most warning={self.warning}"
            raise ParameterError(msg)

    def constants(self) -> tuple[float, ...]:
        """Return the parameters in the order of the kernels' words."""
        return (*Detector.constants(self), float(self.compat == "moa"))

    def initial(self) -> tuple[float, ...]:
        return (0.0,) * FIELDS

    def error_rate(self, state: Any) -> float:
        """Return the share of errors since the last reset."""
        return float(state[ERRORS] / state[N]) if state[N] else 0.0


@kernel
def update(params, at: int, floats, state: int, error: float) -> int:
    """Take in one error (1.0) or success (0.0) and return the level; state: float64[8]."""
    if floats[state + ALARM] != 0.0:
        for word in range(FIELDS):
            floats[state + word] = 0.0
    floats[state + N] += 1.0
    if error != 0.0:
        n, warm_up = floats[state + N], params[at]
        errors = floats[state + ERRORS] + 1.0
        distance = n - floats[state + LAST]
        step = distance - floats[state + MEAN]
        mean = floats[state + MEAN] + step / errors
        floats[state + M2] += step * (distance - mean)
        floats[state + MEAN] = mean
        floats[state + ERRORS] = errors
        floats[state + LAST] = n
        is_moa = params[at + MOA] != 0.0
        divisor = errors if is_moa else errors - 1.0
        reach = mean + 2.0 * math.sqrt(floats[state + M2] / divisor if errors > 1.0 else 0.0)
        level = IN_CONTROL
        if n + (1.0 if is_moa else 0.0) > warm_up:
            if reach > floats[state + LARGEST]:
                floats[state + LARGEST] = reach
            elif errors > warm_up:
                share = reach / floats[state + LARGEST]
                if share < params[at + 2]:
                    level = DRIFT
                    floats[state + ALARM] = 1.0
                elif share < params[at + 1]:
                    level = WARNING
        floats[state + LEVEL] = level
    return int(floats[state + LEVEL])


@kernel
def problem(params, at: int, floats, state: int) -> int:
    level = floats[state + LEVEL]
    if level != IN_CONTROL and level != WARNING and level != DRIFT:
        return 1
    if not 0.0 <= floats[state + N] < math.inf or not 0.0 <= floats[state + ERRORS] < math.inf:
        return 2
    return 0
