"""ADWIN: a window that drops its older part when the two parts' means differ (Bifet and Gavaldà 2007).

The window is kept as an exponential histogram (section 3 of the paper, "ADWIN2"): row r holds up to five
buckets of 2^r inputs each, and the two oldest of six are merged into one bucket of the next row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

from core.drift.base import DRIFT, IN_CONTROL, Detector
from core.errors import ParameterError
from core.kernels.jit import called, kernel
from core.plugin import choice, count, flag, number

# State: fields, then the rows from the youngest to the oldest
TICKS: Final = 0  # inputs since the window was last started
WIDTH: Final = 1  # inputs in the window, their sum and squared deviations from their mean
TOTAL: Final = 2
SQUARES: Final = 3
ROWS_USED: Final = 4
ALARM: Final = 5
FIELDS: Final = 6

# A row: its number of buckets, then (sum, squared deviations) of each, the oldest first
BUCKETS: Final = 5
ROW: Final = 1 + 2 * (BUCKETS + 1)
ROWS: Final = 26
"""The window has room for 5·(2^26 - 1) inputs, that is 335 million; then the oldest bucket is dropped."""

# Words of ``params[at:]``
TWO_SIDED: Final = 4
KEEP_NEWER: Final = 5
MOA: Final = 6

PROBLEMS: Final = (
    f"rows in use must be a whole number from 0 to {ROWS}",
    f"buckets of a row must be a whole number from 0 to {BUCKETS}, in the last row in use at least 1",
    "rows beyond those in use must be empty",
    "inputs in the window must be the sum of its buckets",
    "inputs since the last reset must be a number",
)


@dataclass(frozen=True, slots=True)
class Plugin(Detector):
    """A window of errors: drift when the mean of its newer part exceeds the mean of its older part.

    ``{"name": "adwin", "confidence": 0.002, "clock": 32, "min_part": 5, "min_window": 10}``. Every ``clock``
    inputs all cuts at bucket borders with at least ``min_part`` inputs on both sides are tested, if the
    window has more than ``min_window`` inputs; ``confidence`` is the paper's δ. If the mean falls, the older
    part is dropped without a drift; with ``two_sided`` this is a drift too. There is no warning level, so
    that a rebuild starts with a new tree.

    After a drift the newer part of the window stays, as in figure 1 of the paper; with ``keep_newer`` false
    an empty window starts, as in River. With ``compat="moa"`` both sides of a cut must have two inputs more,
    and the mean must rise above the mean before the last input [D68].
    """

    confidence: float = number(0.002, above=0.0, below=1.0)
    """Probability that a window without a change is cut."""
    clock: int = count(32, at_least=1)
    """Number of inputs between two tests of the window."""
    min_part: int = count(5, at_least=1)
    """Least number of inputs on each side of a cut."""
    min_window: int = count(10, at_least=0)
    """Number of inputs above which there may be a cut."""
    two_sided: bool = flag(False)
    """Whether a falling error rate is a drift, too."""
    keep_newer: bool = flag(True)
    """Whether the newer part of the window stays after a drift; else an empty window starts."""
    compat: str | None = choice(None, None, "moa")
    """The published formulas, or MOA's."""

    def __post_init__(self) -> None:
        """Check the parameters, separately and together."""
        Detector.__post_init__(self)
        if self.compat == "moa":
            if not self.keep_newer:
                msg = "keep_newer=False must be true with compat='moa': MOA's keeps the newer part"
                raise ParameterError(msg)
            if self.two_sided:
                msg = "two_sided=True must be false with compat='moa': a falling mean is no drift of MOA's"
                raise ParameterError(msg)

    def constants(self) -> tuple[float, ...]:
        """Return the parameters in the order of the kernels' words."""
        return (*Detector.constants(self), float(self.compat == "moa"))

    def initial(self) -> tuple[float, ...]:
        return (0.0,) * (FIELDS + ROWS * ROW)

    def error_rate(self, state: Any) -> float:
        return float(state[TOTAL] / state[WIDTH]) if state[WIDTH] else 0.0


@kernel
def update(params, at: int, floats, state: int, error: float) -> int:
    """Take in one error (1.0) or success (0.0) and return the level; state: float64[344]."""
    return take_in(params, at, floats, state, error)


@called
def take_in(params, at: int, floats, state: int, error: float) -> int:
    """Do the work of ``update`` as a call that is not inlined: most models have another detector."""
    if floats[state + ALARM] != 0.0 and params[at + KEEP_NEWER] == 0.0:
        for word in range(FIELDS + ROWS * ROW):
            floats[state + word] = 0.0
    earlier = floats[state + TOTAL] / floats[state + WIDTH] if floats[state + WIDTH] > 0.0 else 0.0
    insert(floats, state, error)
    floats[state + TICKS] += 1.0
    confidence, clock, min_part, min_window = params[at], params[at + 1], params[at + 2], params[at + 3]
    # Both are integers: a remainder of floats costs more than the whole rest for most inputs.
    if int(floats[state + TICKS]) % int(clock) != 0 or floats[state + WIDTH] <= min_window:
        return IN_CONTROL
    is_moa = params[at + MOA] != 0.0
    before = earlier if is_moa else floats[state + TOTAL] / floats[state + WIDTH]
    least = min_part + 2.0 if is_moa else min_part
    was_cut = False
    while is_cut(floats, state, confidence, min_part, least):
        was_cut = True
        drop_oldest(floats, state)
    has_risen = floats[state + TOTAL] > before * floats[state + WIDTH]
    alarm = was_cut and (has_risen or params[at + TWO_SIDED] != 0.0)
    floats[state + ALARM] = 1.0 if alarm else 0.0
    return DRIFT if alarm else IN_CONTROL


