"""A tree as text, one line a node."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from core import arena
from core.features import Schema
from core.model import Model
from core.tree import layout as at
from core.tree.layout import TreeView


def to_text(model: Model) -> str:
    """Return the tree that answers: tests indented by depth, leaves with their class masses.

    One leaf reads ``petal length <= 2.45: setosa (50, 0, 1)``: the class with the largest mass, and the
    masses.
    """
    tree = arena.tree_view(model.plan, model.ints, model.main)
    return "\n".join(_lines(model.schema, tree, 0, "")) + "\n"


def _lines(schema: Schema, tree: TreeView, node: int, condition: str) -> Iterator[str]:
    """Yield the lines of a subtree; deep trees are no danger, a chain of tests is walked level by level."""
    stack = [(node, condition)]
    while stack:
        node, condition = stack.pop()
        record = tree.node_ints[node]
        indent = "  " * int(record[at.NODE_DEPTH])
        kind = int(record[at.NODE_KIND])
        if kind in (at.LEAF, at.ABSENT):
            yield f"{indent}{condition}{_verdict(schema, tree, node)}"
            continue
        yield f"{indent}{condition.removesuffix(': ')}" if condition else f"{indent}all"
        first, count = int(record[at.NODE_CHILD]), int(record[at.NODE_CHILDREN])
        value = float(tree.node_floats[node, at.NODE_VALUE])
        attribute = schema.attributes[int(record[at.NODE_ATTRIBUTE])]
        for branch in reversed(range(count)):
            if kind == at.NUMERIC:
                test = f"{attribute.name} {'>' if branch else '<='} {value:.6g}"
            elif kind == at.CATEGORY:
                test = f"{attribute.name} {'!=' if branch else '='} {attribute.values[int(value)]}"
            else:
                test = f"{attribute.name} = {attribute.values[branch]}"
            stack.append((first + branch, f"{test}: "))


def _verdict(schema: Schema, tree: TreeView, node: int) -> str:
    """Return the class a leaf's majority speaks for, with the masses."""
    masses = tree.masses[node]
    if not masses.any():
        return "(nothing seen)"
    return f"{schema.classes[int(np.argmax(masses))]} ({', '.join(f'{mass:.4g}' for mass in masses)})"
