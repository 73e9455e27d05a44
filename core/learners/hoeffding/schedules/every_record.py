"""Every record: an attempt at each record; no split comes late, at any cost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from core.kernels.jit import kernel
from core.layout.learning import Row
from core.layout.plan import PlanRecord
from core.layout.tree import Leaf, Node, Tree
from core.learners.hoeffding.ranking import Ranking
from core.learners.hoeffding.schedules import _waiting as waiting
from core.learners.hoeffding.schedules.base import Schedule
from core.plugin import period
from core.tree.statistics import reckoned_weight
from core.tree.views import TreeView


@dataclass(frozen=True, slots=True)
class Plugin(Schedule):
    """Due at every record from the weight ``grace_period`` on: ``{"schedule": "every_record"}``.

    It is the reference for measuring split delays [D40] (Sun and others 2020).
    """

    grace_period: float = period(100.0)
    """Labelled weight before the first attempt at a leaf."""

    periodic: ClassVar[bool] = False
    ranked: ClassVar[bool] = False

    def first(self) -> float:
        return self.grace_period

    def problems(self, model: Any, tree: TreeView, slot: int) -> Iterator[str]:
        """Yield nothing: a leaf is always due."""
        yield from ()


@kernel
def observe(plan: PlanRecord, p, tree: Tree, node: Node, leaf: Leaf, row: Row) -> bool:
    """Return whether the first attempt is due, or was due before."""
    return waiting.is_over(leaf)


@kernel
def reschedule(plan: PlanRecord, p, tree: Tree, node: Node, leaf: Leaf, ranking: Ranking) -> None:
    leaf.evaluated = reckoned_weight(plan, node, leaf, tree.model.classes)
    leaf.next = leaf.observed
