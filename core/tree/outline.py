"""A node of a tree by names of the schema: the input of drawings, documents and comparisons."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from core.layout.model import Ints, ModelHeader
from core.layout.plan import PlanRecord
from core.layout.tree import ABSENT, CATEGORY, LEAF, MULTIWAY, NUMERIC
from core.schema.schema import Schema
from core.tree import quirks
from core.tree.conditions import Branch, branches
from core.tree.views import TreeView

TESTS = {NUMERIC: "numeric", CATEGORY: "category", MULTIWAY: "multiway"}


@dataclass(frozen=True, slots=True)
class Outline:
    """A node with its statistics; a learner that is no tree has one node."""

    number: int
    """Number as in the events of splits; the root is 0."""
    parent: int
    """-1: the root."""
    depth: int
    branch: Branch | None
    """Condition of the branch from the parent; None: the root."""
    test: str | None
    """``numeric``, ``category`` or ``multiway``; None: a leaf."""
    children: tuple[int, ...]
    masses: tuple[float, ...]
    """Class weight at the node, in the order of the schema's classes."""
    majority: int | None
    """Majority class; ties as the learner breaks them, an empty node as its parent; None: unknown."""
    routed: float
    """Weight of the records that were routed through the node, labelled or not."""
    leaves_below: int
    """Leaves of a subtree that was left out; 0: no subtree was."""

    @property
    def is_leaf(self) -> bool:
        """Whether the node is a leaf of the tree, not only the end of the outline."""
        return self.test is None


def of_tree(
    plan: Any, schema: Schema, ints: Ints, tree: TreeView, depth: int | None, root: int = 0
) -> Iterator[Outline]:
    """Yield the nodes of a tree, parents first, children from left to right; below ``depth`` none.

    Deep trees are walked with an explicit stack, without recursion. ints: the model's words; root: number of
    the first node.
    """
    stack: list[tuple[int, Branch | None]] = [(root, None)]
    routed = tree.routed
    while stack:
        node, branch = stack.pop()
        record = tree.block.node(node)
        kind, level = int(record.kind), int(record.depth)
        is_inner = kind in TESTS
        ends = depth is not None and level >= depth
        children: tuple[int, ...] = ()
        if is_inner and not ends:
            first = int(record.child)
            children = tuple(range(first, first + int(record.children)))
            conditions = branches(schema, tree, node)
            stack.extend(reversed(list(zip(children, conditions, strict=True))))
        yield Outline(
            number=node,
            parent=int(record.parent),
            depth=level,
            branch=branch,
            test=TESTS.get(kind),
            children=children,
            masses=tuple(tree.masses[node].tolist()),
            majority=majority(plan, ints, tree, node),
            routed=float(routed[node]),
            leaves_below=_leaves(tree, node) if is_inner and ends else 0,
        )


def _leaves(tree: TreeView, node: int) -> int:
    stack, leaves = [node], 0
    while stack:
        record = tree.block.node(stack.pop())
        if record.kind in TESTS:
            stack.extend(range(record.child, record.child + record.children))
        elif record.kind == LEAF:
            leaves += 1
    return leaves


def majority(plan: Any, ints: Ints, tree: TreeView, node: int) -> int | None:
    """Return the class with the majority at a node, None: unknown."""
    masses, record = tree.masses[node], tree.block.node(node)
    shared = PlanRecord(plan.ints, plan.floats, 0)
    is_empty = record.kind == ABSENT or not (masses.any() or shared.has(quirks.EMPTY_VOTES))
    if record.parent >= 0 and is_empty:
        masses = tree.masses[record.parent]
    if not masses.any():
        return None
    best = int(np.argmax(masses))
    model = ModelHeader(ints, ints.view(np.float64), 0)
    prefers_last = shared.last_of_two and model.classes == 2
    return 1 if prefers_last and masses[1] == masses[0] else best
