"""The compiled part of adaptive trees, by the interface of learners (core/learners/protocol.py).

An adaptive tree is a tree of the Hoeffding family (core/learners/hoeffding/kernels.py) with an ADWIN at every
node, and with *alternate trees*. An alternate tree stands beside an inner node and lies among the nodes of
the same block. Its root is no child: the node holds its place, and it has the node's parent and depth.

    answer   only the main tree answers: alternate trees do not vote
    learn    judge   the tree, and each alternate tree that a record passes, predicts; the detectors on the
                     path get the error. If an alternate tree starts, takes the node's place, or is removed,
                     Python changes the tree (GROW_FIRST), then the record comes again
             train   the leaves of the main tree and of the alternate trees learn
             attempt splits of leaves that are due, alternate trees first
"""

from __future__ import annotations

import math

from core.drift import adwin
from core.drift.adwin import AdwinParameters, AdwinState
from core.drift.base import IN_CONTROL
from core.kernels.jit import called, kernel, part
from core.layout.learning import DECISION_DUE, GREW, GROW_FIRST, LEARNED, NOT_ANSWERED, Row, Work
from core.layout.plan import PlanRecord
from core.layout.tree import ABSENT, LEAF, SUBTREE_FIELDS, Node, Subtree, Tree
from core.learners.hat.due import GOES, JUDGED, LAST, ORDER, SPLITS, STARTS, TAKES_OVER
from core.learners.hat.resampling import times_over
from core.learners.hoeffding import kernels as trees
from core.learners.hoeffding.split_attempt import attempt_here
from core.tree import quirks
from core.tree.columns import unused_scratch
from core.tree.routing import arrive, arrive_from, count

PROBLEMS = trees.PROBLEMS
block_problem = trees.block_problem
route_ahead = trees.route_ahead
uncertainty = trees.uncertainty


@kernel
def answer(
    plan: PlanRecord, tree: Tree, place: int, row: Row, prepared: int, scratch, shares
) -> tuple[int, int, int]:
    """Answer like a Hoeffding tree, without alternate trees."""
    best, end, hint = trees.answer(plan, tree, place, row, prepared, scratch, shares)
    if end >= 0 and is_silent(plan, tree.node_of(end)) and best >= 0:
        for c in range(plan.classes):
            shares[c] = 0.0
        best = 0
    return best, end, hint


@kernel
def is_silent(plan: PlanRecord, node: Node) -> bool:
    """Return whether MOA finds no leaf that could vote: the record ends at an inner node."""
    return plan.has(quirks.SILENT_AT_MISSING) and node.kind != LEAF and node.kind != ABSENT


@kernel
def learn(plan: PlanRecord, tree: Tree, place: int, row: Row, hint: int, work: Work) -> tuple[int, int]:
    """Judge and train the tree and its alternate trees with a record."""
    outcome, end = learn_tree(plan, tree, place, row.x, row, hint, 0, work, work.votes)
    if outcome == GREW and tree.start != tree.model.first:
        outcome = LEARNED
    return outcome, end


@called
def learn_tree(
    plan: PlanRecord, tree: Tree, place: int, x, row: Row, hint: int, serial: int, work: Work, out
) -> tuple[int, int]:
    """Learn a record with a tree, as ``learn`` does; return (outcome, the record's place).

    x: the record that tests read; row: the record that leaves read; hint: of the leaf model, for the main
    tree (core/leaf_models/base.py); serial: number of the tree in its model; out: words that describe a split
    of the tree made here (core/learners/hoeffding/plain_split.py).
    """
    end = tree.node_of(place)
    if place < 0:
        end = arrive(plan, tree, x, False, 0)
    root = tree.subtree(plan, tree.root)
    comes_again = root.due == JUDGED
    if comes_again:
        root.due, hint = 0, -1
    else:
        if place == NOT_ANSWERED:
            count(tree, end, row.weight)
        if judge_all(plan, tree, end, x, row, hint, work.scratch):
            return GROW_FIRST, end.start
    n_due = train_all(plan, tree, end, x, row, hint, serial, comes_again, work)
    if n_due == 0:
        return LEARNED, end.start
    return attempt_all(plan, tree, end, x, out), end.start


