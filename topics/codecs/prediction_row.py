"""Prediction row: one prediction as it is read back from `predictions`."""

from __future__ import annotations

from typing import Final, NamedTuple

from topics.columns.records import Acquired

DEAD: Final = -1  # version of a row of a block that was dead-lettered


class PredictionRow(NamedTuple):
    """What one prediction says."""

    id: str | None
    label: str | None
    probabilities: dict[str, float]
    version: int
    explanation: str | None
    acquired: Acquired | None = None
