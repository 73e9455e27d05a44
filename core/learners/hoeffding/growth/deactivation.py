"""Deactivation: leaves of a tree that give up their leaf records, and get one again (Kirkby 2007, as in MOA).

An inactive leaf goes on counting classes, in its node record, and votes for the heaviest. How promising a
leaf is says the weight of its labels that are not of the heaviest class: what a split could still win.
"""

from __future__ import annotations

import math

import numpy as np

from core.learners.hoeffding.decision import HasState
from core.learners.hoeffding.growth import splitting
from core.tree import layout as at
from core.tree.children import grow
from core.tree.layout import Floats
from core.tree.views import TreeView


def promises(tree: TreeView, classes: int) -> Floats:
    """Return the weight that the heaviest class of each node gets wrong, float64[node].

    classes: those that the model has learned. How many more the schema knows depends on where runs are cut,
    and a sum is rounded in another order over more numbers.
    """
    masses = np.ascontiguousarray(tree.masses[: tree.header.item(at.TREE_NODES), :classes])
    wrong: Floats = masses.sum(axis=1) - masses.max(axis=1, initial=0.0)
    return wrong


def deactivate(model: HasState, tree: TreeView, leaves: list[int]) -> None:
    """Take the leaf records of active leaves, by number; close the gaps between the others."""
    for node in leaves:
        splitting.free_slot(model, tree, tree.node_ints.item(node, at.NODE_SLOT))
        tree.node_ints[node, at.NODE_SLOT] = -1
    close_gaps(model, tree)


def close_gaps(model: HasState, tree: TreeView) -> None:
    """Let leaf records lie one behind the other, in the order they had: so that room can be given back."""
    slots = tree.node_ints[: tree.header.item(at.TREE_NODES), at.NODE_SLOT]
    nodes = np.flatnonzero(slots >= 0)
    nodes = nodes[np.argsort(slots[nodes])]
    used = tree.header.item(at.TREE_SLOTS)
    tree.leaf_ints[: len(nodes)] = tree.leaf_ints[slots[nodes]]
    tree.leaf_ints[len(nodes) : used] = model.plan.blocks.empty_leaf
    slots[nodes] = np.arange(len(nodes))
    tree.header[[at.TREE_SLOTS, at.TREE_FREE]] = len(nodes), -1


def activate(model: HasState, tree: TreeView, t: int, leaf: int) -> None:
    """Give an inactive leaf, by number, a leaf record that has seen nothing; the tree (t) has room for it."""
    grow(model.address, t, leaf)
    tree.header[at.TREE_LEAVES] -= 1  # it was one all the time
    slot = tree.node_ints.item(leaf, at.NODE_SLOT)
    model.spec.learner.begin(tree, leaf, slot)
    if model.plan.ints[at.PLAN_INHERITED]:
        # Its statistics know nothing of the weight it votes with: that is no evidence.
        tree.leaf_floats[slot, at.LEAF_LEFT_OUT] = math.fsum(splitting.masses_of(model, t, leaf))
