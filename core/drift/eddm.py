"""EDDM: drift when the distance between errors becomes smaller than before (Baena-García et al. 2006)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Final

from core.drift.base import DRIFT, IN_CONTROL, WARNING, Detector, clear
from core.kernels.jit import kernel
from core.kernels.records import Record, word
from core.layout.model import Floats
from core.plugin import choice, count, number

PROBLEMS: Final = (
    "level must be control (0), warning (1) or drift (2)",
    "inputs and errors must be numbers of at least 0",
)


class EddmState(Record):
    """The distances between errors since the last reset."""

    n: float = word("inputs")
    last: float = word("number of the input that was the last error")
    errors: float = word("errors")
    mean: float = word("mean distance between errors")
    squares: float = word("squared deviations of the distances from their mean")
    largest: float = word("largest mean plus two deviations so far")
    level: float = word("level at the last error")
    alarm: float = word("1.0: the last error was a drift")


STATE_WORDS: Final = EddmState.SIZE


@dataclass(frozen=True, slots=True)
class Plugin(Detector):
    """Mean distance between two errors plus two deviations, as a share of the largest value so far.

    ``{"name": "eddm", "warm_up": 30, "warning": 0.95, "drift": 0.9}``: warning below a share of ``warning``
    (the paper's α), drift below ``drift`` (β); the level does not change before more than ``warm_up`` errors.
    The level changes at errors only. With ``compat="moa"`` the variance has the number of errors as its
    divisor, not that number less one, and inputs are counted from 1 [D68].
    """

    NUMBERS: ClassVar[tuple[str, ...]] = ("warm_up", "warning", "drift", "is_moa")
    ASCENDING: ClassVar[tuple[str, ...]] = ("drift", "warning")

    warm_up: int = count(30, at_least=1)
    """Errors before the level may change."""
    warning: float = number(0.95, above=0.0, at_most=1.0)
    """Share of the largest distance below which there is a warning."""
    drift: float = number(0.9, above=0.0, at_most=1.0)
    """Share of the largest distance below which there is a drift."""
    compat: str | None = choice(None, None, "moa")
    """The published formulas, or MOA's."""

    def constants(self) -> tuple[float, ...]:
        """Return the parameters in the order of NUMBERS."""
        return (*Detector.constants(self), float(self.compat == "moa"))

    def initial(self) -> tuple[float, ...]:
        return (0.0,) * STATE_WORDS

    def error_rate(self, state: Floats) -> float:
        """Return the share of errors since the last reset."""
        counts = EddmState.over(state)
        return float(counts.errors / counts.n) if counts.n else 0.0


@kernel
def update(p, state: EddmState, error: float) -> int:
    """Take in one error (1.0) or success (0.0) and return the level."""
    if state.alarm != 0.0:
        clear(state, STATE_WORDS)
    state.n += 1.0
    if error != 0.0:
        n = state.n
        errors = state.errors + 1.0
        distance = n - state.last
        step = distance - state.mean
        mean = state.mean + step / errors
        state.squares += step * (distance - mean)
        state.mean = mean
        state.errors = errors
        state.last = n
        is_moa = p.is_moa != 0.0
        divisor = errors if is_moa else errors - 1.0
        reach = mean + 2.0 * math.sqrt(state.squares / divisor if errors > 1.0 else 0.0)
        level = IN_CONTROL
        if n + (1.0 if is_moa else 0.0) > p.warm_up:
            if reach > state.largest:
                state.largest = reach
            elif errors > p.warm_up:
                share = reach / state.largest
                if share < p.drift:
                    level = DRIFT
                    state.alarm = 1.0
                elif share < p.warning:
                    level = WARNING
        state.level = level
    return int(state.level)


@kernel
def problem(p, state: EddmState) -> int:
    level = state.level
    if level != IN_CONTROL and level != WARNING and level != DRIFT:
        return 1
    if not 0.0 <= state.n < math.inf or not 0.0 <= state.errors < math.inf:
        return 2
    return 0
