"""Alternate trees: how they start beside a node, take its place, or are removed.

The kernels are in core/learners/hat/kernels.py. The nodes of an alternate tree lie in the block of its tree,
after the node beside which it stands. Removed nodes leave no gap, as where splits are revised: the records
after them move up, parents before children.
"""

from __future__ import annotations

import numpy as np

from core.learners.hoeffding.decision import HasState
from core.learners.hoeffding.growth import splitting
from core.learners.hoeffding.growth.revision import close_gap
from core.tree import layout as at
from core.tree import views
from core.tree.byoffset.children import grow
from core.tree.layout import Ints
from core.tree.views import TreeView, tree_view


def start(model: HasState, t: int, node: int) -> bool:
    """Start an alternate tree of one leaf beside an inner node, if the caps allow; an older one is removed.

    t: first word of the tree, which may move; node: a number.
    """
    tree = tree_view(model.plan, model.ints, t)
    if tree.subtrees[node, at.SUBTREE_ALTERNATE]:
        drop(model, tree, node)
    leaves, inner, nodes = tree.header[[at.TREE_LEAVES, at.TREE_SPLITS, at.TREE_NODES]].tolist()
    if splitting.exceeds_cap(model, leaves + 1, inner, nodes + 1):
        return False
    t = splitting.make_room(model, t, 1, 1)
    tree = tree_view(model.plan, model.ints, t)
    root = tree.header.item(at.TREE_NODES)
    tree.header[at.TREE_NODES] = root + 1
    tree.node_ints[root, [at.NODE_PARENT, at.NODE_DEPTH]] = tree.node_ints[
        node, [at.NODE_PARENT, at.NODE_DEPTH]
    ]
    views.end_here(tree, root)
    tree.subtrees[root, at.SUBTREE_BESIDE] = node + 1
    tree.subtrees[node, at.SUBTREE_ALTERNATE] = root
    grow(model.address, t, root)
    model.spec.learner.begin(tree, root, tree.node_ints.item(root, at.NODE_SLOT))
    return True


def take_over(model: HasState, tree: TreeView, node: int) -> None:
    """Replace a node by its alternate tree; the node, its subtree, and further alternates are removed.

    The count of records at the place stays: siblings are compared by it.
    """
    root = tree.subtrees.item(node, at.SUBTREE_ALTERNATE)
    stays = whole(tree, root)
    gone = np.setdiff1d(whole(tree, node), stays)
    nodes = tree.node_ints[: tree.header.item(at.TREE_NODES)]
    parent = nodes[:, at.NODE_PARENT]
    parent[np.flatnonzero(parent == root)] = node
    kept = [at.NODE_ROUTED, at.NODE_PARENT, at.NODE_DEPTH]
    place, beside = nodes[node, kept].tolist(), tree.subtrees.item(node, at.SUBTREE_BESIDE)
    nodes[node] = nodes[root]
    nodes[node, kept], tree.subtrees[node, at.SUBTREE_BESIDE] = place, beside
    if nodes[node, at.NODE_KIND] in (at.LEAF, at.ABSENT):
        nodes[node, at.NODE_CHILD] = node
    slot = nodes.item(node, at.NODE_SLOT)
    if slot >= 0:
        tree.leaf_ints[slot, at.LEAF_NODE] = node
        nodes[root, at.NODE_SLOT] = -1
    nested = tree.subtrees.item(node, at.SUBTREE_ALTERNATE)
    if nested:
        tree.subtrees[nested, at.SUBTREE_BESIDE] = node + 1
    remove(model, tree, np.append(gone[gone != node], root))


def drop(model: HasState, tree: TreeView, node: int) -> None:
    """Remove the alternate tree beside a node."""
    gone = whole(tree, tree.subtrees.item(node, at.SUBTREE_ALTERNATE))
    tree.subtrees[node, at.SUBTREE_ALTERNATE] = 0
    remove(model, tree, gone)


def remove(model: HasState, tree: TreeView, gone: Ints) -> None:
    """Free the leaf records of nodes, by number, and close the gap."""
    for number in np.sort(gone).tolist():
        slot = tree.node_ints.item(number, at.NODE_SLOT)
        if slot >= 0:
            splitting.free_slot(model, tree, slot)
    close_gap(tree, gone)


def whole(tree: TreeView, root: int) -> Ints:
    """Return the numbers of a node and of all nodes below it, ascending, including trees beside them."""
    found: list[int] = []
    waiting = [root]
    while waiting:
        node = waiting.pop()
        found.append(node)
        record = tree.node_ints[node]
        if record[at.NODE_KIND] in (at.LEAF, at.ABSENT):
            continue
        first = record.item(at.NODE_CHILD)
        waiting += range(first, first + record.item(at.NODE_CHILDREN))
        alternate = tree.subtrees.item(node, at.SUBTREE_ALTERNATE)
        if alternate:
            waiting.append(alternate)
    return np.array(sorted(found), dtype=np.int64)


def main_tree(tree: TreeView) -> Ints:
    """Return the numbers of the nodes that answer, ascending: without nodes of alternate trees."""
    nodes = tree.node_ints[: tree.header.item(at.TREE_NODES)]
    is_main = tree.subtrees[: len(nodes), at.SUBTREE_BESIDE] == 0
    parents, beside = nodes[:, at.NODE_PARENT].tolist(), is_main.tolist()
    for number, parent in enumerate(parents):  # parents lie before their children
        beside[number] = beside[number] and (parent < 0 or beside[parent])
    return np.flatnonzero(beside)


def alternate_root(tree: TreeView, node: int) -> int:
    """Return the root of the alternate tree that a node belongs to; -1: it belongs to none."""
    while node >= 0 and not tree.subtrees[node, at.SUBTREE_BESIDE]:
        node = tree.node_ints.item(node, at.NODE_PARENT)
    return node


def begin_anew(tree: TreeView, node: int) -> None:
    """Write the initial state of a node's detector and generator."""
    tree.subtrees[node, at.SUBTREE_DRAWS] = 0
    tree.subtrees[node, at.SUBTREE_DETECTOR :] = 0
