"""Checks of the words of a tree that kernels rely on: counts, codes, kinds and places.

One kernel goes over the block and returns a problem (core/problems.py), by the number of a sentence here or
of a plug-in's sentence. It takes microseconds for a small tree, and reads the words that its first records
would read.
"""

from __future__ import annotations

import math
from typing import Final

from core.drift import adwin
from core.kernels.jit import kernel, words_at
from core.kernels.records import Words
from core.layout.model import ModelHeader
from core.layout.plan import PlanRecord
from core.layout.tree import Leaf, Node, Tree
from core.learners.hoeffding.schedules import base as schedules
from core.observers import base as observers
from core.problems import MOST, SOUND, at_place, of_plugin
from core.tree import layout as at
from core.tree.byoffset.routing import leaf_at, node_at

PROBLEMS: Final = (
    "nodes and leaf records must be from 1 to the room for them",
    "tree counters must be from 0 to 2**53",
    "growth has stopped (1) or not (0), paths are counted (1) or not (0)",
    "the kind of a node must be a leaf, a test or an absent branch",
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
    "the weight a leaf has seen must be a number of at least 0",
    "an alternate tree must stand beside an inner node before it, which names it and is as deep",
    "a tree at rest has nothing due, and the state of a leaf's generator is below 2**48",
)
(
    SIZES,
    TREE_COUNTERS,
    FLAGS,
    KIND,
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
    WEIGHT,
    BESIDE,
    AT_REST,
) = range(1, len(PROBLEMS) + 1)

numeric_problem, shared_problem = observers.problem_dispatcher()
schedule_problem = schedules.problem_dispatcher()


@kernel
def block_problem(plan, params, ints, floats, t: int, blank_address: int) -> int:
    """Return a problem of the tree at word t, or SOUND; blank_address: words of an unused leaf record."""
    blank, _ = words_at(blank_address)
    kind = plan[at.PLAN_NUMERIC_OBSERVER]
    found = of_plugin(
        at.PLAN_NUMERIC_OBSERVER,
        shared_problem(
            kind,
            PlanRecord(plan, params, 0),
            Words(plan, params, plan[at.PLAN_NUMERIC_OBSERVER + 1]),
            ModelHeader(ints, floats, 0),
        ),
    )
    if found == SOUND:
        found = nodes_problem(plan, ints, floats, t)
    if found == SOUND and plan[at.PLAN_SUBTREES] != 0:
        found = subtrees_problem(plan, params, ints, floats, t)
    if found == SOUND:
        found = leaves_problem(plan, params, ints, floats, t, blank)
    return found


@kernel
def nodes_problem(plan, ints, floats, t: int) -> int:
    """Return a problem of a tree's header and nodes; without one the nodes form one tree."""
    n, slots = ints[t + at.TREE_NODES], ints[t + at.TREE_SLOTS]
    if not 1 <= n <= ints[t + at.TREE_NODE_CAPACITY] or not 1 <= slots <= ints[t + at.TREE_SLOT_CAPACITY]:
        return SIZES
    if not 0 <= ints[t + at.TREE_ATTEMPTS] <= MOST or not 0 <= ints[t + at.TREE_LABELS] <= MOST:
        return TREE_COUNTERS
    if not 0 <= ints[t + at.TREE_STOPPED] <= at.LACKS_LEAVES or not 0 <= ints[t + at.TREE_PATHS] <= 1:
        return FLAGS
    leaves, splits, deepest, children = 0, 0, 0, 0  # children: including roots of alternate trees
    for number in range(n):
        node = node_at(ints, t, number)
        kind = ints[node + at.NODE_KIND]
        if not at.LEAF <= kind <= at.ABSENT:
            return at_place(number, KIND)
        if is_beside(plan, ints, node):
            found = beside_problem(plan, ints, t, number, node)
            children += 1
        else:
            found = parent_problem(ints, t, number, node)
        if found == SOUND and (kind == at.LEAF or kind == at.ABSENT):
            found = end_problem(plan, ints, floats, number, node)
        elif found == SOUND:
            found = test_problem(plan, ints, floats, n, number, node)
            children += ints[node + at.NODE_CHILDREN]
            splits += 1
        if found == SOUND and not 0 <= ints[node + at.NODE_REACH] <= plan[at.PLAN_CLASSES]:
            found = REACH
        if found != SOUND:
            return at_place(number, found)
        leaves += 1 if kind == at.LEAF else 0
        deepest = max(deepest, ints[node + at.NODE_DEPTH])
    # Each node except the root has one place among its parent's children, so that no place is left.
    if children != n - 1:
        return ORPHAN
    is_total = leaves == ints[t + at.TREE_LEAVES] and splits == ints[t + at.TREE_SPLITS]
    return SOUND if is_total and deepest == ints[t + at.TREE_DEPTH] else TOTALS


