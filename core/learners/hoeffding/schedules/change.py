"""Change: due when the error of a leaf's votes has changed, so that no grace period has to be chosen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from core.drift import adwin, hddm_a
from core.drift import base as drift
from core.drift.base import DRIFT, Detector
from core.kernels.jit import kernel
from core.kernels.records import Record, Words, word
from core.layout.learning import Row
from core.layout.plan import PlanRecord
from core.layout.tree import Leaf, Node, Tree
from core.learners.hoeffding.ranking import Ranking
from core.learners.hoeffding.schedules import _waiting as waiting
from core.learners.hoeffding.schedules.base import Schedule
from core.plugin import choice, number, period
from core.tree.statistics import reckoned_weight
from core.tree.views import TreeView

PROBLEMS: Final = (
    "the level of a leaf's detector must be that of its state",
    "the state of a leaf's detector must be one that its inputs lead to",
)

update = drift.dispatcher()
detector_problem = drift.problem_dispatcher()


class ChangeState(Record):
    """The state of a leaf; the state of its detector follows."""

    level: float = word("level of the detector after the last label")


STATE_WORDS: Final = ChangeState.SIZE
"""Words of a leaf's state before those of its detector."""


@dataclass(frozen=True, slots=True)
class Plugin(Schedule):
    """Due at a label for which a detector reports a change in the errors of the leaf (Assis, Barddal and
    Enembreck 2024).

    ``{"schedule": "change", "change_detector": "adwin", "change_confidence": 0.002}``. Each leaf has a
    detector, which gets the error of the leaf's vote before the leaf learns the record. With the leaf model
    ``nba`` it is the vote of the model that leads after this record was scored.
    """

    change_detector: str = choice("adwin", "adwin", "hddm_a")
    """The detector of a leaf's errors."""
    change_confidence: float = number(0.002, above=0.0, below=1.0)
    """Probability that the detector reports a change of a leaf without one."""
    grace_period: float = period(1.0)
    """Labelled weight before the first attempt at a leaf."""

    periodic: ClassVar[bool] = False
    ranked: ClassVar[bool] = False
    judges: ClassVar[bool] = True

    def first(self) -> float:
        return self.grace_period

    def detector(self, compat: str | None) -> Detector:
        if self.change_detector == "hddm_a":
            return hddm_a.Plugin(drift=self.change_confidence, warning=self.change_confidence)
        return adwin.Plugin(confidence=self.change_confidence, compat="moa" if compat == "moa" else None)

    def axes(self, attributes: int) -> tuple[tuple[str | int, ...], ...]:
        return ((STATE_WORDS,), (len(self.detector(None).initial()),))

    def problems(self, model: Any, tree: TreeView, slot: int) -> Iterator[str]:
        """Yield nothing: its weight alone does not make a leaf due."""
        yield from ()


@kernel
def state_of(plan: PlanRecord, leaf: Leaf) -> ChangeState:
    return ChangeState(leaf.ints, leaf.floats, leaf.start + plan.schedule_state)


@kernel
def detector_of(plan: PlanRecord, leaf: Leaf) -> Words:
    """Return the state of the leaf's detector."""
    return Words(leaf.ints, leaf.floats, leaf.start + plan.schedule_state + STATE_WORDS)


@kernel
def judge(plan: PlanRecord, p, tree: Tree, node: Node, leaf: Leaf, error: float) -> None:
    """Update the detector of the leaf."""
    parameters = plan.parameters(plan.node_detector_at)
    level = update(plan.node_detector, parameters, detector_of(plan, leaf), error)
    state_of(plan, leaf).level = float(level)


@kernel
def observe(plan: PlanRecord, p, tree: Tree, node: Node, leaf: Leaf, row: Row) -> bool:
    return waiting.is_over(leaf) and state_of(plan, leaf).level == DRIFT


@kernel
def reschedule(plan: PlanRecord, p, tree: Tree, node: Node, leaf: Leaf, ranking: Ranking) -> None:
    leaf.evaluated = reckoned_weight(plan, node, leaf, tree.model.classes)


@kernel
def problem(plan: PlanRecord, p, tree: Tree, node: Node, leaf: Leaf) -> int:
    level = state_of(plan, leaf).level
    if level != 0.0 and level != 1.0 and level != DRIFT:
        return 1
    parameters = plan.parameters(plan.node_detector_at)
    return 2 if detector_problem(plan.node_detector, parameters, detector_of(plan, leaf)) != 0 else 0
