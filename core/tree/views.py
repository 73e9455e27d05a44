"""Views of a tree block: records as rows, statistics in their shapes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from core.tree.layout import (
    LEAF,
    LEAF_FIELDS,
    NODE_ATTRIBUTE,
    NODE_CHILD,
    NODE_FIELDS,
    NODE_KIND,
    NODE_PARENT,
    NODE_ROUTED,
    NODE_SLOT,
    NODE_VALUE,
    TREE_HEADER,
    TREE_NODE_CAPACITY,
    TREE_NODES,
    TREE_PATHS,
    TREE_SLOT_CAPACITY,
    Floats,
    Ints,
    TreeShape,
)


class TreeView:
    """numpy views of one tree block: records as rows, statistics in their shapes."""

    __slots__ = ("floats", "header", "ints", "leaf_floats", "leaf_ints", "node_floats", "node_ints", "shape")

    def __init__(self, ints: Ints, floats: Floats, t: int, shape: TreeShape) -> None:
        self.shape = shape
        self.ints = ints[t : t + shape.words]
        self.floats = floats[t : t + shape.words]
        self.header = self.ints[:TREE_HEADER]
        rows = (shape.nodes, shape.node_stride)
        self.node_ints = self.ints[TREE_HEADER : shape.leaves_at].reshape(rows)
        self.node_floats = self.floats[TREE_HEADER : shape.leaves_at].reshape(rows)
        rows = (shape.slots, shape.leaf_stride)
        self.leaf_ints = self.ints[shape.leaves_at :].reshape(rows)
        self.leaf_floats = self.floats[shape.leaves_at :].reshape(rows)

    @property
    def routed(self) -> Floats:
        """Weight routed through each node, float64[node], labelled or not.

        A tree that never met a missing value counts at its leaves; its inner nodes have the weight from
        before their split.
        """
        routed = self.node_floats[:, NODE_ROUTED].copy()
        if not self.header[TREE_PATHS]:
            for node in range(int(self.header[TREE_NODES]) - 1, 0, -1):
                routed[self.node_ints[node, NODE_PARENT]] += routed[node]
        return routed

    @property
    def masses(self) -> Floats:
        """Class masses of the nodes, float64[node, class]."""
        return self.node_floats[:, NODE_FIELDS : self.shape.subtree_at]

    @property
    def leaves(self) -> tuple[Ints, Ints]:
        """Numbers of the active leaves, which have a leaf record, and of the inactive leaves, ascending."""
        nodes = self.node_ints[: self.header.item(TREE_NODES)]
        is_leaf, has_record = nodes[:, NODE_KIND] == LEAF, nodes[:, NODE_SLOT] >= 0
        return np.flatnonzero(is_leaf & has_record), np.flatnonzero(is_leaf & ~has_record)

    @property
    def subtrees(self) -> Ints:
        """States of the subtrees at nodes, int64[node, SUBTREE_DETECTOR + …]."""
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
        """Results of evaluations, float64[slot, REVISION_FIELDS + attribute]."""
        return self.leaf_floats[:, self.shape.revision_at :]


def tree_view(plan: Any, ints: Ints, t: int) -> TreeView:
    """Return views of the tree block at word t of a model's words; plan: the model's."""
    shape = plan.blocks.shape(int(ints[t + TREE_NODE_CAPACITY]), int(ints[t + TREE_SLOT_CAPACITY]))
    return TreeView(ints, ints.view(np.float64), t, shape)


def end_here(tree: TreeView, node: int) -> None:
    """Make a node an end of the way of records, a leaf or an absent branch: its test leads to the node.

    The test is of its parent's attribute, so that it needs no value that was not tested before.
    """
    parent = tree.node_ints[node, NODE_PARENT]
    tree.node_ints[node, NODE_ATTRIBUTE] = 0 if parent < 0 else tree.node_ints[parent, NODE_ATTRIBUTE]
    tree.node_floats[node, NODE_VALUE] = math.inf
    tree.node_ints[node, NODE_CHILD] = node