@kernel
def insert(floats, state: int, error: float) -> None:
    """Add an input to the window as a bucket, and merge buckets where a row has six."""
    width = floats[state + WIDTH]
    if width > 0.0:
        distance = error - floats[state + TOTAL] / width
        floats[state + SQUARES] += width * distance * distance / (width + 1.0)
    floats[state + WIDTH] = width + 1.0
    floats[state + TOTAL] += error
    floats[state + ROWS_USED] = max(floats[state + ROWS_USED], 1.0)
    total, squares, size = error, 0.0, 1.0
    for r in range(ROWS):
        row = state + FIELDS + r * ROW
        n = int(floats[row])
        floats[row + 1 + 2 * n] = total
        floats[row + 2 + 2 * n] = squares
        floats[row] = n + 1.0
        if n < BUCKETS:
            return
        if r == ROWS - 1:
            drop_oldest(floats, state)
            return
        distance = floats[row + 1] - floats[row + 3]
        total = floats[row + 1] + floats[row + 3]
        squares = floats[row + 2] + floats[row + 4] + distance * distance / (2.0 * size)
        shift(floats, row, 2)
        size *= 2.0
        floats[state + ROWS_USED] = max(floats[state + ROWS_USED], r + 2.0)


@kernel
def shift(floats, row: int, gone: int) -> None:
    n = int(floats[row]) - gone
    for word in range(2 * n):
        floats[row + 1 + word] = floats[row + 1 + 2 * gone + word]
    for word in range(2 * n, 2 * (n + gone)):
        floats[row + 1 + word] = 0.0
    floats[row] = n


@kernel
def drop_oldest(floats, state: int) -> None:
    r = int(floats[state + ROWS_USED]) - 1
    row = state + FIELDS + r * ROW
    size = 2.0**r
    rest = floats[state + WIDTH] - size
    floats[state + TOTAL] -= floats[row + 1]
    floats[state + WIDTH] = rest
    if rest > 0.0:
        distance = floats[row + 1] / size - floats[state + TOTAL] / rest
        floats[state + SQUARES] -= floats[row + 2] + size * rest * distance * distance / (size + rest)
    shift(floats, row, 1)
    while r >= 0 and floats[state + FIELDS + r * ROW] == 0.0:
        r -= 1
    floats[state + ROWS_USED] = r + 1.0


@kernel
def is_cut(floats, state: int, confidence: float, min_part: float, least: float) -> bool:
    """Return whether the means on the two sides of a border between buckets differ (the paper's ε_cut).

    Each side must have ``least`` inputs; ``min_part`` is a term of ε_cut.
    """
    width, total = floats[state + WIDTH], floats[state + TOTAL]
    if width < 2.0 * least:
        return False
    variance = floats[state + SQUARES] / width
    logarithm = math.log(2.0 * math.log(width)) - math.log(confidence)
    older, older_total, size = 0.0, 0.0, 2.0 ** floats[state + ROWS_USED]
    for r in range(int(floats[state + ROWS_USED]) - 1, -1, -1):
        size /= 2.0
        row = state + FIELDS + r * ROW
        for bucket in range(int(floats[row])):
            older += size
            older_total += floats[row + 1 + 2 * bucket]
            newer = width - older
            if newer < least:
                return False
            if older >= least:
                harmonic = 1.0 / (older - min_part + 1.0) + 1.0 / (newer - min_part + 1.0)
                epsilon = math.sqrt(2.0 * harmonic * variance * logarithm) + 2.0 / 3.0 * logarithm * harmonic
                if abs(older_total / older - (total - older_total) / newer) > epsilon:
                    return True
    return False


@kernel
def problem(params, at: int, floats, state: int) -> int:
    used = floats[state + ROWS_USED]
    if not 0.0 <= used <= ROWS or used != math.floor(used):
        return 1
    width, size = 0.0, 1.0
    for r in range(ROWS):
        n = floats[state + FIELDS + r * ROW]
        if not 0.0 <= n <= BUCKETS or n != math.floor(n) or (r + 1.0 == used and n == 0.0):
            return 2
        if r >= used and n != 0.0:
            return 3
        width += n * size
        size *= 2.0
    if floats[state + WIDTH] != width:
        return 4
    return 0 if 0.0 <= floats[state + TICKS] < math.inf else 5
