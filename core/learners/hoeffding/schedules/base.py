"""Schedules: when a leaf is due for its next split attempt.

A schedule sees every record that a leaf learns, after the leaf's statistics were updated, and keeps its state
at the end of the leaf record. Kernels of a module:

``observe(plan, params, ints, floats, t, node, leaf, x, xs, label, weight) -> bool``
    takes in a record (x: float64[attribute], xs: its numeric part) and returns whether the leaf is due. A
    leaf whose LEAF_NEXT is infinite is never due: its tree has stopped growing.
``reschedule(plan, params, ints, floats, t, node, leaf, merit, test, value, out)``
    chooses the next attempt after an attempt that has not split the leaf. The ranking that failed: merit,
    test and value by attribute (``core/learners/hoeffding/ranking.py:survey_leaf``) and ``out``
    float64[RANKING_WORDS]; if ``RANKED`` is false there is no ranking, and these must not be read.
``problem(plan, params, ints, floats, t, node, leaf) -> int``
    returns a problem of the state of a leaf (core/plugin.py), if there is one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from core import registry
from core.plugin import Parameters
from core.tree import layout as at
from core.tree import quirks
from core.tree.views import TreeView


@dataclass(frozen=True, slots=True)
class Schedule(Parameters):
    """When a leaf is due; weights are labelled weight since the leaf was made."""

    family: ClassVar[str] = "schedules"

    periodic: ClassVar[bool] = True
    """A leaf is due at LEAF_NEXT, and only then."""
    ranked: ClassVar[bool] = True
    """``reschedule`` needs the ranking of the attempt that failed."""

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
        overdue = tree.leaf_floats[slot, at.LEAF_OBSERVED] >= tree.leaf_floats[slot, at.LEAF_NEXT]
        if overdue and not model.plan.ints[at.PLAN_QUIRKS] & quirks.INHERITED_COUNTS:
            yield "an attempt is overdue"


_LEAF = "plan.ints, plan.floats, tree.ints, tree.floats, tree.start, node.start, leaf.start"


def dispatcher() -> tuple[Any, Any]:
    """Return ``observe(kind, …)`` and ``reschedule(kind, …)`` over all schedules."""
    common, types = "plan, p, tree, node, leaf", "PlanRecord, Words, Tree, Node, Leaf"
    return (
        registry.dispatch(
            "schedules",
            "observe",
            f"{common}, row",
            signature=f"boolean({types}, Row)",
            inline=("grace_period",),
            by_offset=f"{_LEAF}, row.x, row.xs, row.label, row.weight",
        ),
        registry.dispatch(
            "schedules",
            "reschedule",
            f"{common}, ranking",
            signature=f"void({types}, Ranking)",
            by_offset=f"{_LEAF}, ranking.merit, ranking.test, ranking.value, ranking.out",
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
        by_offset=_LEAF,
    )
