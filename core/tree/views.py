"""Views of a tree block: records as rows, statistics in their shapes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from core.kernels.records import row_type, rows
from core.layout.model import Floats, Ints
from core.layout.tree import (
    LEAF,
    LEAF_FIELDS,
    NODE_FIELDS,
    TREE_HEADER,
    Leaf,
    Node,
    Revision,
    Subtree,
    Tree,
    TreeShape,
)


class TreeView:
    """numpy views of one tree block: records as rows, statistics in their shapes.

    The columns of ``nodes`` and ``leaf_records`` are attributes: ``tree.nodes.kind`` is int64[node].
    """

    __slots__ = (
        "block",
        "floats",
        "header",
        "ints",
        "leaf_floats",
        "leaf_ints",
        "node_floats",
        "node_ints",
        "shape",
    )

    def __init__(self, ints: Ints, floats: Floats, t: int, shape: TreeShape) -> None:
        """Take a model's words and the tree's first word there."""
        self.shape = shape
        self.ints = ints[t : t + shape.words]
        self.floats = floats[t : t + shape.words]
        self.header = self.ints[:TREE_HEADER]
        self.block = Tree(self.ints, self.floats, 0)
        row = (shape.nodes, shape.node_stride)
        self.node_ints = self.ints[TREE_HEADER : shape.leaves_at].reshape(row)
        self.node_floats = self.floats[TREE_HEADER : shape.leaves_at].reshape(row)
        row = (shape.slots, shape.leaf_stride)
        self.leaf_ints = self.ints[shape.leaves_at :].reshape(row)
        self.leaf_floats = self.floats[shape.leaves_at :].reshape(row)

    @property
    def nodes(self) -> Any:
        """Node records, one row for each node that there is room for."""
        shape = self.shape
        words = self.ints[TREE_HEADER : shape.leaves_at]
        return rows(words, row_type(Node, shape.node_stride, after=shape.classes))

    @property
    def subtree_states(self) -> Any:
        """States of the subtrees at nodes, one row for each node, in a tree that adapts."""
        shape = self.shape
        after = shape.subtree - Subtree.SIZE
        words = self.ints[TREE_HEADER : shape.leaves_at]
        return rows(words, row_type(Subtree, shape.node_stride, shape.subtree_at, after))

    @property
    def leaf_records(self) -> Any:
        """Leaf records, one row for each slot that there is room for."""
        shape = self.shape
        return rows(self.ints[shape.leaves_at :], row_type(Leaf, shape.leaf_stride, after=shape.classes))

    @property
    def revisions(self) -> Any:
        """Results of evaluations, one row for each slot, in a tree that revises splits."""
        shape = self.shape
        after = shape.revision - Revision.SIZE
        words = self.ints[shape.leaves_at :]
        return rows(words, row_type(Revision, shape.leaf_stride, shape.revision_at, after))

    @property
    def routed(self) -> Floats:
        """Weight routed through each node, float64[node], labelled or not.

        A tree that never met a missing value counts at its leaves; its inner nodes have the weight from
        before their split.
        """
        nodes = self.nodes
        routed: Floats = nodes.routed.copy()
        if not self.block.paths:
            parent = nodes.parent
            for node in range(int(self.block.nodes) - 1, 0, -1):
                routed[parent[node]] += routed[node]
        return routed

    @property
    def masses(self) -> Floats:
        """Class masses of the nodes, float64[node, class]."""
        return self.node_floats[:, NODE_FIELDS : self.shape.subtree_at]

    @property
    def leaves(self) -> tuple[Ints, Ints]:
        """Numbers of the active leaves, which have a leaf record, and of the inactive leaves, ascending."""
        nodes = self.nodes[: self.block.nodes]
        is_leaf, has_record = nodes.kind == LEAF, nodes.slot >= 0
        return np.flatnonzero(is_leaf & has_record), np.flatnonzero(is_leaf & ~has_record)

    @property
    def subtrees(self) -> Ints:
        """Words of the states of the subtrees at nodes, int64[node, …]."""
        return self.node_ints[:, self.shape.subtree_at :]

    @property
    def seen(self) -> Floats:
        """Labelled weight per class of the leaves, float64[slot, class]."""
        return self.leaf_floats[:, LEAF_FIELDS : self.shape.numeric_at]

    @property
    def numeric(self) -> Floats:
        """Statistics of the numeric attributes, float64[slot, …]."""
        part = self.leaf_floats[:, self.shape.numeric_at : self.shape.nominal_at]
        return part.reshape(self.shape.slots, *self.shape.numeric)

    @property
    def nominal(self) -> Floats:
        """Statistics of the nominal attributes, float64[slot, …]."""
        part = self.leaf_floats[:, self.shape.nominal_at : self.shape.schedule_at]
        return part.reshape(self.shape.slots, *self.shape.nominal)

    @property
    def schedule(self) -> list[Floats]:
        """Sections of the schedule's state, each float64[slot, …] (integers by their bits)."""
        return self._sections(self.shape.schedule_at, self.shape.schedule)

    @property
    def leaf_model(self) -> list[Floats]:
        """Sections of the leaf model's state, each float64[slot, …]."""
        return self._sections(self.shape.leaf_model_at, self.shape.leaf_model)

    def _sections(self, first: int, shapes: tuple[tuple[int, ...], ...]) -> list[Floats]:
        """Return contiguous sections of the leaf records."""
        sections = []
        for shape in shapes:
            end = first + math.prod(shape)
            sections.append(self.leaf_floats[:, first:end].reshape(self.shape.slots, *shape))
            first = end
        return sections

    @property
    def revision(self) -> Floats:
        """Words of the results of evaluations, float64[slot, …]."""
        return self.leaf_floats[:, self.shape.revision_at :]


def tree_view(plan: Any, ints: Ints, t: int) -> TreeView:
    """Return views of the tree block at word t of a model's words; plan: the model's."""
    floats = ints.view(np.float64)
    block = Tree(ints, floats, t)
    shape = plan.blocks.shape(int(block.node_capacity), int(block.slot_capacity))
    return TreeView(ints, floats, t, shape)


def end_here(tree: TreeView, node: int) -> None:
    """Make a node an end of the way of records, a leaf or an absent branch: its test leads to the node.

    The test is of its parent's attribute, so that it needs no value that was not tested before.
    """
    nodes = tree.nodes
    parent = nodes.parent[node]
    nodes.attribute[node] = 0 if parent < 0 else nodes.attribute[parent]
    nodes.value[node] = math.inf
    nodes.child[node] = node