@kernel
def parent_problem(ints, t: int, number: int, node: int) -> int:
    """Return a problem of a node's links to its ancestors; all nodes before it are sound."""
    parent, depth = ints[node + at.NODE_PARENT], ints[node + at.NODE_DEPTH]
    if number == 0:
        return SOUND if parent == -1 and depth == 0 else ROOT
    if not 0 <= parent < number:
        return PARENT
    above = node_at(ints, t, parent)
    kind, first = ints[above + at.NODE_KIND], ints[above + at.NODE_CHILD]
    if kind == at.LEAF or kind == at.ABSENT or not first <= number < first + ints[above + at.NODE_CHILDREN]:
        return PARENT
    return SOUND if depth == ints[above + at.NODE_DEPTH] + 1 else DEPTH


@kernel
def is_beside(plan, ints, node: int) -> bool:
    """Return whether a node is marked as the root of an alternate tree."""
    subtrees = plan[at.PLAN_SUBTREES]
    return subtrees != 0 and ints[node + subtrees + at.SUBTREE_BESIDE] != 0


@kernel
def beside_problem(plan, ints, t: int, number: int, node: int) -> int:
    """Return a problem of the place of an alternate tree's root; all nodes before it are sound."""
    subtrees = plan[at.PLAN_SUBTREES]
    beside = ints[node + subtrees + at.SUBTREE_BESIDE] - 1
    if not 0 <= beside < number:
        return BESIDE
    other = node_at(ints, t, beside)
    kind = ints[other + at.NODE_KIND]
    if kind == at.LEAF or kind == at.ABSENT or ints[other + subtrees + at.SUBTREE_ALTERNATE] != number:
        return BESIDE
    is_alike = ints[node + at.NODE_PARENT] == ints[other + at.NODE_PARENT]
    return SOUND if is_alike and ints[node + at.NODE_DEPTH] == ints[other + at.NODE_DEPTH] else BESIDE


@kernel
def subtrees_problem(plan, params, ints, floats, t: int) -> int:
    """Return a problem of the states of subtrees in a tree whose nodes are sound."""
    n, subtrees = ints[t + at.TREE_NODES], plan[at.PLAN_SUBTREES]
    for number in range(n):
        state = node_at(ints, t, number) + subtrees
        alternate = ints[state + at.SUBTREE_ALTERNATE]
        if alternate != 0:
            if not number < alternate < n:
                return at_place(number, BESIDE)
            other = node_at(ints, t, alternate) + subtrees
            if ints[other + at.SUBTREE_BESIDE] != number + 1:
                return at_place(number, BESIDE)
        if ints[state + at.SUBTREE_DUE] != 0 or ints[state + at.SUBTREE_NEXT] != 0:
            return at_place(number, AT_REST)
        if not 0 <= ints[state + at.SUBTREE_DRAWS] < 1 << 48:
            return at_place(number, AT_REST)
        p = adwin.AdwinParameters(plan, params, plan[at.PLAN_SUBTREE_DETECTOR + 1])
        found = adwin.problem(p, adwin.AdwinState(ints, floats, state + at.SUBTREE_DETECTOR))
        if found != SOUND:
            return of_plugin(at.PLAN_SUBTREE_DETECTOR, found)
    return SOUND


@kernel
def end_problem(plan, ints, floats, number: int, node: int) -> int:
    """Return a problem of a leaf or an absent branch: its test leads to itself (layout.end_here)."""
    if ints[node + at.NODE_CHILD] != number or floats[node + at.NODE_VALUE] != math.inf:
        return END
    return SOUND if 0 <= ints[node + at.NODE_ATTRIBUTE] < max(plan[at.PLAN_ATTRIBUTES], 1) else ATTRIBUTE


@kernel
def test_problem(plan, ints, floats, n: int, number: int, node: int) -> int:
    """Return a problem of the test of an inner node."""
    kind, attribute = ints[node + at.NODE_KIND], ints[node + at.NODE_ATTRIBUTE]
    first, children = ints[node + at.NODE_CHILD], ints[node + at.NODE_CHILDREN]
    values = -1  # a numeric attribute
    for j in range(plan[at.PLAN_NOMINAL]):
        if plan[plan[at.PLAN_NOMINAL_TABLE] + j * at.NOMINAL_FIELDS + at.NOMINAL_COLUMN] == attribute:
            values = ints[plan[at.PLAN_VALUES_SEEN] + j]
    if not 0 <= attribute < plan[at.PLAN_ATTRIBUTES] or (kind == at.NUMERIC) != (values < 0):
        return ATTRIBUTE
    fits = children == 2 if kind != at.MULTIWAY or plan[at.PLAN_HALVES] != 0 else 1 <= children <= values
    if not fits or not number < first <= n - children:
        return CHILDREN
    value = floats[node + at.NODE_VALUE]
    if kind == at.NUMERIC:
        return SOUND if value - value == 0.0 else VALUE
    return SOUND if 0.0 <= value < values and value == math.floor(value) else VALUE


