"""Confidence bounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from core.plugin import Parameters


@dataclass(frozen=True, slots=True)
class Bound(Parameters):
    """Half-width of a confidence interval of a merit."""

    family: ClassVar[str] = "bounds"

    def epsilon(self, merit_range: float, weight: float) -> float:
        """Return ε for a merit of this range, computed from this weight of labelled records."""
        raise NotImplementedError

    @property
    def constant(self) -> float | None:
        """Return c if ``ε² = c·R²/n``, None for any other form."""
        return None

    @property
    def factor(self) -> float:
        """How many ε a gap between two merits has to exceed."""
        return 1.0
