"""Outline: what a tree says, node by node, in words of its schema; the source of all other forms."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from core import arena
from core.features import Schema
from core.model import Model
from core.tree import layout as at
from core.tree.branches import Branch, branches
from core.tree.layout import TreeView

TESTS = {at.NUMERIC: "numeric", at.CATEGORY: "category", at.MULTIWAY: "multiway"}


@dataclass(frozen=True, slots=True)
class Outline:
    """A node and what is known of it."""

    number: int
    """As in the events of splits; the root is 0."""
    parent: int
    """-1: the root."""
    depth: int
    branch: Branch | None
    """Condition that leads here from the parent; None: the root."""
    test: str | None
    """``numeric``, ``category`` or ``multiway``; None: a leaf."""
    children: tuple[int, ...]
    masses: tuple[float, ...]
    """Class weight that the node knows of, in the order of the schema's classes."""
    routed: float
    """Weight of the records that came through, labelled or not."""
    leaves_below: int
    """Leaves of a subtree that was left out; 0: nothing was."""

    @property
    def is_leaf(self) -> bool:
        """Whether the tree ends here (and not only the outline)."""
        return self.test is None


def outline(model: Model, depth: int | None = None) -> list[Outline]:
    """Return the nodes of the tree that answers, parents first, children from left to right.

    Below ``depth`` nothing is listed; the nodes there say how many leaves they stand for.
    """
    tree = arena.tree_view(model.plan, model.ints, model.main)
    return list(_nodes(model.schema, tree, depth))


def verdict(schema: Schema, masses: tuple[float, ...]) -> str:
    """Return the class with the largest mass, and the masses."""
    if not any(masses):
        return "(nothing seen)"
    return f"{schema.classes[int(np.argmax(masses))]} ({', '.join(f'{mass:.4g}' for mass in masses)})"


def _nodes(schema: Schema, tree: TreeView, depth: int | None) -> Iterator[Outline]:
    """Yield the nodes; deep trees are no danger, a chain of tests is walked with a stack of our own."""
    stack: list[tuple[int, Branch | None]] = [(0, None)]
    routed = tree.routed
    while stack:
        node, branch = stack.pop()
        record = tree.node_ints[node]
        kind, level = int(record[at.NODE_KIND]), int(record[at.NODE_DEPTH])
        is_inner = kind in TESTS
        ends = depth is not None and level >= depth
        children: tuple[int, ...] = ()
        if is_inner and not ends:
            first = int(record[at.NODE_CHILD])
            children = tuple(range(first, first + int(record[at.NODE_CHILDREN])))
            conditions = branches(schema, tree, node)
            stack.extend(reversed(list(zip(children, conditions, strict=True))))
        yield Outline(
            number=node,
            parent=int(record[at.NODE_PARENT]),
            depth=level,
            branch=branch,
            test=TESTS.get(kind),
            children=children,
            masses=tuple(tree.masses[node].tolist()),
            routed=float(routed[node]),
            leaves_below=_leaves(tree, node) if is_inner and ends else 0,
        )


def _leaves(tree: TreeView, node: int) -> int:
    """Return the number of leaves below a node."""
    stack, found = [node], 0
    while stack:
        record = tree.node_ints[stack.pop()]
        if int(record[at.NODE_KIND]) in TESTS:
            first = int(record[at.NODE_CHILD])
            stack.extend(range(first, first + int(record[at.NODE_CHILDREN])))
        elif record[at.NODE_KIND] == at.LEAF:
            found += 1
    return found
