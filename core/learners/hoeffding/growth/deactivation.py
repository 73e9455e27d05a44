"""Deactivation: leaves of a tree that give up their leaf records, and get one again (Kirkby 2007, as in MOA).

An inactive leaf continues to count classes, in its node record, and votes for the heaviest class. The promise
of a leaf is the weight of its labels that are not of the heaviest class: the weight that a split might get
right.
"""

from __future__ import annotations

import math

import numpy as np

from core.layout.model import Floats
from core.layout.tree import NO_SLOT
from core.learners.hoeffding.decision import HasState, tree_of
from core.learners.hoeffding.growth import splitting
from core.tree.children import grow
from core.tree.views import TreeView


def promises(tree: TreeView, classes: int) -> Floats:
    """Return the weight that the heaviest class of each node gets wrong, float64[node].

    classes: the number that the model has learned. The number in the schema depends on where runs are cut,
    and a sum over more numbers is rounded in another order.
    """
    masses = np.ascontiguousarray(tree.masses[: tree.block.nodes, :classes])
    wrong: Floats = masses.sum(axis=1) - masses.max(axis=1, initial=0.0)
    return wrong


def deactivate(model: HasState, tree: TreeView, leaves: list[int]) -> None:
    """Take the leaf records of active leaves, by number; close the gaps between the remaining records."""
    for node in leaves:
        record = tree.block.node(node)
        splitting.free_slot(model, tree, int(record.slot))
        record.slot = NO_SLOT
    close_gaps(model, tree)


def close_gaps(model: HasState, tree: TreeView) -> None:
    """Move leaf records together, in the same order, so that room can be given back."""
    slots = tree.nodes.slot[: tree.block.nodes]
    nodes = np.flatnonzero(slots >= 0)
    nodes = nodes[np.argsort(slots[nodes])]
    used = int(tree.block.slots)
    tree.leaf_ints[: len(nodes)] = tree.leaf_ints[slots[nodes]]
    tree.leaf_ints[len(nodes) : used] = model.plan.blocks.empty_leaf
    slots[nodes] = np.arange(len(nodes))
    tree.block.slots, tree.block.free = len(nodes), -1


def activate(model: HasState, tree: TreeView, t: int, leaf: int) -> None:
    """Give an inactive leaf, by number, a new leaf record; the tree (t) has room for it."""
    block = tree_of(model, t)
    grow(block, block.node(leaf))
    tree.block.leaves -= 1  # it is counted as a leaf already
    record = tree.block.node(leaf)
    model.spec.learner.begin(tree, leaf, int(record.slot))
    if model.plan.record.inherited:
        # The weight it votes with is not in its statistics, so that it is no evidence.
        tree.block.leaf_of(record).left_out = math.fsum(splitting.masses_of(model, t, leaf))
