"""A fixed weight between two attempts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from core.jit import kernel
from core.plugin import number
from core.schedules.base import Schedule
from core.tree import layout as at
from core.tree.statistics import SLACK, reckoned_weight


@dataclass(frozen=True, slots=True)
class Plugin(Schedule):
    """Due whenever the leaf has seen ``grace_period`` more than at its last attempt (Domingos and Hulten
    2000)."""

    grace_period: float = number(200.0, above=0.0)
    """Labelled weight between two attempts at a leaf."""

    ranked: ClassVar[bool] = False

    @property
    def step(self) -> float | None:
        """Return the grace period."""
        return self.grace_period

    def first(self) -> float:
        """Return the grace period."""
        return self.grace_period


@kernel
def observe(
    plan: Any,
    knobs: Any,
    ints: Any,
    floats: Any,
    t: int,
    node: int,
    leaf: int,
    x: Any,
    xs: Any,
    label: int,
    weight: float,
) -> bool:
    """Return whether the grace period is over."""
    return floats[leaf + at.LEAF_OBSERVED] >= floats[leaf + at.LEAF_NEXT]


@kernel
def reschedule(
    plan: Any,
    knobs: Any,
    ints: Any,
    floats: Any,
    t: int,
    node: int,
    leaf: int,
    merit: Any,
    test: Any,
    value: Any,
    out: Any,
) -> None:
    """Add the grace period to the weight now."""
    due = floats[leaf + at.LEAF_OBSERVED] + knobs[plan[at.PLAN_SCHEDULE + 1]]
    floats[leaf + at.LEAF_EVALUATED] = reckoned_weight(plan, ints, floats, node, leaf)
    floats[leaf + at.LEAF_NEXT] = due if plan[at.PLAN_MOA] == 0 else due - SLACK
