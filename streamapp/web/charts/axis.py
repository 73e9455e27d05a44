"""Axis: the range of an axis, and round values for its ticks."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

STEPS: Final = (1.0, 2.0, 2.5, 5.0, 10.0)
"""Steps between ticks, times a power of ten."""


@dataclass(frozen=True, slots=True)
class Axis:
    """The ends of an axis and the step between its ticks; both ends are multiples of the step."""

    low: float
    high: float
    step: float

    def ticks(self) -> list[float]:
        """Return the values of the ticks, both ends included."""
        count = round((self.high - self.low) / self.step)
        return [self.low + at * self.step for at in range(count + 1)]


def axis(
    values: Iterable[float],
    *,
    floor: float = -math.inf,
    ceiling: float = math.inf,
    span_min: float = 0.0,
    parts: int = 5,
) -> Axis:
    """Return an axis for all finite values with about `parts` steps.

    floor, ceiling: the axis does not leave them, where the values do not. span_min: the axis shows at least
    this span, so that noise does not look like a change.

    >>> axis([72.4, 88.1], floor=0, ceiling=100)
    Axis(low=70.0, high=90.0, step=5.0)
    >>> axis([], floor=0, ceiling=100, span_min=10)
    Axis(low=0.0, high=10.0, step=2.0)
    """
    finite = [value for value in values if math.isfinite(value)]
    low, high = (min(finite), max(finite)) if finite else (0.0, 0.0)
    span = max(high - low, span_min) or max(abs(high), 1.0)
    middle = low / 2 + high / 2
    low, high = min(low, middle - span / 2), max(high, middle + span / 2)
    if low < floor <= min(finite, default=floor):
        low, high = floor, max(high, min(ceiling, floor + span))
    if high > ceiling >= max(finite, default=ceiling):
        low, high = min(low, max(floor, ceiling - span)), ceiling
    step = round_step((high - low) / parts)
    # A millionth of a step is rounding, not a value outside of the axis.
    below = math.floor(low / step + 1e-6) * step
    above = math.ceil(high / step - 1e-6) * step
    return Axis(below, max(above, below + step), step)


def round_step(least: float) -> float:
    """Return the smallest round step that is at least as large as a number above 0.

    >>> round_step(0.03), round_step(7), round_step(130)
    (0.05, 10.0, 200.0)
    """
    power = 10.0 ** math.floor(math.log10(least))
    return next((step * power for step in STEPS if step * power >= least * (1 - 1e-9)), STEPS[-1] * power)
