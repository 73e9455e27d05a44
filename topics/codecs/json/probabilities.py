"""Probabilities in answers: four decimals, in the shortest form."""

from __future__ import annotations

from typing import Final

STEPS: Final = 10_000
TEXTS: Final = tuple(repr(step / STEPS) for step in range(STEPS + 1))
"""The text of each number of steps."""


def as_written(share: float) -> float:
    """Return a probability as it is in JSON answers.

    >>> as_written(1 / 3)
    0.3333
    """
    return round(share * STEPS) / STEPS
