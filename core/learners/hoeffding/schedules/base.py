"""Schedules: when a leaf is due for its next split attempt.

A schedule sees every record that a leaf learns, after the leaf's statistics were updated, and keeps its state
at the end of the leaf record. Kernels of a module:

``observe(plan, p, tree, node, leaf, row) -> bool``
    takes in a record and returns whether the leaf is due. A leaf whose ``next`` is infinite is never due: its
    tree has stopped growing.
``reschedule(plan, p, tree, node, leaf, ranking)``
    chooses the next attempt after an attempt that has not split the leaf. ranking: the one that failed
    (``core/learners/hoeffding/ranking.py:survey_leaf``); if ``ranked`` is false there is no ranking, and it
    must not be read.
``judge(plan, p, tree, node, leaf, error)`` (of a schedule that ``judges``)
    takes in the error of the leaf's vote, 0.0 or 1.0, before the leaf learns the record.
``problem(plan, p, tree, node, leaf) -> int``
    returns a problem of the state of a leaf (core/plugin.py), if there is one.

p: the record of the schedule's numeric parameters.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from core import registry
from core.drift.base import Detector
from core.plugin import Parameters
from core.tree import quirks
from core.tree.views import TreeView


@dataclass(frozen=True, slots=True)
class Schedule(Parameters):
    """When a leaf is due; weights are labelled weight since the leaf was made."""

    family: ClassVar[str] = "schedules"

    periodic: ClassVar[bool] = True
    """A leaf is due at its ``next``, and only then."""
    ranked: ClassVar[bool] = True
    """``reschedule`` needs the ranking of the attempt that failed."""
    judges: ClassVar[bool] = False
    """The module has the kernel ``judge``, and a leaf has a detector."""

    def detector(self, compat: str | None) -> Detector:
        """Return the detector of the errors of a leaf, of a schedule that judges.

        compat: of the learner.
        """
        raise NotImplementedError

    @property
    def step(self) -> float | None:
        """Return the weight between two attempts if it is always the same."""
        return None

    def first(self) -> float:
        """Return the observed weight before which no new leaf is due."""
        raise NotImplementedError

    def axes(self, attributes: int) -> tuple[tuple[str | int, ...], ...]:
        """Return the axes of the sections of a leaf's state, zeros in a new leaf.

        An axis is "class", "attribute" (all of them), "value" (of all nominal attributes) or a number, which
        may grow with the attributes: an entry of a section keeps its index on each axis.
        """
        return ()

    def shapes(self, classes: int, attributes: int, values: int) -> tuple[tuple[int, ...], ...]:
        """Return the shapes of the sections of a leaf's state."""
        sizes = {"class": classes, "attribute": attributes, "value": values}
        return tuple(
            tuple(sizes[axis] if isinstance(axis, str) else axis for axis in section)
            for section in self.axes(attributes)
        )

    def problems(self, model: Any, tree: TreeView, slot: int) -> Iterator[str]:
        """Yield the problems of the schedule of the leaf record ``slot`` of a model's tree."""
        leaf = tree.block.leaf(slot)
        if leaf.observed >= leaf.next and not model.plan.record.has(quirks.INHERITED_COUNTS):
            yield "an attempt is overdue"


def dispatcher() -> tuple[Any, Any, Any]:
    """Return ``observe(kind, …)``, ``reschedule(kind, …)`` and ``judge(kind, …)`` over all schedules."""
    common, types = "plan, p, tree, node, leaf", "PlanRecord, Words, Tree, Node, Leaf"
    return (
        registry.dispatch(
            "schedules",
            "observe",
            f"{common}, row",
            signature=f"boolean({types}, Row)",
            inline=("grace_period",),
        ),
        registry.dispatch(
            "schedules",
            "reschedule",
            f"{common}, ranking",
            signature=f"void({types}, Ranking)",
        ),
        registry.dispatch(
            "schedules",
            "judge",
            f"{common}, error",
            signature=f"void({types}, float64)",
            needed_by=registry.no_plugin,
        ),
    )


def problem_dispatcher() -> Any:
    """Return ``problem(kind, …)`` over the schedules that have a state."""
    return registry.dispatch(
        "schedules",
        "problem",
        "plan, p, tree, node, leaf",
        otherwise=0,
        signature="int64(PlanRecord, Words, Tree, Node, Leaf)",
    )
