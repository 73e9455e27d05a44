"""Hoeffding's bound, as VFDT uses it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from core.bounds.base import Bound
from core.plugin import number


@dataclass(frozen=True, slots=True)
class Plugin(Bound):
    """``ε = R·sqrt(ln(1/δ) / 2n)``: ``"bound": "hoeffding", "delta": 1e-7, "bound_factor": 1``.

    VFDT compares a gap with ε; separating two intervals of half-width ε takes 2ε, hence ``bound_factor``
    (ALGORITHMS section 5).
    """

    delta: float = number(1e-7, above=0.0, below=1.0)
    bound_factor: float = number(1.0, at_least=1.0, at_most=2.0)

    def epsilon(self, merit_range: float, weight: float) -> float:
        """Return ε."""
        return math.sqrt(merit_range * merit_range * math.log(1.0 / self.delta) / (2.0 * weight))

    @property
    def constant(self) -> float | None:
        """Return ln(1/δ)/2."""
        return math.log(1.0 / self.delta) / 2.0

    @property
    def factor(self) -> float:
        """Return 1 or 2."""
        return self.bound_factor
