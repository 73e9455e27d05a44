"""Conditions: the branches of a tree by names of the schema, and the path that leads to a node."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from core.schema.schema import Schema
from core.tree import layout as at
from core.tree.layout import Floats
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
    return [branch(schema, tree, node, i) for i in range(int(tree.node_ints[node, at.NODE_CHILDREN]))]


def branch(schema: Schema, tree: TreeView, node: int, child: int) -> Branch:
    """Return the condition of one of an inner node's children."""
    record = tree.node_ints[node]
    kind, value = int(record[at.NODE_KIND]), float(tree.node_floats[node, at.NODE_VALUE])
    attribute = schema.attributes[int(record[at.NODE_ATTRIBUTE])]
    if kind == at.NUMERIC:
        return Branch(attribute.name, ">" if child else "<=", value)
    if kind == at.CATEGORY:
        return Branch(attribute.name, "!=" if child else "=", attribute.values[int(value)])
    return Branch(attribute.name, "=", attribute.values[child])


def path_to(schema: Schema, tree: TreeView, node: int, x: Floats) -> tuple[Branch, ...]:
    """Return the branches from the root to the node where a record (x: float64[d]) ended."""
    found = []
    while (parent := int(tree.node_ints[node, at.NODE_PARENT])) >= 0:
        record = tree.node_ints[parent]
        taken = branch(schema, tree, parent, node - int(record[at.NODE_CHILD]))
        if is_missing(tree, parent, float(x[record[at.NODE_ATTRIBUTE]])):
            taken = Branch(taken.attribute, taken.operator, taken.value, missing=True)
        found.append(taken)
        node = parent
    return tuple(reversed(found))


def is_missing(tree: TreeView, node: int, value: float) -> bool:
    """Return whether a node's test cannot place a value: it is missing, or has no branch."""
    kind = int(tree.node_ints[node, at.NODE_KIND])
    if kind == at.NUMERIC:
        return math.isnan(value)
    return not value >= 0.0 or (kind == at.MULTIWAY and value >= tree.node_ints[node, at.NODE_CHILDREN])


def end_of(tree: TreeView, x: Floats, stop_at_missing: bool, unknown: Mask | None = None) -> int:
    """Return the node where a record ends: like core.tree.byoffset.routing.route, without counting.

    ``stop_at_missing``: MOA's rule for values that a test cannot place; ``unknown`` (bool[d]): the record
    ends where one of these attributes is tested.
    """
    node, routed = 0, None
    while (kind := int(tree.node_ints[node, at.NODE_KIND])) not in (at.LEAF, at.ABSENT):
        record = tree.node_ints[node]
        if unknown is not None and unknown[record[at.NODE_ATTRIBUTE]]:
            break
        value = float(x[record[at.NODE_ATTRIBUTE]])
        first, count = int(record[at.NODE_CHILD]), int(record[at.NODE_CHILDREN])
        if is_missing(tree, node, value):
            if stop_at_missing:
                break
            routed = tree.routed if routed is None else routed
            child = int(routed[first : first + count].argmax())
        elif kind == at.MULTIWAY:
            child = int(value)
        else:
            bound = float(tree.node_floats[node, at.NODE_VALUE])
            child = int(value > bound if kind == at.NUMERIC else value != bound)
        node = first + child
    return node
