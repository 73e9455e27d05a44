"""RDDM: DDM that forgets the beginning of long concepts (Barros, Cabral, Gonçalves and Santos 2017)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from core.drift.base import DRIFT, IN_CONTROL, WARNING, Detector
from core.errors import ParameterError
from core.kernels.jit import called, kernel
from core.kernels.records import Record, word, words_after
from core.layout.model import Floats
from core.numeric.bit_array import bit, set_bit, words_for
from core.plugin import Parameters, count, number

PROBLEMS: Final = (
    "kept inputs must be a whole number from 0 to their greatest number",
    "the places of the first kept input and of the warning must be whole numbers below the number of places",
    "inputs plus one must be a number of at least 1",
)

NO: Final = -1.0
ON: Final = 0.0
AFTER_DRIFT: Final = 1.0
AFTER_LONG: Final = 2.0
"""What happens at the next input: nothing, a new start after a drift, or one because a concept was long."""


class RddmState(Record):
    """The error rate since the last start, its minimum, and the last inputs."""

    n: float = word("inputs since the last start plus one")
    p: float = word("error rate")
    min_sum: float = word("smallest p + s, with s the standard deviation of p")
    min_p: float = word("p of the smallest sum")
    min_s: float = word("s of the smallest sum")
    first: float = word("place of the first kept input")
    kept: float = word("kept inputs")
    inputs: float = word("all inputs")
    warned: float = word("number of the input at which the present warning began, -1: there is none")
    warned_at: float = word("place of this input, -1: there is none")
    pending: float = word("0: go on, 1: the last input was a drift, 2: the concept has become too long")
    window: Any = words_after(int, "the kept inputs, a bit each")


@dataclass(frozen=True, slots=True)
class Plugin(Detector):
    """DDM that starts again from its last ``stable`` inputs when a concept has had ``longest`` inputs.

    ``{"name": "rddm", "warm_up": 129, "warning": 1.773, "drift": 2.258, "longest": 40000, "stable": 7000,
    "warnings": 1400}``. An old concept makes DDM slow: many inputs are needed to move its error rate. After a
    drift the inputs since the beginning of the warning are taken in again. A warning of ``warnings`` inputs
    is a drift.
    """

    ASCENDING: ClassVar[tuple[str, ...]] = ("warning", "drift")

    warm_up: int = count(129, at_least=1)
    """Labels before the level may change."""
    warning: float = number(1.773, above=0.0)
    """Standard deviations above the minimum that are a warning."""
    drift: float = number(2.258, above=0.0)
    """Standard deviations above the minimum that are a drift."""
    longest: int = count(40_000, at_least=1)
    """Inputs after which the detector starts again from the last ones, unless there is a warning."""
    stable: int = count(7000, at_least=1, at_most=20_000)
    """Inputs that are kept for a new start: below `longest`, else a new start forgets nothing."""
    warnings: int = count(1400, at_least=1)
    """Inputs of a warning that are a drift."""

    def check_together(self) -> None:
        """Refuse a concept that is too long before it has the inputs that the level or a new start needs."""
        for name, loss in (
            ("stable", "a new start would forget nothing"),
            ("warm_up", "no level could last"),
        ):
            least = getattr(self, name)
            if self.longest <= least:
                msg = (
                    f"longest={self.longest} must be above {name}={least}, else {loss}; "
                    f"raise it, or lower {name}"
                )
                raise ParameterError(msg)

    def continues(self, before: Parameters) -> bool:
        """Return whether a state means the same: it must have room for as many inputs."""
        return isinstance(before, Plugin) and before.stable == self.stable

    def initial(self) -> tuple[float, ...]:
        fields = (1.0, 1.0, math.inf, math.inf, math.inf, 0.0, 0.0, 0.0, NO, NO, ON)
        return (*fields, *(0.0,) * words_for(self.stable))

    def error_rate(self, state: Floats) -> float:
        return float(RddmState.over(state).p)


@kernel
def update(p, state: RddmState, error: float) -> int:
    """Take in one error (1.0) or success (0.0) and return the level."""
    if state.pending != ON:
        start_again(p, state)
    keep(p, state, error)
    rate = state.p + (error - state.p) / state.n
    deviation = math.sqrt(rate * (1.0 - rate) / state.n)
    n = state.n + 1.0
    state.n = n
    state.p = rate
    state.inputs += 1.0
    if n <= p.warm_up:
        return IN_CONTROL
    if rate + deviation < state.min_sum:
        note_minimum(state, rate, deviation)
    if rate + deviation > state.min_p + p.drift * state.min_s:
        state.pending = AFTER_DRIFT
        if state.warned == NO:
            keep_last(p, state)
        return DRIFT
    if rate + deviation > state.min_p + p.warning * state.min_s:
        if state.warned != NO and state.warned + p.warnings <= state.inputs:
            state.pending = AFTER_DRIFT
            state.warned = NO
            state.warned_at = NO
            keep_last(p, state)
            return DRIFT
        if state.warned == NO:
            state.warned = state.inputs
            state.warned_at = place_of_last(p, state)
        return WARNING
    state.warned = NO
    state.warned_at = NO
    if n > p.longest:
        state.pending = AFTER_LONG
    return IN_CONTROL


@called
def start_again(p, state: RddmState) -> None:
    """Take in the kept inputs again: since the beginning of the warning, or all of them."""
    is_after_drift = state.pending == AFTER_DRIFT
    if is_after_drift:
        state.min_sum = math.inf
        state.min_p = math.inf
        state.min_s = math.inf
    if state.warned_at != NO:
        kept = place_of_last(p, state) - state.warned_at + 1.0
        state.first = state.warned_at
        state.kept = kept if kept > 0.0 else kept + p.stable
    rate, n = 1.0, 1.0
    for position in range(int(state.kept)):
        input_ = bit(state.window, (int(state.first) + position) % int(p.stable))
        rate += (input_ - rate) / n
        deviation = math.sqrt(rate * (1.0 - rate) / n)
        if is_after_drift and n > p.warm_up and rate + deviation < state.min_sum:
            note_minimum(state, rate, deviation)
        n += 1.0
    state.p = rate
    state.n = n
    state.warned = NO
    state.warned_at = NO
    state.pending = ON


@kernel
def keep(p, state: RddmState, error: float) -> None:
    """Add an input to the kept ones, in the place of the first one if there is no room."""
    place = (state.first + state.kept) % p.stable
    set_bit(state.window, int(place), error != 0.0)
    if state.kept < p.stable:
        state.kept += 1.0
        return
    state.first = (state.first + 1.0) % p.stable
    if state.warned_at == place:
        state.warned_at = NO


@kernel
def keep_last(p, state: RddmState) -> None:
    """Keep the last input only."""
    state.first = place_of_last(p, state)
    state.kept = 1.0


@kernel
def place_of_last(p, state: RddmState) -> float:
    """Return the place of the last input."""
    return (state.first + state.kept - 1.0) % p.stable


@kernel
def note_minimum(state: RddmState, rate: float, deviation: float) -> None:
    state.min_p = rate
    state.min_s = deviation
    state.min_sum = rate + deviation


@kernel
def problem(p, state: RddmState) -> int:
    if not 0.0 <= state.kept <= p.stable or state.kept != math.floor(state.kept):
        return 1
    if not 0.0 <= state.first < p.stable or state.first != math.floor(state.first):
        return 2
    warned = state.warned_at
    if warned != NO and (not 0.0 <= warned < p.stable or warned != math.floor(warned)):
        return 2
    return 0 if 1.0 <= state.n < math.inf else 3
