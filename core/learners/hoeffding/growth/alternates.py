"""Alternate trees: how they start beside a node, take its place, or are removed.

The kernels are in core/learners/hat/kernels.py. The nodes of an alternate tree lie in the block of its tree,
after the node beside which it stands. Removed nodes leave no gap, as where splits are revised: the records
after them move up, parents before children.
"""

from __future__ import annotations

import numpy as np

from core.layout.model import Ints
from core.layout.tree import ABSENT, LEAF, NO_SLOT
from core.learners.hoeffding.decision import HasState, tree_of
from core.learners.hoeffding.growth import splitting
from core.learners.hoeffding.growth.removal import close_gap
from core.tree import views
from core.tree.children import grow
from core.tree.views import TreeView, tree_view


def start(model: HasState, t: int, node: int) -> bool:
    """Start an alternate tree of one leaf beside an inner node, if the caps allow; an older one is removed.

    t: first word of the tree, which may move; node: a number.
    """
    tree = tree_view(model.plan, model.ints, t)
    if tree.subtree_states.alternate[node]:
        drop(model, tree, node)
    block = tree.block
    if splitting.exceeds_cap(model, int(block.leaves) + 1, int(block.splits), int(block.nodes) + 1):
        return False
    t = splitting.make_room(model, t, 1, 1)
    tree = tree_view(model.plan, model.ints, t)
    root = int(tree.block.nodes)
    tree.block.nodes = root + 1
    old, new = tree.block.node(node), tree.block.node(root)
    new.parent, new.depth = old.parent, old.depth
    views.end_here(tree, root)
    tree.subtree_states.beside[root] = node + 1
    tree.subtree_states.alternate[node] = root
    block = tree_of(model, t)
    grow(block, block.node(root))
    model.spec.learner.begin(tree, root, int(new.slot))
    return True


def take_over(model: HasState, tree: TreeView, node: int) -> None:
    """Replace a node by its alternate tree; the node, its subtree, and further alternates are removed.

    The count of records at the place stays: siblings are compared by it.
    """
    states, old = tree.subtree_states, tree.block.node(node)
    root = int(states.alternate[node])
    stays = whole(tree, root)
    gone = np.setdiff1d(whole(tree, node), stays)
    parent = tree.nodes.parent[: tree.block.nodes]
    parent[np.flatnonzero(parent == root)] = node
    routed, above, depth, beside = old.routed, old.parent, old.depth, int(states.beside[node])
    tree.node_ints[node] = tree.node_ints[root]
    old.routed, old.parent, old.depth, states.beside[node] = routed, above, depth, beside
    if old.kind in (LEAF, ABSENT):
        old.child = node
    if old.slot >= 0:
        tree.block.leaf_of(old).node = node
        tree.block.node(root).slot = NO_SLOT
    nested = states.alternate[node]
    if nested:
        states.beside[nested] = node + 1
    remove(model, tree, np.append(gone[gone != node], root))


def drop(model: HasState, tree: TreeView, node: int) -> None:
    """Remove the alternate tree beside a node."""
    alternate = tree.subtree_states.alternate
    gone = whole(tree, int(alternate[node]))
    alternate[node] = 0
    remove(model, tree, gone)


def remove(model: HasState, tree: TreeView, gone: Ints) -> None:
    """Free the leaf records of nodes, by number, and close the gap."""
    slots = tree.nodes.slot[np.sort(gone)]
    for slot in slots[slots >= 0].tolist():
        splitting.free_slot(model, tree, slot)
    close_gap(tree, gone)


def whole(tree: TreeView, root: int) -> Ints:
    """Return the numbers of a node and of all nodes below it, ascending, including trees beside them."""
    numbers: list[int] = []
    alternates = tree.subtree_states.alternate
    waiting = [root]
    while waiting:
        number = waiting.pop()
        numbers.append(number)
        node = tree.block.node(number)
        if node.kind in (LEAF, ABSENT):
            continue
        waiting += range(node.child, node.child + node.children)
        alternate = alternates.item(number)
        if alternate:
            waiting.append(alternate)
    return np.array(sorted(numbers), dtype=np.int64)


def main_tree(tree: TreeView) -> Ints:
    """Return the numbers of the nodes that answer, ascending: without nodes of alternate trees."""
    count = tree.block.nodes
    parents, is_main = tree.nodes.parent[:count].tolist(), tree.subtree_states.beside[:count] == 0
    for number, parent in enumerate(parents):  # parents lie before their children
        is_main[number] = is_main[number] and (parent < 0 or is_main[parent])
    return np.flatnonzero(is_main)


def alternate_root(tree: TreeView, node: int) -> int:
    """Return the root of the alternate tree that a node belongs to; -1: it belongs to none."""
    beside = tree.subtree_states.beside
    while node >= 0 and not beside[node]:
        node = int(tree.block.node(node).parent)
    return node


def begin_again(tree: TreeView, node: int) -> None:
    """Write the initial state of a node's detector and generator."""
    tree.subtree_states.draws[node] = 0
    tree.subtree_states.detector[node] = 0.0
