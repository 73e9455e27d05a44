"""KSWIN: drift when recent errors and a sample of earlier ones differ (Raab, Heusinger, Schleif 2020).

The test is the two-sample test of Kolmogorov and Smirnov. Inputs are errors or successes, so its statistic is
the difference of two shares of errors, and the exact test is a limit for a difference of two counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from core.drift.base import DRIFT, IN_CONTROL, Detector
from core.errors import ParameterError
from core.kernels.jit import called, kernel
from core.kernels.records import Record, word, words_after
from core.layout.model import Floats
from core.numeric import rng
from core.numeric.bit_array import bit, set_bit, words_for
from core.plugin import Parameters, count, flag, number

PROBLEMS: Final = (
    "inputs in the window must be a whole number from 0 to its length",
    "the place of the oldest input must be a whole number below the length of the window",
    "errors must be whole numbers from 0 to the inputs in their part of the window",
    "inputs must be a whole number of at least 0",
)

LEAST: Final = 0.1
"""Difference of the shares that is too small for a drift."""

SAMPLES: Final = rng.stream_key(0, rng.DETECTOR_SAMPLE)

DRAWS: Final = 1024
"""Random numbers that belong to an input; a sample has at most 500."""


class KswinState(Record):
    """The last inputs."""

    inputs: float = word("all inputs")
    n: float = word("inputs in the window")
    oldest: float = word("place of the oldest input in the window")
    older_errors: float = word("errors among the older inputs of the window")
    recent_errors: float = word("errors among the recent inputs of the window")
    alarm: float = word("1.0: the last input was a drift")
    window: Any = words_after(int, "the inputs of the window, a bit each")


@dataclass(frozen=True, slots=True)
class Plugin(Detector):
    """The last ``recent`` inputs against a sample of equal size from the inputs before them.

    ``{"name": "kswin", "window": 100, "recent": 30, "confidence": 0.005}``. From ``window`` inputs on, each
    input draws a sample without replacement from the window's older part; ``confidence`` is the paper's α,
    and the shares of errors must differ by more than 0.1. The test is repeated at every input, so that false
    alarms are far more frequent than α. If the mean falls, the older part is dropped without a drift; with
    ``two_sided`` this is a drift too. There is no warning level.

    After a drift the recent inputs stay, as in the paper; with ``keep_newer`` false an empty window starts,
    as in River. The sample is drawn by a hash of the number of the input.
    """

    NUMBERS: ClassVar[tuple[str, ...]] = ("window", "recent", "two_sided", "keep_newer", "limit")

    window: int = count(100, at_least=2, at_most=1000)
    """Inputs of the window."""
    recent: int = count(30, at_least=1, at_most=500)
    """Inputs of the recent part, and of the sample; at most half of the window."""
    confidence: float = number(0.005, above=0.0, below=1.0)
    """Probability that one test of equal distributions reports a difference."""
    two_sided: bool = flag(False)
    """Whether a falling error rate is a drift, too."""
    keep_newer: bool = flag(True)
    """Whether the recent inputs stay after a drift; else an empty window starts."""

    def __post_init__(self) -> None:
        """Check the parameters, separately and together."""
        Detector.__post_init__(self)
        if 2 * self.recent > self.window:
            msg = f"recent={self.recent} must be at most half of window={self.window}"
            raise ParameterError(msg)

    def check_together(self) -> None:
        """Refuse a confidence that samples of this size cannot reach."""
        least = p_value(self.recent, self.recent)
        if self.confidence < least:
            msg = (
                f"confidence={self.confidence} must be at least {least:.3g} with recent={self.recent}: no "
                "difference of so few inputs is less likely; raise recent, or confidence"
            )
            raise ParameterError(msg)

    def constants(self) -> tuple[float, ...]:
        """Return the parameters in the order of NUMBERS."""
        sides = float(self.two_sided), float(self.keep_newer)
        return float(self.window), float(self.recent), *sides, float(self.limit())

    def limit(self) -> int:
        """Return the least difference of the two counts of errors that is a drift; recent + 1: none is."""
        for difference in range(1, self.recent + 1):
            if difference / self.recent > LEAST and p_value(difference, self.recent) <= self.confidence:
                return difference
        return self.recent + 1

    def continues(self, before: Parameters) -> bool:
        """Return whether a state means the same: both parts of the window must have the same lengths."""
        return isinstance(before, Plugin) and (before.window, before.recent) == (self.window, self.recent)

    def initial(self) -> tuple[float, ...]:
        return (0.0,) * (KswinState.SIZE + words_for(self.window))

    def error_rate(self, state: Floats) -> float:
        """Return the share of errors in the window."""
        last = KswinState.over(state)
        return float((last.older_errors + last.recent_errors) / last.n) if last.n else 0.0


def p_value(difference: int, n: int) -> float:
    """Return the exact probability that the statistic of two samples of n is at least difference / n.

    Gnedenko and Korolyuk 1951: paths of 2n steps that leave a strip, counted by reflection.
    """
    total, sign = 0, 1
    for reach in range(difference, n + 1, difference):
        total += sign * math.comb(2 * n, n - reach)
        sign = -sign
    return 2 * total / math.comb(2 * n, n)


@kernel
def update(p, state: KswinState, error: float) -> int:
    """Take in one error (1.0) or success (0.0) and return the level."""
    if state.alarm != 0.0:
        state.alarm = 0.0
        if p.keep_newer == 0.0:
            state.n = 0.0
            state.older_errors = 0.0
            state.recent_errors = 0.0
    state.inputs += 1.0
    take_in(p, state, error != 0.0)
    if state.n < p.window:
        return IN_CONTROL
    rise = state.recent_errors - sampled_errors(p, state)
    if abs(rise) < p.limit:
        return IN_CONTROL
    keep_recent(p, state)
    if rise < 0.0 and p.two_sided == 0.0:
        return IN_CONTROL
    state.alarm = 1.0
    return DRIFT


@kernel
def take_in(p, state: KswinState, is_error: bool) -> None:
    """Add an input to the window, in the place of the oldest one if there is no room."""
    length = int(p.window)
    oldest = int(state.oldest)
    if state.n == p.window:
        state.older_errors -= bit(state.window, oldest)
        oldest = (oldest + 1) % length
        state.oldest = oldest
        state.n -= 1.0
    n = int(state.n)
    if n >= int(p.recent):
        leaving = bit(state.window, (oldest + n - int(p.recent)) % length)
        state.recent_errors -= leaving
        state.older_errors += leaving
    set_bit(state.window, (oldest + n) % length, is_error)
    state.recent_errors += 1.0 if is_error else 0.0
    state.n = n + 1.0


@kernel
def keep_recent(p, state: KswinState) -> None:
    """Drop the older part of the window."""
    state.oldest = (state.oldest + state.n - p.recent) % p.window
    state.n = p.recent
    state.older_errors = 0.0


@called
def sampled_errors(p, state: KswinState) -> float:
    """Return the errors in a sample of the older part, drawn without replacement."""
    remaining, errors, drawn = p.window - p.recent, state.older_errors, 0.0
    if remaining == p.recent:
        return errors
    first = int(state.inputs) * DRAWS
    for draw in range(int(p.recent)):
        if rng.uniform(SAMPLES, first + draw) * remaining < errors:
            drawn += 1.0
            errors -= 1.0
        remaining -= 1.0
    return drawn


@kernel
def problem(p, state: KswinState) -> int:
    n = state.n
    if not 0.0 <= n <= p.window or n != math.floor(n):
        return 1
    oldest = state.oldest
    if not 0.0 <= oldest < p.window or oldest != math.floor(oldest):
        return 2
    older = max(n - p.recent, 0.0)
    if not 0.0 <= state.older_errors <= older or not 0.0 <= state.recent_errors <= min(n, p.recent):
        return 3
    inputs = state.inputs
    return 0 if 0.0 <= inputs < math.inf and inputs == math.floor(inputs) else 4
