"""Wilson's interval of a share (Wilson 1927), for figures about people."""

from __future__ import annotations

import math
from typing import Final

NORMAL_95: Final = 1.959963984540054
"""Two-sided quantile of the standard normal distribution at 95 %."""


def wilson_interval(hits: float, n: float) -> tuple[float, float]:
    """Return the 95 % interval of a share of `hits` in n independent trials, n above 0.

    >>> [round(side, 4) for side in wilson_interval(9, 10)]
    [0.5958, 0.9821]
    >>> wilson_interval(10, 10)[1]
    1.0
    """
    share, z2 = hits / n, NORMAL_95 * NORMAL_95
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = NORMAL_95 * math.sqrt(max(share * (1 - share) / n, 0.0) + z2 / (4 * n * n)) / (1 + z2 / n)
    # Rounding must not leave the share itself outside.
    return min(max(centre - half, 0.0), share), max(min(centre + half, 1.0), share)