@kernel
def end_below(plan: PlanRecord, tree: Tree, root: int, end: Node, x) -> Node:
    """Return the node where a record ends in the tree with this root; end: the node in the main tree, root 0.

    root: number of the root of an alternate tree, or 0.
    """
    node = end
    if root != 0:
        node = arrive_from(plan, tree, tree.node(root), x, False, 0)
    return node


@kernel
def line_up(plan: PlanRecord, tree: Tree, end: Node, last: int) -> int:
    """Append the alternate trees beside the nodes from one up to its root to the queue; return the last.

    last: number of the root of the tree that is last in the queue.
    """
    node = end
    while True:
        subtree = tree.subtree(plan, node)
        alternate = subtree.alternate
        if alternate != 0:
            tree.subtree(plan, tree.node(last)).next = alternate
            last = alternate
        if node.parent < 0 or subtree.beside != 0:
            return last
        node = tree.node(node.parent)


@kernel
def next_root(plan: PlanRecord, tree: Tree, root: int) -> int:
    """Return the root of the tree after this one in the queue and end the queue here; 0: there is none."""
    subtree = tree.subtree(plan, tree.node(root))
    following = subtree.next
    subtree.next = 0
    return following


@kernel
def judge_all(plan: PlanRecord, tree: Tree, end: Node, x, row: Row, hint: int, scratch) -> bool:
    """Update the detectors on the paths of a record with the errors; return whether a change is due."""
    root, last, is_due = 0, 0, False
    while True:
        node = end_below(plan, tree, root, end, x)
        if root != 0:
            count_below(plan, tree, node, row.weight)
        last = line_up(plan, tree, node, last)
        predicted = hint  # of the main tree
        if predicted < 0 or root != 0:
            predicted = predict(plan, tree, node, row, scratch)
        is_due |= judge(plan, tree, node, 0.0 if predicted == row.label else 1.0)
        root = next_root(plan, tree, root)
        if root == 0:
            return is_due


@kernel
def count_below(plan: PlanRecord, tree: Tree, end: Node, weight: float) -> None:
    """Count a record at the nodes of its path in an alternate tree."""
    node = end
    while True:
        node.routed += weight
        if tree.subtree(plan, node).beside != 0:
            return
        node = tree.node(node.parent)


@kernel
def predict(plan: PlanRecord, tree: Tree, node: Node, row: Row, scratch) -> int:
    """Return the class that the leaf predicts where a record ends."""
    if node.kind == ABSENT:
        return 0  # MOA: there is no vote
    shares = part(scratch, unused_scratch(plan) + 3 * plan.attributes, plan.classes)
    for c in range(plan.classes):
        shares[c] = 0.0
    best, _ = trees.vote(plan, tree, node, row, scratch, shares)
    return best


@kernel
def judge(plan: PlanRecord, tree: Tree, end: Node, error: float) -> bool:
    """Update the detectors from a node up to its root with an error; return whether a change is due there."""
    p = AdwinParameters(plan.ints, plan.floats, plan.subtree_detector_at)
    node, is_due = end, False
    while True:
        subtree = tree.subtree(plan, node)
        detector = detector_of(subtree)
        has_risen = watch(plan, p, detector, error)
        if node.kind != LEAF and node.kind != ABSENT:
            due = STARTS if has_risen else 0
            if due == 0 and subtree.alternate != 0:
                alternate = tree.subtree(plan, tree.node(subtree.alternate))
                due = compare(plan, detector, detector_of(alternate))
            subtree.due = due
            is_due |= due != 0
        if node.parent < 0 or subtree.beside != 0:
            return is_due
        node = tree.node(node.parent)


@kernel
def detector_of(subtree: Subtree) -> AdwinState:
    """Return the state of the detector that watches a subtree."""
    return AdwinState(subtree.ints, subtree.floats, subtree.start + SUBTREE_FIELDS)