@kernel
def leaves_problem(plan, params, ints, floats, t: int, blank) -> int:
    """Return a problem of the leaf records of a tree whose nodes are sound."""
    n, slots = ints[t + at.TREE_NODES], ints[t + at.TREE_SLOTS]
    learners = 0
    for number in range(n):
        node = node_at(ints, t, number)
        kind, slot = ints[node + at.NODE_KIND], ints[node + at.NODE_SLOT]
        if kind == at.ABSENT or (kind != at.LEAF and plan[at.PLAN_REVISION] == 0):
            if slot != -1:
                return at_place(number, SLOT)
            continue
        if slot == -1 and plan[at.PLAN_REVIEW] != 0:
            continue  # an inactive leaf
        learners += 1
        found = SLOT
        if 0 <= slot < slots:
            found = record_problem(plan, params, ints, floats, t, number, node, leaf_at(ints, t, slot))
        if found != SOUND:
            return at_place(number, found)
    free, slot = 0, ints[t + at.TREE_FREE]
    while slot != -1:
        if not 0 <= slot < slots or free > slots - learners:
            return CHAIN
        leaf = leaf_at(ints, t, slot)
        following = ints[leaf + at.LEAF_NODE]
        # A record in use points to its node, a record in the chain to the next one: no record may do both.
        if 0 <= following < n and ints[node_at(ints, t, following) + at.NODE_SLOT] == slot:
            return CHAIN
        for word in range(at.LEAF_NODE + 1, ints[t + at.TREE_LEAF_STRIDE]):
            if ints[leaf + word] != blank[word]:
                return EMPTY
        free += 1
        slot = following
    if learners + free != slots:
        return CHAIN
    return unused_problem(ints, t, blank)


@kernel
def record_problem(plan, params, ints, floats, t: int, number: int, node: int, leaf: int) -> int:
    """Return a problem of the leaf record of a node that learns."""
    if ints[leaf + at.LEAF_NODE] != number:
        return SLOT
    if not 0 <= ints[leaf + at.LEAF_ATTEMPTS] <= MOST:
        return TREE_COUNTERS
    if not 0.0 <= floats[leaf + at.LEAF_OBSERVED] < math.inf:
        return WEIGHT
    if plan[at.PLAN_NUMERIC] > 0:
        kind, first = plan[at.PLAN_NUMERIC_OBSERVER], leaf + at.LEAF_FIELDS + plan[at.PLAN_CLASSES]
        wrong = numeric_problem(
            kind,
            PlanRecord(plan, params, 0),
            Words(plan, params, plan[at.PLAN_NUMERIC_OBSERVER + 1]),
            Words(ints, floats, first),
            ints[at.MODEL_CLASSES],
        )
        if wrong != SOUND:
            return of_plugin(at.PLAN_NUMERIC_OBSERVER, wrong)
    wrong = schedule_problem(
        plan[at.PLAN_SCHEDULE],
        PlanRecord(plan, params, 0),
        Words(plan, params, plan[at.PLAN_SCHEDULE + 1]),
        Tree(ints, floats, t),
        Node(ints, floats, node),
        Leaf(ints, floats, leaf),
    )
    return of_plugin(at.PLAN_SCHEDULE, wrong)


@kernel
def unused_problem(ints, t: int, blank) -> int:
    """Return EMPTY if records after those in use differ from new records."""
    for slot in range(ints[t + at.TREE_SLOTS], ints[t + at.TREE_SLOT_CAPACITY]):
        leaf = leaf_at(ints, t, slot)
        for word in range(at.LEAF_NODE + 1, ints[t + at.TREE_LEAF_STRIDE]):
            if ints[leaf + word] != blank[word]:
                return EMPTY
    for number in range(ints[t + at.TREE_NODES], ints[t + at.TREE_NODE_CAPACITY]):
        node = node_at(ints, t, number)
        for word in range(ints[t + at.TREE_NODE_STRIDE]):
            nothing = -1 if word == at.NODE_PARENT or word == at.NODE_SLOT else 0
            if ints[node + word] != nothing:
                return EMPTY
    return SOUND
