"""STEPD: drift when recent errors are more frequent than earlier ones (Nishida and Yamauchi 2007)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from core.drift.base import DRIFT, IN_CONTROL, WARNING, Detector, clear
from core.errors import ParameterError
from core.kernels.jit import called, kernel
from core.kernels.records import Record, word, words_after
from core.layout.model import Floats
from core.numeric.bit_array import bit, set_bit, words_for
from core.numeric.cephes import normal_cdf
from core.plugin import Parameters, choice, count, flag, number

PROBLEMS: Final = (
    "recent inputs must be a whole number from 0 to the length of the window",
    "the place of the next input must be a whole number below the length of the window",
    "earlier inputs must be a number of at least 0",
)


class StepdState(Record):
    """The errors of the recent window, and counts of the inputs before it."""

    n: float = word("inputs before the recent window")
    errors: float = word("errors among them")
    recent_n: float = word("inputs in the recent window")
    recent_errors: float = word("errors among them")
    next: float = word("place of the next input in the window")
    alarm: float = word("1.0: the last input was a drift")
    window: Any = words_after(int, "the inputs of the window, a bit each")


COUNTS: Final = StepdState.SIZE
"""Words of the state before the window."""


@dataclass(frozen=True, slots=True)
class Plugin(Detector):
    """Test of equal proportions: the last ``window`` inputs against all inputs before them.

    ``{"name": "stepd", "window": 30, "drift": 0.003, "warning": 0.05, "two_sided": false}``: ``drift`` and
    ``warning`` are significance levels of the two-sided normal test with correction for continuity, from
    2·``window`` inputs on. A fall of the error rate has no effect; with ``two_sided`` it is a drift or a
    warning too. ``compat="moa"`` applies MOA's formula, which needs ``two_sided``: the correction may make
    equal proportions differ, and a stream whose inputs are all equal has a drift.
    """

    NUMBERS: ClassVar[tuple[str, ...]] = ("window", "drift", "warning", "two_sided", "is_moa")
    ASCENDING: ClassVar[tuple[str, ...]] = ("drift", "warning")

    window: int = count(30, at_least=1, at_most=1000)
    """Inputs of the recent window."""
    drift: float = number(0.003, above=0.0, below=1.0)
    """Significance level of a drift."""
    warning: float = number(0.05, above=0.0, below=1.0)
    """Significance level of a warning."""
    two_sided: bool = flag(False)
    """Whether a falling error rate is a drift, too."""
    compat: str | None = choice(None, None, "moa")
    """The published formulas, or MOA's."""

    def __post_init__(self) -> None:
        """Check the parameters, separately and together."""
        Detector.__post_init__(self)
        if self.compat == "moa" and not self.two_sided:
            msg = "two_sided=False must be true with compat='moa': a falling error rate is a drift of MOA's"
            raise ParameterError(msg)

    def constants(self) -> tuple[float, ...]:
        """Return the parameters in the order of NUMBERS."""
        return (*Detector.constants(self), float(self.compat == "moa"))

    def continues(self, before: Parameters) -> bool:
        """Return whether a state means the same: the window must have the same length."""
        return isinstance(before, Plugin) and before.window == self.window

    def initial(self) -> tuple[float, ...]:
        return (0.0,) * (COUNTS + words_for(self.window))

    def error_rate(self, state: Floats) -> float:
        """Return the share of errors in the recent window."""
        counts = StepdState.over(state)
        return float(counts.recent_errors / counts.recent_n) if counts.recent_n else 0.0


@kernel
def update(p, state: StepdState, error: float) -> int:
    """Take in one error (1.0) or success (0.0) and return the level."""
    if state.alarm != 0.0:
        clear(state, COUNTS)
    place = int(state.next)
    if state.recent_n == p.window:
        oldest = bit(state.window, place)
        state.n += 1.0
        state.errors += oldest
        state.recent_errors -= oldest
    else:
        state.recent_n += 1.0
    is_error = error != 0.0
    set_bit(state.window, place, is_error)
    state.recent_errors += 1.0 if is_error else 0.0
    state.next = (place + 1.0) % p.window
    if state.n < p.window:
        return IN_CONTROL
    chance = p_value(p, state)
    if chance < p.drift:
        state.alarm = 1.0
        return DRIFT
    return WARNING if chance < p.warning else IN_CONTROL


@called
def p_value(p, state: StepdState) -> float:
    """Return how likely such a difference of the two error rates is without a change."""
    n, recent_n = state.n, state.recent_n
    inverse = 1.0 / n + 1.0 / recent_n
    right, recent_right = n - state.errors, recent_n - state.recent_errors
    rate = (right + recent_right) / (n + recent_n)
    spread = rate * (1.0 - rate) * inverse
    rise = right / n - recent_right / recent_n
    if p.is_moa != 0.0:
        if spread <= 0.0:
            return 0.0
        return 2.0 * (1.0 - normal_cdf(abs((abs(rise) - inverse / 2.0) / math.sqrt(spread))))
    beyond = (abs(rise) if p.two_sided != 0.0 else rise) - inverse / 2.0
    if beyond <= 0.0 or spread <= 0.0:
        return 1.0
    return 2.0 * (1.0 - normal_cdf(beyond / math.sqrt(spread)))


@kernel
def problem(p, state: StepdState) -> int:
    recent = state.recent_n
    if not 0.0 <= recent <= p.window or recent != math.floor(recent):
        return 1
    place = state.next
    if not 0.0 <= place < p.window or place != math.floor(place):
        return 2
    return 0 if 0.0 <= state.n < math.inf else 3
