"""Sparkline: a small curve of accuracy with its interval for a cell of a table, as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from streamapp.web.formatting import share
from streamapp.web.watch.courses import CoursePoint

WIDTH, HEIGHT, EDGE = 96, 24, 2
SPAN_MIN: Final = 0.05
"""The height shows at least this span of accuracy, so that noise does not look like a fall."""


def sparkline(course: Sequence[CoursePoint]) -> str:
    """Return an SVG image of accuracies in the order of time; "": fewer than two.

    >>> sparkline([CoursePoint(0.5)])
    ''
    >>> 'aria-label="accuracy from 50.0 % to 75.0 %"' in sparkline([CoursePoint(0.5), CoursePoint(0.75)])
    True
    >>> "<polygon" in sparkline([CoursePoint(0.5, 0.4, 0.6), CoursePoint(0.75, 0.7, 0.8)])
    True
    """
    if len(course) < 2:
        return ""
    values = [point.accuracy for point in course]
    low, high = min(values), max(values)
    if high - low < SPAN_MIN:
        middle = (low + high) / 2
        low, high = middle - SPAN_MIN / 2, middle + SPAN_MIN / 2
    step = (WIDTH - 2 * EDGE) / (len(course) - 1)

    def at(place: int, value: float) -> str:
        # The interval of the first labels is wide; what is above or below the picture is cut off.
        share_of_height = min(max((value - low) / (high - low), 0.0), 1.0)
        return f"{EDGE + place * step:.1f},{HEIGHT - EDGE - share_of_height * (HEIGHT - 2 * EDGE):.1f}"

    line = " ".join(at(place, value) for place, value in enumerate(values))
    banded = [
        (place, point.low, point.high)
        for place, point in enumerate(course)
        if point.low is not None and point.high is not None
    ]
    upper = [at(place, top) for place, _, top in banded]
    lower = [at(place, bottom) for place, bottom, _ in reversed(banded)]
    band = f'<polygon points="{" ".join(upper + lower)}" class="grove-band"/>' if len(banded) > 1 else ""
    words = f"accuracy from {share(values[0])} to {share(values[-1])}"
    return (
        f'<svg role="img" aria-label="{words}" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
        f'height="{HEIGHT}" class="grove-spark">{band}<polyline points="{line}"/></svg>'
    )
