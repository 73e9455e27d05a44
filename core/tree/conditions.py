"""Conditions: the branches of a tree by names of the schema, and the path that leads to a node."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from core.layout.model import Floats
from core.layout.tree import ABSENT, CATEGORY, LEAF, MULTIWAY, NUMERIC, Node
from core.schema.schema import Schema
from core.tree.views import TreeView

Mask = npt.NDArray[np.bool_]

ALTERNATE: Final = "alternate tree"
"""Stands for the attribute in the branch to an alternate tree."""
BESIDE: Final = ":"
"""Operator of that branch: no test sends records there."""


@dataclass(frozen=True, slots=True)
class Branch:
    """The condition under which a record goes from a node to one of its children."""

    attribute: str
    operator: str
    """``<=``, ``>``, ``=`` or ``!=``."""
    value: float | str
    """Threshold, or the name of a value."""
    missing: bool = False
    """The record has no such value: it followed the branch that most records took."""

    def __str__(self) -> str:
        value = f"{self.value:.6g}" if isinstance(self.value, float) else self.value
        return f"{self.attribute} {self.operator} {value}{' (missing)' if self.missing else ''}"


def branches(schema: Schema, tree: TreeView, node: int) -> list[Branch]:
    """Return the conditions of an inner node's children."""
    return [branch(schema, tree, node, i) for i in range(int(tree.nodes.children[node]))]


def branch(schema: Schema, tree: TreeView, node: int, child: int) -> Branch:
    """Return the condition of one of an inner node's children."""
    record = tree.block.node(node)
    value = float(record.value)
    attribute = schema.attributes[int(record.attribute)]
    if record.kind == NUMERIC:
        return Branch(attribute.name, ">" if child else "<=", value)
    if record.kind == CATEGORY:
        return Branch(attribute.name, "!=" if child else "=", attribute.values[int(value)])
    return Branch(attribute.name, "=", attribute.values[child])


def path_to(schema: Schema, tree: TreeView, node: int, x: Floats) -> tuple[Branch, ...]:
    """Return the branches from the root to the node where a record (x: float64[d]) ended."""
    upwards = []
    while (parent := int(tree.block.node(node).parent)) >= 0:
        above = tree.block.node(parent)
        way = branch(schema, tree, parent, node - int(above.child))
        if is_missing(above, float(x[above.attribute])):
            way = Branch(way.attribute, way.operator, way.value, missing=True)
        upwards.append(way)
        node = parent
    return tuple(reversed(upwards))


def is_missing(node: Node, value: float) -> bool:
    """Return whether a node's test cannot place a value: it is missing, or has no branch."""
    if node.kind == NUMERIC:
        return math.isnan(value)
    return not value >= 0.0 or (node.kind == MULTIWAY and value >= node.children)


def end_of(tree: TreeView, x: Floats, stop_at_missing: bool, unknown: Mask | None = None) -> int:
    """Return the node where a record ends: like core.tree.routing.route, without counting.

    ``stop_at_missing``: MOA's rule for values that a test cannot place; ``unknown`` (bool[d]): the record
    ends where one of these attributes is tested.
    """
    node, routed = 0, None
    while (kind := (record := tree.block.node(node)).kind) not in (LEAF, ABSENT):
        if unknown is not None and unknown[record.attribute]:
            break
        value = float(x[record.attribute])
        first, count = int(record.child), int(record.children)
        if is_missing(record, value):
            if stop_at_missing:
                break
            routed = tree.routed if routed is None else routed
            child = int(routed[first : first + count].argmax())
        elif kind == MULTIWAY:
            child = int(value)
        else:
            child = int(value > record.value if kind == NUMERIC else value != record.value)
        node = first + child
    return node