@kernel
def watch(plan: PlanRecord, p, detector: AdwinState, error: float) -> bool:
    """Update a detector with an error; return whether it has cut its window, and the error has risen.

    MOA compares the means before and after; without the quirk the detector decides.
    """
    width, total = detector.width, detector.total
    level = adwin.update(p, detector, error)
    if plan.quirks == 0:
        return level != IN_CONTROL
    if width == 0.0 or detector.width > width:
        return False
    return detector.total / detector.width >= total / width


@kernel
def compare(plan: PlanRecord, detector: AdwinState, other: AdwinState) -> int:
    """Return the change that is due by the errors in the windows of a node and its alternate tree."""
    width, other_width = detector.width, other.width
    if not min(width, other_width) > plan.switch_records:
        return 0
    error = detector.total / width
    other_error = other.total / other_width
    inverse = 1.0 / other_width + 1.0 / width
    bound = math.sqrt(2.0 * error * (1.0 - error) * plan.switch_logarithm * inverse)
    if bound < error - other_error:
        return TAKES_OVER
    return GOES if bound < other_error - error else 0


@kernel
def train_all(
    plan: PlanRecord,
    tree: Tree,
    end: Node,
    x,
    row: Row,
    hint: int,
    serial: int,
    comes_again: bool,
    work: Work,
) -> int:
    """Train the leaves of the tree and of the alternate trees; return how many are due for an attempt.

    An alternate tree that starts with the record, which comes again for it, predicts it, too. Where a tree
    ends at an inner node (MOA: a value is missing) or at an absent branch, nothing learns.
    """
    root, last, n_due, rank = 0, 0, 0, 0
    while True:
        node = end_below(plan, tree, root, end, x)
        last = line_up(plan, tree, node, last)
        subtree = tree.subtree(plan, node)
        if comes_again and root != 0 and detector_of(subtree).ticks == 0.0:
            count_below(plan, tree, node, row.weight)
            predicted = predict(plan, tree, node, row, work.scratch)
            judge(plan, tree, node, 0.0 if predicted == row.label else 1.0)
        if node.kind == LEAF:
            mass = times_over(plan, tree, subtree, serial) * row.weight
            of_leaf = hint if root == 0 else -1
            outcome = trees.train(plan, tree, node, Row(row.x, row.xs, row.label, mass), of_leaf, work)
            if outcome == DECISION_DUE:
                n_due += 1
                subtree.due = SPLITS + ORDER * (rank if root != 0 else LAST)
        rank += 1
        root = next_root(plan, tree, root)
        if root == 0:
            return n_due


@kernel
def attempt_all(plan: PlanRecord, tree: Tree, end: Node, x, out) -> int:
    """Attempt to split the leaves that are due; DECISION_DUE: Python has to attempt the remaining splits.

    The attempt of the main tree comes last, so that ``out`` describes its split if there was one.
    """
    root, last = 0, 0
    outcome = LEARNED
    while True:
        node = end_below(plan, tree, root, end, x)
        last = line_up(plan, tree, node, last)
        if root != 0 and outcome != DECISION_DUE:
            outcome = attempt(plan, tree, node, out)
        root = next_root(plan, tree, root)
        if root == 0:
            break
    if outcome != DECISION_DUE:
        outcome = attempt(plan, tree, end, out)
    return outcome


@kernel
def attempt(plan: PlanRecord, tree: Tree, node: Node, out) -> int:
    """Attempt to split a leaf, if it is due."""
    subtree = tree.subtree(plan, node)
    if subtree.due == 0:
        return LEARNED
    outcome = attempt_here(plan, tree, node, out)
    if outcome != DECISION_DUE:
        subtree.due = 0
    if outcome == GREW:
        start_again(plan, tree, subtree)
    return outcome


@kernel
def start_again(plan: PlanRecord, tree: Tree, subtree: Subtree) -> None:
    """Write the initial state of the detector of a node that got a test: it is another kind of node now."""
    subtree.draws = 0
    for word in range(tree.node_stride - plan.subtrees - SUBTREE_FIELDS):
        subtree.detector[word] = 0.0
