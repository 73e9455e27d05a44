"""Checks of the words of a tree that kernels rely on: counts, codes, kinds and places.

One kernel goes over the block and returns a problem (core/problems.py), by the number of a sentence here or
of a plug-in's sentence. It takes microseconds for a small tree, and reads the words that its first records
would read.
"""

from __future__ import annotations

import math
from typing import Final

from core.drift import adwin
from core.drift.adwin import AdwinParameters, AdwinState
from core.kernels.jit import kernel, words_at
from core.kernels.records import offset
from core.layout.plan import PlanRecord
from core.layout.tree import (
    ABSENT,
    LEAF,
    MULTIWAY,
    NO_NODE,
    NO_SLOT,
    NUMERIC,
    SUBTREE_FIELDS,
    Leaf,
    Node,
    Subtree,
    Tree,
)
from core.learners.hoeffding.schedules import base as schedules
from core.observers import base as observers
from core.problems import SOUND, at_place, of_plugin, range_problem, range_rules

_LINKS: Final = (
    "node 0 must be the root",
    "the parent must be an inner node that has this node among its children",
    "depth must be one more than the parent's",
    "leaves and absent branches must lead to themselves",
    "an attribute must be one of the schema's, of the kind that its test needs",
    "children must lie after their node, inside the tree, one for each branch of the test",
    "a category must be one of its attribute's values",
    "classes of a node must be from 0 to the number of classes in the schema",
    "leaf record must be the node's own and point back to it, where the node learns, and none elsewhere",
    "every node but the root must be the child of one node",
    "leaves, splits and depth must follow from the nodes",
    "each leaf record must belong to one node, or be free",
    "free leaf records and unused nodes must be empty",
    "an alternate tree must stand beside an inner node before it, which names it and is as deep",
)
(
    ROOT,
    PARENT,
    DEPTH,
    END,
    ATTRIBUTE,
    CHILDREN,
    VALUE,
    REACH,
    SLOT,
    ORPHAN,
    TOTALS,
    CHAIN,
    EMPTY,
    BESIDE,
) = range(1, len(_LINKS) + 1)

_TREE_RULES: Final = (*_LINKS, *range_rules(Tree))
_NODE_RULES: Final = (*_TREE_RULES, *range_rules(Node))
_LEAF_RULES: Final = (*_NODE_RULES, *range_rules(Leaf))
PROBLEMS: Final = (*_LEAF_RULES, *range_rules(Subtree))

header_ranges = range_problem(Tree, len(_LINKS))
node_ranges = range_problem(Node, len(_TREE_RULES))
leaf_ranges = range_problem(Leaf, len(_NODE_RULES))
subtree_ranges = range_problem(Subtree, len(_LEAF_RULES))

NUMERIC_OBSERVER: Final = offset(PlanRecord, "numeric_observer")
NOMINAL_OBSERVER: Final = offset(PlanRecord, "nominal_observer")
SCHEDULE: Final = offset(PlanRecord, "schedule")
SUBTREE_DETECTOR: Final = offset(PlanRecord, "subtree_detector")
NODE_PARENT: Final = offset(Node, "parent")
NODE_SLOT: Final = offset(Node, "slot")
AFTER_NODE: Final = offset(Leaf, "node") + 1

observer_problem, shared_problem = observers.problem_dispatcher()
schedule_problem = schedules.problem_dispatcher()


@kernel
def block_problem(plan: PlanRecord, tree: Tree, blank_address: int) -> int:
    """Return a problem of a tree, or SOUND; blank_address: words of an unused leaf record."""
    blank, _ = words_at(blank_address)
    p = plan.parameters(plan.numeric_observer_at)
    problem = of_plugin(NUMERIC_OBSERVER, shared_problem(plan.numeric_observer, plan, p, tree.model))
    if problem == SOUND:
        problem = nodes_problem(plan, tree)
    if problem == SOUND and plan.subtrees != 0:
        problem = subtrees_problem(plan, tree)
    if problem == SOUND:
        problem = leaves_problem(plan, tree, blank)
    return problem


