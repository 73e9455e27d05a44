"""Slopes: how much a sampled figure grows in an hour, with a confidence interval that respects correlation.

Neighbouring samples of a process resemble each other, so an interval that takes them as independent is far
too narrow. The samples are cut into blocks of equal time; a line is fitted to the means of the blocks by
least squares. Student's t gives the interval of its slope, widened by the correlation that is left between
neighbouring blocks: by the root of (1 + r) / (1 - r) for a lag-1 correlation r above 0. An interval of 95 %
then has the true slope in 94 % of runs without correlation, in 91 % if a figure needs a fortieth of the run
to forget, and in 87 % if it needs a twelfth (tests/unit/benchmarks/test_soak.py).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import numpy.typing as npt
from scipy import stats

WARM_UP: Final = 0.25
"""Share of the run that is cut off at its beginning: caches fill and models come to their mean age."""

LEAST_S: Final = 600.0
"""Samples over a shorter time show how a worker starts, not how it grows in an hour: they decide nothing."""

BLOCKS: Final = 20
LEAST_BLOCKS: Final = 4
CONFIDENCE: Final = 0.95
MOST_CORRELATION: Final = 0.9
HOUR_S: Final = 3600.0

Verdict = Literal["flat", "grows", "undecided"]


@dataclass(frozen=True, slots=True)
class Slope:
    """Growth of a figure in an hour, with the ends of its interval, and the mean of the figure."""

    slope: float
    low: float
    high: float
    mean: float
    tolerance: float  # growth in an hour that counts as none
    seconds: float  # from the first sample to the last

    @property
    def verdict(self) -> Verdict:
        """Flat: the whole interval is at most the tolerance; grows: the whole interval is above it.

        Undecided: neither, or the samples are from less than `LEAST_S`.
        """
        if self.seconds < LEAST_S:
            return "undecided"
        if self.high <= self.tolerance:
            return "flat"
        return "grows" if self.low > self.tolerance else "undecided"

    def to_dict(self) -> Mapping[str, float | str]:
        numbers = {"slope": self.slope, "low": self.low, "high": self.high, "mean": self.mean}
        return {
            **{name: float(f"{value:.6g}") for name, value in numbers.items()},
            "tolerance": self.tolerance,
            "verdict": self.verdict,
        }


def slope_of(times: npt.ArrayLike, values: npt.ArrayLike, tolerance: float) -> Slope | None:
    """Return the slope of samples, `times` in seconds; None if fewer than four blocks have samples."""
    x, y = np.asarray(times, dtype=np.float64), np.asarray(values, dtype=np.float64)
    seconds = float(x[-1] - x[0]) if len(x) else 0.0
    x, y = _block_means(x, y)
    if len(x) < LEAST_BLOCKS:
        return None
    x = x / HOUR_S
    from_middle = x - x.mean()
    power = float(from_middle @ from_middle)
    slope = float(from_middle @ y) / power
    residuals = y - y.mean() - slope * from_middle
    error = math.sqrt(float(residuals @ residuals) / (len(x) - 2) / power)
    width = float(stats.t.ppf((1 + CONFIDENCE) / 2, len(x) - 2)) * error * _widening(residuals)
    return Slope(slope, slope - width, slope + width, float(y.mean()), tolerance, seconds)


def _block_means(
    x: npt.NDArray[np.float64], y: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return the mean time and the mean value of each block that has samples."""
    if not len(x) or x[-1] == x[0]:
        return x[:0], y[:0]
    block = np.minimum(((x - x[0]) / (x[-1] - x[0]) * BLOCKS).astype(np.int64), BLOCKS - 1)
    n = np.bincount(block, minlength=BLOCKS)
    filled = n > 0
    sums = (np.bincount(block, weights=column, minlength=BLOCKS)[filled] for column in (x, y))
    mean_x, mean_y = (total / n[filled] for total in sums)
    return mean_x, mean_y


def _widening(residuals: npt.NDArray[np.float64]) -> float:
    """Return the factor by which lag-1 correlation widens the interval of a slope."""
    power = float(residuals @ residuals)
    if power == 0.0:
        return 1.0
    r = float(residuals[1:] @ residuals[:-1]) / power
    r += (1 + 4 * r) / len(residuals)  # a short series underestimates it (Kendall 1954)
    r = min(max(r, 0.0), MOST_CORRELATION)
    return float(np.sqrt((1 + r) / (1 - r)))
