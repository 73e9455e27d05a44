"""Probabilities as answers have them: four decimals, the shortest text of each."""

from __future__ import annotations

from typing import Final

STEPS: Final = 10_000
TEXTS: Final = tuple(repr(step / STEPS) for step in range(STEPS + 1))
"""The text of each number of steps."""
