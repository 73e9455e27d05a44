"""An attempt at every record: no split comes late, whatever it costs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from core.jit import kernel
from core.plugin import number
from core.schedules import _waiting as waiting
from core.schedules.base import Schedule
from core.tree import layout as at
from core.tree.layout import TreeView
from core.tree.statistics import reckoned_weight


@dataclass(frozen=True, slots=True)
class Plugin(Schedule):
    """Due at every record from the weight ``grace_period`` on: ``{"schedule": "every_record"}``.

    The reference that split delays are measured against (ALGORITHMS section 18 [D40]; Sun and others 2020).
    """

    grace_period: float = number(100.0, above=0.0)
    """Labelled weight before the first attempt at a leaf."""

    periodic: ClassVar[bool] = False
    ranked: ClassVar[bool] = False

    def first(self) -> float:
        """Return the grace period."""
        return self.grace_period

    def problems(self, model: Any, tree: TreeView, slot: int) -> Iterator[str]:
        """Yield nothing: a leaf is always due."""
        yield from ()


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
    """Return whether the first attempt is due, or was."""
    return waiting.is_over(floats, leaf)


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
    """Be due at the next record."""
    floats[leaf + at.LEAF_EVALUATED] = reckoned_weight(plan, ints, floats, node, leaf)
    floats[leaf + at.LEAF_NEXT] = floats[leaf + at.LEAF_OBSERVED]
