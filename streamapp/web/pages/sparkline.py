"""Sparkline: a small curve of accuracy for a cell of a table, as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from streamapp.web.formatting import share

WIDTH, HEIGHT, EDGE = 96, 24, 2
SPAN_MIN: Final = 0.05
"""The height shows at least this span of accuracy, so that noise does not look like a fall."""


def sparkline(accuracies: Sequence[float]) -> str:
    """Return an SVG image of accuracies in the order of time; "": fewer than two.

    >>> sparkline([0.5])
    ''
    >>> 'aria-label="accuracy from 50.0 % to 75.0 %"' in sparkline([0.5, 0.75])
    True
    """
    if len(accuracies) < 2:
        return ""
    low, high = min(accuracies), max(accuracies)
    if high - low < SPAN_MIN:
        middle = (low + high) / 2
        low, high = middle - SPAN_MIN / 2, middle + SPAN_MIN / 2
    step = (WIDTH - 2 * EDGE) / (len(accuracies) - 1)
    points = " ".join(
        f"{EDGE + at * step:.1f},{HEIGHT - EDGE - (value - low) / (high - low) * (HEIGHT - 2 * EDGE):.1f}"
        for at, value in enumerate(accuracies)
    )
    words = f"accuracy from {share(accuracies[0])} to {share(accuracies[-1])}"
    return (
        f'<svg role="img" aria-label="{words}" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
        f'height="{HEIGHT}"><polyline points="{points}" fill="none" stroke="#0b57d0" stroke-width="2"/></svg>'
    )
