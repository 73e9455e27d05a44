"""Reading of boosted trees: tests of nodes, the path of a record, the outline of a tree."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from core.kernels.records import row_type, rows
from core.layout.model import Floats, Ints
from core.learners.sgbt.layout import NODE_WORDS, BoostNode
from core.schema.dimensions import Dimensions
from core.schema.schema import Schema
from core.tree.conditions import ALTERNATE, BESIDE, Branch
from core.tree.outline import Outline

MEMBER: Final = "member"
"""The condition above the trees."""


def node_rows(nodes: Ints) -> Any:
    """Return node records (int64[node, word]) with the fields of BoostNode as columns, not copied."""
    return rows(nodes, row_type(BoostNode, NODE_WORDS))[:, 0]


def attribute_of(dims: Dimensions, node: Any) -> int:
    """Return the column that an inner node tests."""
    return (dims.nominal if node.is_category else dims.numeric)[int(node.order)]


def branch_of(dims: Dimensions, schema: Schema, node: Any, side: int) -> Branch:
    """Return the condition of a child of an inner node (a row of ``node_rows``); side 0: left."""
    attribute = schema.attributes[attribute_of(dims, node)]
    if not node.is_category:
        return Branch(attribute.name, ">" if side else "<=", float(node.cut))
    values, code = attribute.values, int(node.cut)
    name = values[code] if 0 <= code < len(values) else f"value {code}"
    return Branch(attribute.name, "=" if side else "!=", name)


def value_of(node: Any) -> float:
    """Return the mean target of a leaf (a row of ``node_rows``), 0 if it has seen nothing."""
    return float(node.total) / float(node.weight) if node.weight > 0.0 else 0.0


def is_missing(node: Any, value: float, seen: Ints) -> bool:
    """Return whether the test of an inner node cannot place a value.

    seen: number of values seen of each nominal attribute.
    """
    if node.is_category:
        return not 0.0 <= value < seen[int(node.order)]
    return not math.isfinite(value)


def path_of(
    dims: Dimensions, schema: Schema, nodes: Any, root: int, x: Floats, seen: Ints
) -> tuple[tuple[Branch, ...], float]:
    """Return the branches that a record takes from the root of a tree, and the prediction of its leaf.

    nodes: as from ``node_rows``. seen: number of values seen of each nominal attribute.
    """
    path: list[Branch] = []
    number = root
    while (node := nodes[number]).left >= 0:
        children = [int(node.left), int(node.right)]
        value = float(x[attribute_of(dims, node)])
        missing = is_missing(node, value, seen)
        if missing:
            came = nodes.weight[children].tolist()
            side = int(came[1] > came[0])
        else:
            side = int(value == node.cut if node.is_category else value > node.cut)
        branch = branch_of(dims, schema, node, side)
        path.append(Branch(branch.attribute, branch.operator, branch.value, missing))
        number = children[side]
    return tuple(path), value_of(node)


def outline_of(
    dims: Dimensions,
    schema: Schema,
    nodes: Any,
    root: int,
    favoured: tuple[int | None, int | None],
    cut: int | None,
) -> Iterator[Outline]:
    """Yield the nodes of a tree, parents first, children from left to right, alternate trees last.

    favoured: the classes that leaves with a mean target below and above 0 raise the score of. cut: the depth
    below which alternate trees are left out; None: all are yielded.
    """
    tree = int(nodes[root].tree)
    stack: list[tuple[int, Branch]] = [(root, Branch(MEMBER, "=", str(tree)))]
    while stack:
        number, condition = stack.pop()
        node = nodes[number]
        is_inner = bool(node.left >= 0)
        children: tuple[int, ...] = ()
        test, majority, value = None, None, value_of(node)
        if is_inner:
            test = "category" if node.is_category else "numeric"
            children = (int(node.left) + 1, int(node.right) + 1)
            if node.alternate >= 0 and (cut is None or node.depth + 2 <= cut):
                children = (*children, int(node.alternate) + 1)
                stack.append((int(node.alternate), _branch_beside(node)))
            stack += [(children[side] - 1, branch_of(dims, schema, node, side)) for side in (1, 0)]
        elif value != 0.0:
            majority = favoured[int(value > 0.0)]
        yield Outline(
            number=number + 1,
            parent=int(node.parent) + 1,
            depth=int(node.depth + node.beside) + 1,
            branch=condition,
            test=test,
            children=children,
            masses=(0.0,) * dims.classes,
            majority=majority,
            routed=float(node.weight),
            leaves_below=0,
        )


def _branch_beside(node: Any) -> Branch:
    """Return the branch to the alternate tree beside an inner node (a row of ``node_rows``)."""
    losses = f"faded loss {node.other_loss:.4g}, {node.own_loss:.4g} here"
    return Branch(ALTERNATE, BESIDE, losses)


def cut_at(outlines: Iterator[Outline], depth: int | None) -> Iterator[Outline]:
    """Yield the nodes of a tree down to a depth, with the leaves that are left out below each.

    outlines: parents first, depth first; depth None: all.
    """
    if depth is None:
        yield from outlines
        return
    ended: Outline | None = None
    leaves = 0
    for node in outlines:
        if node.depth > depth:
            leaves += node.is_leaf
            continue
        if ended is not None:
            yield _ended(ended, leaves)
        ended, leaves = (node, 0) if node.depth == depth and not node.is_leaf else (None, 0)
        if ended is None:
            yield node
    if ended is not None:
        yield _ended(ended, leaves)


def _ended(node: Outline, leaves: int) -> Outline:
    """Return an inner node whose subtree is left out."""
    return replace(node, children=(), leaves_below=leaves)
