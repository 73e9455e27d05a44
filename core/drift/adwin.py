"""ADWIN: a window that drops its older part when the two parts' means differ (Bifet and Gavaldà 2007).

The window is kept as an exponential histogram (section 3 of the paper, "ADWIN2"): row r holds up to five
buckets of 2^r inputs each, and the two oldest of six are merged into one bucket of the next row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from core.drift.base import DRIFT, IN_CONTROL, Detector, clear
from core.errors import ParameterError
from core.kernels.jit import called, kernel
from core.kernels.records import Record, word, words_after
from core.layout.model import Floats
from core.plugin import choice, count, flag, number

BUCKETS: Final = 5
"""Most buckets of a row that stay."""
ROWS: Final = 26
"""The window has room for 5·(2^26 - 1) inputs, that is 335 million; then the oldest bucket is dropped."""

PROBLEMS: Final = (
    f"rows in use must be a whole number from 0 to {ROWS}",
    f"buckets of a row must be a whole number from 0 to {BUCKETS}, in the last row in use at least 1",
    "rows beyond those in use must be empty",
    "inputs in the window must be the sum of its buckets",
    "inputs since the last reset must be a number",
)


class BucketRow(Record):
    """A row of buckets, the oldest first."""

    buckets: float = word("number of buckets")
    sums: Any = words_after(float, "sum and squared deviations of each bucket; one bucket more has room")


BUCKET_ROW_WORDS: Final = BucketRow.SIZE + 2 * (BUCKETS + 1)


class AdwinState(Record):
    """The window as an exponential histogram."""

    ticks: float = word("inputs since the window was last started")
    width: float = word("inputs in the window")
    total: float = word("sum of the inputs in the window")
    squares: float = word("squared deviations of these inputs from their mean")
    rows_used: float = word("rows that have buckets, and the rows before them")
    alarm: float = word("1.0: the last input was a drift")

    def row(self, number: int) -> BucketRow:
        """Return a row of buckets; row 0 is the youngest."""
        start = self.start + FIRST_ROW + number * BUCKET_ROW_WORDS
        return BucketRow(self.ints, self.floats, start)


FIRST_ROW: Final = AdwinState.SIZE
STATE_WORDS: Final = FIRST_ROW + ROWS * BUCKET_ROW_WORDS


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

    NUMBERS: ClassVar[tuple[str, ...]] = (
        "confidence",
        "clock",
        "min_part",
        "min_window",
        "two_sided",
        "keep_newer",
        "is_moa",
    )

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
        """Return the parameters in the order of NUMBERS."""
        return (*Detector.constants(self), float(self.compat == "moa"))

    def initial(self) -> tuple[float, ...]:
        return (0.0,) * STATE_WORDS

    def error_rate(self, state: Floats) -> float:
        """Return the mean of the window."""
        window = AdwinState.over(state)
        return float(window.total / window.width) if window.width else 0.0


AdwinParameters: Any = Plugin.record()
"""The record of the parameters, for kernels that call the detector by its module."""


@kernel
def update(p, state: AdwinState, error: float) -> int:
    """Take in one error (1.0) or success (0.0) and return the level."""
    return take_in(p, state, error)


@called
def take_in(p, state: AdwinState, error: float) -> int:
    """Do the work of ``update`` as a call that is not inlined: most models have another detector."""
    if state.alarm != 0.0 and p.keep_newer == 0.0:
        clear(state, STATE_WORDS)
    width, total = state.width, state.total
    insert(state, error)
    state.ticks += 1.0
    # Both are integers: a remainder of floats costs more than the whole rest for most inputs.
    if int(state.ticks) % int(p.clock) != 0 or state.width <= p.min_window:
        return IN_CONTROL
    is_moa = p.is_moa != 0.0
    before = state.total / state.width
    if is_moa:
        before = total / width if width > 0.0 else 0.0
    least = p.min_part + 2.0 if is_moa else p.min_part
    was_cut = False
    while is_cut(state, p.confidence, p.min_part, least):
        was_cut = True
        drop_oldest(state)
    has_risen = state.total > before * state.width
    alarm = was_cut and (has_risen or p.two_sided != 0.0)
    state.alarm = 1.0 if alarm else 0.0
    return DRIFT if alarm else IN_CONTROL


@kernel
def insert(state: AdwinState, error: float) -> None:
    """Add an input to the window as a bucket, and merge buckets where a row has six."""
    width = state.width
    if width > 0.0:
        distance = error - state.total / width
        state.squares += width * distance * distance / (width + 1.0)
    state.width = width + 1.0
    state.total += error
    state.rows_used = max(state.rows_used, 1.0)
    total, squares, half = error, 0.0, 0.5
    for r in range(ROWS):
        row = state.row(r)
        n = int(row.buckets)
        if n < BUCKETS or r == ROWS - 1:
            row.sums[2 * n] = total
            row.sums[2 * n + 1] = squares
            row.buckets = n + 1.0
            if n == BUCKETS:
                drop_oldest(state)
            return
        distance = row.sums[0] - row.sums[2]
        merged = row.sums[0] + row.sums[2]
        merged_squares = row.sums[1] + row.sums[3] + distance * distance * half
        replace_oldest(row, total, squares)
        total, squares = merged, merged_squares
        half *= 0.5  # a division by twice the size, a power of two, gives the same bits
        state.rows_used = max(state.rows_used, r + 2.0)


@kernel
def replace_oldest(row: BucketRow, total: float, squares: float) -> None:
    """Remove the two oldest buckets of a full row, and append one with this sum and squared deviations."""
    for position in range(2 * (BUCKETS - 2)):
        row.sums[position] = row.sums[position + 4]
    row.sums[2 * (BUCKETS - 2)] = total
    row.sums[2 * (BUCKETS - 2) + 1] = squares
    for position in range(2 * (BUCKETS - 1), 2 * (BUCKETS + 1)):
        row.sums[position] = 0.0
    row.buckets = BUCKETS - 1.0


@kernel
def drop_bucket(row: BucketRow) -> None:
    """Remove the oldest bucket of a row; the place that becomes free is zeros."""
    n_left = int(row.buckets) - 1
    for position in range(2 * n_left):
        row.sums[position] = row.sums[2 + position]
    row.sums[2 * n_left] = 0.0
    row.sums[2 * n_left + 1] = 0.0
    row.buckets = n_left


@kernel
def drop_oldest(state: AdwinState) -> None:
    """Remove the oldest bucket from the window."""
    r = int(state.rows_used) - 1
    row = state.row(r)
    size = 2.0**r
    rest = state.width - size
    state.total -= row.sums[0]
    state.width = rest
    if rest > 0.0:
        distance = row.sums[0] / size - state.total / rest
        state.squares -= row.sums[1] + size * rest * distance * distance / (size + rest)
    drop_bucket(row)
    while r >= 0 and state.row(r).buckets == 0.0:
        r -= 1
    state.rows_used = r + 1.0


@kernel
def is_cut(state: AdwinState, confidence: float, min_part: float, least: float) -> bool:
    """Return whether the means on the two sides of a border between buckets differ (the paper's ε_cut).

    Each side must have ``least`` inputs; ``min_part`` is a term of ε_cut. Inputs are from 0 to 1.
    """
    width, total = state.width, state.total
    if width < 2.0 * least:
        return False
    variance = state.squares / width
    logarithm = math.log(2.0 * math.log(width)) - math.log(confidence)
    scale = 2.0 * variance * logarithm * width
    older, older_total, size = 0.0, 0.0, 2.0**state.rows_used
    for r in range(int(state.rows_used) - 1, -1, -1):
        size /= 2.0
        row = state.row(r)
        for bucket in range(int(row.buckets)):
            older += size
            older_total += row.sums[2 * bucket]
            newer = width - older
            if newer < least:
                return False
            # Most borders are far from a cut. ε_cut is above sqrt(scale / (older · newer)), by more than the
            # error of rounding, and this comparison needs no division or root.
            distance = older_total * width - total * older
            if distance * distance > scale * older * newer and older >= least:
                harmonic = 1.0 / (older - min_part + 1.0) + 1.0 / (newer - min_part + 1.0)
                epsilon = math.sqrt(2.0 * harmonic * variance * logarithm) + 2.0 / 3.0 * logarithm * harmonic
                if abs(older_total / older - (total - older_total) / newer) > epsilon:
                    return True
    return False


@kernel
def problem(p, state: AdwinState) -> int:
    used = state.rows_used
    if not 0.0 <= used <= ROWS or used != math.floor(used):
        return 1
    width, size = 0.0, 1.0
    for r in range(ROWS):
        n = state.row(r).buckets
        if not 0.0 <= n <= BUCKETS or n != math.floor(n) or (r + 1.0 == used and n == 0.0):
            return 2
        if r >= used and n != 0.0:
            return 3
        width += n * size
        size *= 2.0
    if state.width != width:
        return 4
    return 0 if 0.0 <= state.ticks < math.inf else 5
