"""A fixed weight between two attempts."""

from __future__ import annotations

from dataclasses import dataclass

from core.plugin import number
from core.schedules.base import Schedule


@dataclass(frozen=True, slots=True)
class Plugin(Schedule):
    """Due whenever the leaf has seen ``grace_period`` more than at its last attempt (section 5)."""

    grace_period: float = number(200.0, above=0.0)

    @property
    def step(self) -> float | None:
        """Return the grace period."""
        return self.grace_period

    def first(self) -> float:
        """Return the grace period."""
        return self.grace_period

    def next(self, observed: float) -> float:
        """Return the weight now plus the grace period."""
        return observed + self.grace_period
