"""Grace period: a fixed weight between two attempts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from core.kernels.jit import kernel
from core.layout.learning import Row
from core.layout.plan import PlanRecord
from core.layout.tree import Leaf, Node, Tree
from core.learners.hoeffding.ranking import Ranking
from core.learners.hoeffding.schedules import _waiting as waiting
from core.learners.hoeffding.schedules.base import Schedule
from core.plugin import period


@dataclass(frozen=True, slots=True)
class Plugin(Schedule):
    """Due whenever the leaf has seen ``grace_period`` more than at its last attempt (Domingos and Hulten
    2000)."""

    grace_period: float = period(200.0)
    """Labelled weight between two attempts at a leaf."""

    ranked: ClassVar[bool] = False

    @property
    def step(self) -> float | None:
        return self.grace_period

    def first(self) -> float:
        return self.grace_period


@kernel
def observe(plan: PlanRecord, p, tree: Tree, node: Node, leaf: Leaf, row: Row) -> bool:
    return waiting.is_over(leaf)


@kernel
def reschedule(plan: PlanRecord, p, tree: Tree, node: Node, leaf: Leaf, ranking: Ranking) -> None:
    waiting.wait_exactly(plan, node, leaf, p.grace_period)
