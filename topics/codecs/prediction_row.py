"""Prediction row: one prediction that is read from `predictions`."""

from __future__ import annotations

from typing import Final, NamedTuple

from topics.columns.records import Acquired

DEAD: Final = -1  # version of a dead-lettered row of a block


class PredictionRow(NamedTuple):
    """The content of one prediction."""

    id: str | None
    label: str | None
    probabilities: dict[str, float]
    version: int
    explanation: str | None
    acquired: Acquired | None = None