@kernel
def nodes_problem(plan: PlanRecord, tree: Tree) -> int:
    """Return a problem of a tree's header and nodes; without one the nodes form one tree."""
    problem = header_ranges(tree)
    if problem != SOUND:
        return problem
    leaves, splits, deepest, children = 0, 0, 0, 0  # children: including roots of alternate trees
    for number in range(tree.nodes):
        node = tree.node(number)
        problem = node_ranges(node)
        if problem != SOUND:
            return at_place(number, problem)
        if is_beside(plan, tree, node):
            problem = beside_problem(plan, tree, number, node)
            children += 1
        else:
            problem = parent_problem(tree, number, node)
        if problem == SOUND and is_end(node):
            problem = end_problem(plan, number, node)
        elif problem == SOUND:
            problem = test_problem(plan, tree, number, node)
            children += node.children
            splits += 1
        if problem == SOUND and not 0 <= node.reach <= plan.classes:
            problem = REACH
        if problem != SOUND:
            return at_place(number, problem)
        leaves += 1 if node.kind == LEAF else 0
        deepest = max(deepest, node.depth)
    # Each node except the root has one place among its parent's children, so that no place is left.
    if children != tree.nodes - 1:
        return ORPHAN
    is_total = leaves == tree.leaves and splits == tree.splits
    return SOUND if is_total and deepest == tree.depth else TOTALS


@kernel
def is_end(node: Node) -> bool:
    """Return whether a node is a leaf or an absent branch."""
    return node.kind == LEAF or node.kind == ABSENT


@kernel
def parent_problem(tree: Tree, number: int, node: Node) -> int:
    """Return a problem of a node's links to its ancestors; all nodes before it are sound."""
    if number == 0:
        return SOUND if node.parent == NO_NODE and node.depth == 0 else ROOT
    if not 0 <= node.parent < number:
        return PARENT
    above = tree.node(node.parent)
    if is_end(above) or not above.child <= number < above.child + above.children:
        return PARENT
    return SOUND if node.depth == above.depth + 1 else DEPTH


@kernel
def is_beside(plan: PlanRecord, tree: Tree, node: Node) -> bool:
    """Return whether a node is marked as the root of an alternate tree."""
    return plan.subtrees != 0 and tree.subtree(plan, node).beside != 0


@kernel
def beside_problem(plan: PlanRecord, tree: Tree, number: int, node: Node) -> int:
    """Return a problem of the place of an alternate tree's root; all nodes before it are sound."""
    beside = tree.subtree(plan, node).beside - 1
    if not 0 <= beside < number:
        return BESIDE
    other = tree.node(beside)
    if is_end(other) or tree.subtree(plan, other).alternate != number:
        return BESIDE
    return SOUND if node.parent == other.parent and node.depth == other.depth else BESIDE


@kernel
def subtrees_problem(plan: PlanRecord, tree: Tree) -> int:
    """Return a problem of the states of subtrees in a tree whose nodes are sound."""
    for number in range(tree.nodes):
        subtree = tree.subtree(plan, tree.node(number))
        if subtree.alternate != 0:
            if not number < subtree.alternate < tree.nodes:
                return at_place(number, BESIDE)
            if tree.subtree(plan, tree.node(subtree.alternate)).beside != number + 1:
                return at_place(number, BESIDE)
        problem = subtree_ranges(subtree)
        if problem != SOUND:
            return at_place(number, problem)
        p = AdwinParameters(plan.ints, plan.floats, plan.subtree_detector_at)
        state = AdwinState(subtree.ints, subtree.floats, subtree.start + SUBTREE_FIELDS)
        problem = adwin.problem(p, state)
        if problem != SOUND:
            return of_plugin(SUBTREE_DETECTOR, problem)
    return SOUND


@kernel
def end_problem(plan: PlanRecord, number: int, node: Node) -> int:
    """Return a problem of a leaf or an absent branch: its test leads to itself (core/tree/views.py)."""
    if node.child != number or node.value != math.inf:
        return END
    return SOUND if 0 <= node.attribute < max(plan.attributes, 1) else ATTRIBUTE


