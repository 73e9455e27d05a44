"""Leaf models: compute votes from a leaf's statistics and a record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from core import registry
from core.kernels.jit import FLOATS
from core.plugin import Parameters


@dataclass(frozen=True, slots=True)
class LeafModel(Parameters):
    """Predicts at a leaf.

    The module has two kernels. ``votes(plan, p, tree, node, row, scratch, out) -> (class, hint)`` writes the
    normalised votes to ``out`` (float64[class], zeros on entry) and returns the predicted class, -1 while no
    class is known, and a hint: that class or -1. ``account(plan, p, tree, node, row, hint, work) -> class``
    updates the leaf model's counts before the leaf learns a record; the hint is the result of ``votes`` for
    the same record if nothing was learned since, else -1. Where ``plan.judges`` is set it returns the class
    that the leaf predicts, not having learned the record; elsewhere any number.

    ``p`` holds the leaf model's parameters, ``row`` the record (core/layout/learning.py), and ``scratch``
    max(4·attributes + LANES, 2·classes) words with any content.

    A leaf without a leaf record is inactive (``core/tree/statistics.py:is_active``): it votes with the class
    weight of its node, and counts nothing.

    A leaf model with state beyond the observers' statistics has sections of words in the leaf record, from
    ``PlanRecord.leaf_model_state`` on. Its kernels use them in arithmetic only, never as an index or a count.
    """

    family: ClassVar[str] = "leaf_models"
    axes: ClassVar[tuple[tuple[str | int, ...], ...]] = ()
    """Axes of the sections: "class", "attribute" (numeric), "value" (of all nominal attributes), numbers."""

    def shapes(self, classes: int, attributes: int, values: int) -> tuple[tuple[int, ...], ...]:
        sizes = {"class": classes, "attribute": attributes, "value": values}
        return tuple(
            tuple(sizes[axis] if isinstance(axis, str) else axis for axis in section) for section in self.axes
        )

    def clear(self, sections: Sequence[Any]) -> None:
        """Write the sections of empty leaves (float64[leaf, …] each)."""
        for section in sections:
            section[...] = 0.0

    def inherit(self, child: Sequence[Any], parent: Sequence[Any]) -> None:
        """Write the sections of a new leaf from its parent's; the default writes nothing."""


def dispatcher() -> tuple[Any, Any]:
    """Return ``votes(kind, …)`` and ``account(kind, …)`` over all leaf models."""
    return (
        registry.dispatch(
            "leaf_models",
            "votes",
            "plan, p, tree, node, row, scratch, out",
            signature=f"UniTuple(int64, 2)(PlanRecord, Words, Tree, Node, Row, {FLOATS}, {FLOATS})",
            inline=("mc", "nba"),
        ),
        registry.dispatch(
            "leaf_models",
            "account",
            "plan, p, tree, node, row, hint, work",
            signature="int64(PlanRecord, Words, Tree, Node, Row, int64, Work)",
            inline=("mc", "nb", "nba"),
        ),
    )
