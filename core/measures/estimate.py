"""An estimate with its interval."""

from __future__ import annotations

import math
from typing import Final, NamedTuple


class Estimate(NamedTuple):
    """A figure and its interval, of 95 % where nothing else is said; NaN: not defined."""

    value: float
    low: float
    high: float


UNKNOWN: Final = Estimate(math.nan, math.nan, math.nan)