@kernel
def test_problem(plan: PlanRecord, tree: Tree, number: int, node: Node) -> int:
    """Return a problem of the test of an inner node."""
    values = -1  # a numeric attribute
    for j in range(plan.nominal):
        if plan.nominal_column(j).column == node.attribute:
            values = tree.ints[plan.values_seen + j]
    if not 0 <= node.attribute < plan.attributes or (node.kind == NUMERIC) != (values < 0):
        return ATTRIBUTE
    has_two = node.kind != MULTIWAY or plan.halves != 0
    fits = node.children == 2 if has_two else 1 <= node.children <= values
    if not fits or not number < node.child <= tree.nodes - node.children:
        return CHILDREN
    value = node.value
    if node.kind == NUMERIC:
        return SOUND if value - value == 0.0 else VALUE
    return SOUND if 0.0 <= value < values and value == math.floor(value) else VALUE


@kernel
def leaves_problem(plan: PlanRecord, tree: Tree, blank) -> int:
    """Return a problem of the leaf records of a tree whose nodes are sound."""
    learners = 0
    for number in range(tree.nodes):
        node = tree.node(number)
        if node.kind == ABSENT or (node.kind != LEAF and plan.revision == 0):
            if node.slot != NO_SLOT:
                return at_place(number, SLOT)
            continue
        if node.slot == NO_SLOT and plan.review != 0:
            continue  # an inactive leaf
        learners += 1
        problem = SLOT
        if 0 <= node.slot < tree.slots:
            problem = record_problem(plan, tree, number, node, tree.leaf_of(node))
        if problem != SOUND:
            return at_place(number, problem)
    free, slot = 0, tree.free
    while slot != NO_SLOT:
        if not 0 <= slot < tree.slots or free > tree.slots - learners:
            return CHAIN
        leaf = tree.leaf(slot)
        following = leaf.node
        # A record in use points to its node, a record in the chain to the next one: no record may do both.
        if 0 <= following < tree.nodes and tree.node(following).slot == slot:
            return CHAIN
        if not is_blank(tree, leaf, blank):
            return EMPTY
        free += 1
        slot = following
    if learners + free != tree.slots:
        return CHAIN
    return unused_problem(tree, blank)


@kernel
def record_problem(plan: PlanRecord, tree: Tree, number: int, node: Node, leaf: Leaf) -> int:
    """Return a problem of the leaf record of a node that learns."""
    if leaf.node != number:
        return SLOT
    problem = leaf_ranges(leaf)
    if problem != SOUND:
        return problem
    k = tree.model.classes
    if plan.numeric > 0:
        statistics = tree.numeric_statistics(plan, leaf)
        p = plan.parameters(plan.numeric_observer_at)
        problem = observer_problem(plan.numeric_observer, plan, p, statistics, k)
        if problem != SOUND:
            return of_plugin(NUMERIC_OBSERVER, problem)
    if plan.nominal > 0:
        counts, p = tree.nominal_statistics(leaf), plan.parameters(plan.nominal_observer_at)
        problem = observer_problem(plan.nominal_observer, plan, p, counts, k)
        if problem != SOUND:
            return of_plugin(NOMINAL_OBSERVER, problem)
    p = plan.parameters(plan.schedule_at)
    return of_plugin(SCHEDULE, schedule_problem(plan.schedule, plan, p, tree, node, leaf))


@kernel
def unused_problem(tree: Tree, blank) -> int:
    """Return EMPTY if records after those in use differ from new records."""
    for slot in range(tree.slots, tree.slot_capacity):
        if not is_blank(tree, tree.leaf(slot), blank):
            return EMPTY
    for number in range(tree.nodes, tree.node_capacity):
        node = tree.node(number)
        for word in range(tree.node_stride):
            nothing = -1 if word in (NODE_PARENT, NODE_SLOT) else 0
            if node.ints[node.start + word] != nothing:
                return EMPTY
    return SOUND


@kernel
def is_blank(tree: Tree, leaf: Leaf, blank) -> bool:
    """Return whether a leaf record is empty after its first word, which links it to others."""
    word = AFTER_NODE
    while word < tree.leaf_stride and leaf.ints[leaf.start + word] == blank[word]:
        word += 1
    return word >= tree.leaf_stride
