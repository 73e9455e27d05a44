"""Reading of the trees of a forest: tests of nodes, the path of a record, the outline of a tree."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

from core.events import Kind
from core.kernels.records import row_type, rows
from core.layout.model import Floats, Ints
from core.learners.ufft.layout import PairNode, pair_of
from core.schema.dimensions import Dimensions
from core.schema.schema import Schema
from core.tree.conditions import Branch
from core.tree.outline import Outline

FOREST: Final = "class pair"
"""The condition of the node above all trees in an outline."""


def node_rows(nodes: Ints) -> Any:
    """Return node records (int64[node, word]) with the fields of PairNode as columns, not copied."""
    return rows(nodes, row_type(PairNode, nodes.shape[1]))[:, 0]


def test_of(dims: Dimensions, column: int, cut: float) -> tuple[int, Kind, float]:
    """Return the attribute of a column, the kind of its test, and its threshold or value code."""
    order = column - len(dims.numeric)
    if order < 0:
        return dims.numeric[column], "numeric", cut
    for attribute, (first, room) in dims.value_places.items():
        if first <= order < first + room:
            return attribute, "category", float(order - first)
    msg = f"column={column} must be below {len(dims.numeric) + dims.values}, the number of columns"
    raise IndexError(msg)


def branch_of(dims: Dimensions, schema: Schema, node: Any, side: int) -> Branch:
    """Return the condition of a child of an inner node (a row of ``node_rows``); side 0: left."""
    number, test, value = test_of(dims, int(node.column), float(node.cut))
    attribute = schema.attributes[number]
    if test == "numeric":
        return Branch(attribute.name, ">" if side else "<=", value)
    values = attribute.values
    name = values[int(value)] if value < len(values) else f"value {value:g}"
    return Branch(attribute.name, "=" if side else "!=", name)


def value_of(dims: Dimensions, seen: Ints, x: Floats, column: int) -> float | None:
    """Return the value of a column in a record (x: float64[attribute]); None: missing.

    seen: number of values seen of each nominal attribute.
    """
    attribute, test, code = test_of(dims, column, 0.0)
    value = float(x[attribute])
    if test == "numeric":
        return value if math.isfinite(value) else None
    return float(value == code) if 0.0 <= value < seen[dims.nominal.index(attribute)] else None


def path_of(
    dims: Dimensions, schema: Schema, nodes: Any, root: int, x: Floats, seen: Ints
) -> tuple[Branch, ...]:
    """Return the branches that a record takes from the root of a tree to a leaf.

    nodes: as from ``node_rows``. seen: number of values seen of each nominal attribute.
    """
    path: list[Branch] = []
    number = root
    while (node := nodes[number]).left >= 0:
        children = [int(node.left), int(node.right)]
        value = value_of(dims, seen, x, int(node.column))
        missing = value is None
        if value is None:
            came = nodes.routed[children].tolist()
            side = int(came[1] > came[0])
        else:
            side = int(value > node.cut)
        branch = branch_of(dims, schema, node, side)
        path.append(Branch(branch.attribute, branch.operator, branch.value, missing))
        number = children[side]
    return tuple(path)


def outline_of(
    dims: Dimensions, schema: Schema, nodes: Any, root: int, branch: Branch, depth: int | None
) -> Iterator[Outline]:
    """Yield the nodes of a tree, parents first, children from left to right.

    branch: the condition of the root. depth: the deepest level that is written; None: all.
    """
    stack: list[tuple[int, Branch]] = [(root, branch)]
    while stack:
        number, condition = stack.pop()
        node = nodes[number]
        first, second = pair_of(int(node.pair))
        level = int(node.depth) + 1
        is_inner = bool(node.left >= 0)
        ends = depth is not None and level >= depth
        children: tuple[int, ...] = ()
        test: str | None = None
        if is_inner:
            test = test_of(dims, int(node.column), 0.0)[1]
        if is_inner and not ends:
            children = (int(node.left) + 1, int(node.right) + 1)
            stack += [(children[side] - 1, branch_of(dims, schema, node, side)) for side in (1, 0)]
        masses = [0.0] * dims.classes
        masses[first], masses[second] = float(node.first_weight), float(node.second_weight)
        yield Outline(
            number=number + 1,
            parent=int(node.parent) + 1,
            depth=level,
            branch=condition,
            test=test,
            children=children,
            masses=tuple(masses),
            majority=(first if masses[first] >= masses[second] else second) if any(masses) else None,
            routed=float(node.routed),
            leaves_below=_leaves(nodes, number) if is_inner and ends else 0,
        )


def _leaves(nodes: Any, number: int) -> int:
    """Return the number of leaves below a node."""
    waiting, leaves = [number], 0
    while waiting:
        node = nodes[waiting.pop()]
        if node.left >= 0:
            waiting += [int(node.left), int(node.right)]
        else:
            leaves += 1
    return leaves
