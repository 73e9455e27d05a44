"""Wilson's interval of a share."""

from __future__ import annotations

import math
from typing import Final

NORMAL_95: Final = 1.959963984540054
"""Two-sided quantile of the standard normal distribution at 95 %."""


def wilson(hits: float, n: float) -> tuple[float, float]:
    """Return the 95 % interval for a share from ``hits`` of n (Wilson 1927); NaN for n = 0.

    It stays within [0, 1] and keeps its coverage for few labels and for shares near 0 or 1. The interval is
    rather too wide if one record is sampled from each block: such samples vary less than independent records.
    """
    if n == 0:
        return math.nan, math.nan
    z2 = NORMAL_95 * NORMAL_95
    share = hits / n
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = NORMAL_95 * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n)) / (1 + z2 / n)
    low, high = max(centre - half, 0.0), min(centre + half, 1.0)
    return min(low, share), max(high, share)  # rounding must not leave the share itself outside
