"""Schedules: kernels compare a leaf's weight with LEAF_NEXT, a schedule writes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from core.plugin import Parameters


@dataclass(frozen=True, slots=True)
class Schedule(Parameters):
    """When a leaf is due: ``observed >= next``, both labelled weight since the leaf was made."""

    family: ClassVar[str] = "schedules"

    @property
    def step(self) -> float | None:
        """Return the weight between two attempts if it is always the same."""
        return None

    def first(self) -> float:
        """Return the observed weight at which a new leaf is due."""
        raise NotImplementedError

    def next(self, observed: float) -> float:
        """Return the observed weight at which a leaf is due again that had an attempt now."""
        raise NotImplementedError
