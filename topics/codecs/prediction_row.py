"""Prediction row: one prediction that is read from `predictions`."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

DEAD: Final = -1  # version of a dead-lettered row of a block
NO_MEMBERS: Final[Mapping[str, Any]] = MappingProxyType({})


class PredictionRow(NamedTuple):
    """The content of one prediction."""

    id: str | None
    label: str | None
    probabilities: dict[str, float]
    version: int
    members: Mapping[str, Any] = NO_MEMBERS  # by column of Predictions; rows may lack any of them
