"""An estimate with its interval."""

from __future__ import annotations

import math
from typing import Final, NamedTuple


class Estimate(NamedTuple):
    """A figure and its 95 % interval; NaN: not defined."""

    value: float
    low: float
    high: float


UNKNOWN: Final = Estimate(math.nan, math.nan, math.nan)
