"""Wilson's interval of a share."""

from __future__ import annotations

import math
from typing import Final

from core.kernels.jit import kernel

NORMAL_95: Final = 1.959963984540054
"""Two-sided quantile of the standard normal distribution at 95 %."""


def interval(share: float, n: float) -> tuple[float, float]:
    """Return the 95 % interval for a share of n labels (Wilson 1927), n above 0.

    It stays within [0, 1] and keeps its coverage for few labels and for shares near 0 or 1. The interval is
    rather too wide if one record is sampled from each block: such samples vary less than independent records.
    """
    z2 = NORMAL_95 * NORMAL_95
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = NORMAL_95 * math.sqrt(max(share * (1 - share) / n, 0.0) + z2 / (4 * n * n)) / (1 + z2 / n)
    # Rounding must not leave the share itself outside.
    return min(max(centre - half, 0.0), share), max(min(centre + half, 1.0), share)


# For kernels only: called from Python it would be compiled once more.
interval_here = kernel(interval)


def wilson(hits: float, n: float) -> tuple[float, float]:
    """Return the interval for ``hits`` of n labels; NaN for n = 0."""
    return interval(hits / n, n) if n else (math.nan, math.nan)
