"""Plain splits: a leaf becomes an inner node without leaving compiled code.

A split is plain if the block has room for it, no cap is near, and new leaves begin only with class masses and
the weight at which their first attempt is due. All other splits are made by
``core/learners/hoeffding/growth/splitting.py``, which writes the same bytes for a plain split.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from core.kernels.jit import FLOATS, kernel, outlined, words_at
from core.layout.plan import PlanRecord
from core.layout.tree import NO_SLOT, TREE_HEADER, Node, SplitTest, Tree
from core.learners.hoeffding import ranking
from core.learners.hoeffding.branch_masses import branches_of, divide_here
from core.tree.children import connect_here


class SplitWords(NamedTuple):
    """The first words that describe a split; the class masses that the node had before follow."""

    node: float
    """Number of the node."""
    attribute: float
    test: float
    value: float
    best: float
    """Merit of the best test."""
    second: float
    """Merit of the second best test."""
    epsilon: float
    evidence: float
    outcome: float
    """GAP, TIE (core/learners/hoeffding/split_decision.py)."""
    depth: float
    classes: float
    """Number of the class masses that follow."""


SPLIT_WORDS: Final = len(SplitWords._fields)


@kernel(f"boolean(PlanRecord, Tree, Node, float64[::1], int64, {FLOATS})")
def split_leaf(plan: PlanRecord, tree: Tree, node: Node, decided, outcome: int, out) -> bool:
    """Install the best test of a ranking (decided: float64[RANKING_WORDS]) at a leaf.

    Writes the words that describe the split to ``out`` (float64[SPLIT_WORDS + class]). Returns False, and
    changes nothing, if the split is not plain.
    """
    attribute, kind = int(decided[ranking.BEST_ATTRIBUTE]), int(decided[ranking.BEST_TEST])
    if plan.plain_splits == 0 or attribute < 0:
        return False
    branches = branches_of(plan, tree, attribute, kind)
    if not has_room(plan, tree, branches):
        return False
    test = SplitTest(attribute, kind, decided[ranking.BEST_VALUE])
    masses = divide_here(plan, tree, tree.leaf_of(node), attribute, kind, test.value)
    classes = tree.model.classes
    words = SplitWords(
        node=float(tree.number(node)),
        attribute=float(attribute),
        test=float(kind),
        value=test.value,
        best=decided[ranking.BEST_MERIT],
        second=decided[ranking.SECOND_MERIT],
        epsilon=decided[ranking.EPSILON],
        evidence=decided[ranking.EVIDENCE],
        outcome=float(outcome),
        depth=float(node.depth),
        classes=float(classes),
    )
    for word in range(SPLIT_WORDS):
        out[word] = words[word]
    for c in range(classes):
        out[SPLIT_WORDS + c] = node.masses[c]
    free_slot(plan, tree, node.slot)
    node.slot = NO_SLOT
    connect_here(plan, tree, node, test, masses, True)
    for child in range(node.child, node.child + branches):
        tree.leaf_of(tree.node(child)).next = plan.first_attempt
    return True


split_leaf_here: Any = outlined(split_leaf)
"""``split_leaf`` for other kernels: a call, not inlined."""


@kernel
def has_room(plan: PlanRecord, tree: Tree, branches: int) -> bool:
    """Return whether a leaf's children fit into the present room of the block, and surely into the caps."""
    nodes, leaves = tree.nodes + branches, tree.leaves - 1 + branches
    if nodes > tree.node_capacity or leaves > tree.slot_capacity:
        return False
    words = nodes * tree.node_stride + leaves * tree.leaf_stride
    return leaves <= plan.max_leaves and TREE_HEADER + words <= plan.sure_words


@kernel
def free_slot(plan: PlanRecord, tree: Tree, slot: int) -> None:
    """Clear a leaf record and chain it to the free records."""
    blank, _ = words_at(plan.blank_leaf)
    leaf = tree.leaf(slot)
    for word in range(tree.leaf_stride):
        leaf.ints[leaf.start + word] = blank[word]
    leaf.node = tree.free
    tree.free = slot
