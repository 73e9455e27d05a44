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
from core.kernels.jit import address_of, called, kernel, part, words_at
from core.kernels.records import Words
from core.layout.learning import Row, Work
from core.layout.plan import PlanRecord, plan_at
from core.layout.tree import Node, Tree
from core.learners.hat.due import GOES, JUDGED, LAST, ORDER, SPLITS, STARTS, TAKES_OVER
from core.learners.hat.resampling import times_over
from core.learners.hoeffding import kernels as trees
from core.learners.hoeffding.split_attempt import attempt_here
from core.tree import layout as at
from core.tree import quirks
from core.tree.byoffset.columns import behind
from core.tree.byoffset.routing import arrive, arrive_from, count, node_at

PROBLEMS = trees.PROBLEMS
block_problem = trees.block_problem
route_ahead = trees.route_ahead
uncertainty = trees.uncertainty


@kernel
def answer(
    plan, params, ints, floats, t: int, place: int, x, xs, weight: float, prepared: int, scratch, shares
) -> tuple[int, int, int]:
    """Answer like a Hoeffding tree, without alternate trees."""
    row = Row(x, xs, -1, weight)
    best, node, hint = trees.answer(
        PlanRecord(plan, params, 0), Tree(ints, floats, t), place, row, prepared, scratch, shares
    )
    if node >= 0 and is_silent(plan, ints, node) and best >= 0:
        for c in range(plan[at.PLAN_CLASSES]):
            shares[c] = 0.0
        best = 0
    return best, node, hint


@kernel
def is_silent(plan, ints, node: int) -> bool:
    """Return whether MOA finds no leaf that could vote: the record ends at an inner node."""
    kind = ints[node + at.NODE_KIND]
    return plan[at.PLAN_QUIRKS] & quirks.SILENT_AT_MISSING != 0 and kind != at.LEAF and kind != at.ABSENT


@kernel
def learn(
    plan,
    params,
    ints,
    floats,
    t: int,
    place: int,
    x,
    xs,
    label: int,
    weight: float,
    hint: int,
    scratch,
    vote_buffer,
) -> tuple[int, int]:
    """Judge and train the tree and its alternate trees with a record."""
    outcome, node = learn_tree(
        plan,
        params,
        ints,
        floats,
        t,
        place,
        x,
        x,
        xs,
        label,
        weight,
        0,
        scratch,
        vote_buffer,
        vote_buffer,
    )
    if outcome == at.GREW and t != ints[at.MODEL_FIRST]:
        outcome = at.LEARNED
    return outcome, node


@called
def learn_tree(
    plan,
    params,
    ints,
    floats,
    t: int,
    place: int,
    x,
    seen,
    xs,
    label: int,
    weight: float,
    serial: int,
    scratch,
    vote_buffer,
    out,
) -> tuple[int, int]:
    """Learn a record with the tree at word t, as ``learn`` does; return (outcome, the record's node).

    x: the record that tests read, seen and xs: the record that leaves read; serial: number of the tree in its
    model; out: words that describe a split of the tree made here (core/learners/hoeffding/plain_split.py).
    """
    end = place
    if end < 0:
        end = arrive(plan, ints, floats, t, x, False, 0)
    due = t + at.TREE_HEADER + plan[at.PLAN_SUBTREES] + at.SUBTREE_DUE
    comes_again = ints[due] == JUDGED
    if comes_again:
        ints[due] = 0
    else:
        if place == at.NOT_ANSWERED:
            count(ints, floats, t, end, weight)
        if judge_all(plan, params, ints, floats, t, end, x, seen, xs, label, weight, scratch):
            return at.GROW_FIRST, end
    n_due = train_all(
        plan,
        params,
        ints,
        floats,
        t,
        end,
        x,
        seen,
        xs,
        label,
        weight,
        serial,
        comes_again,
        scratch,
        vote_buffer,
    )
    if n_due == 0:
        return at.LEARNED, end
    return attempt_all(plan, ints, floats, t, end, x, out), end


@kernel
def line_up(plan, ints, t: int, node: int, last: int) -> int:
    """Append the alternate trees beside the nodes from one up to its root to the queue; return the last.

    last: number of the root of the tree that is last in the queue.
    """
    subtrees = plan[at.PLAN_SUBTREES]
    while True:
        alternate = ints[node + subtrees + at.SUBTREE_ALTERNATE]
        if alternate != 0:
            ints[node_at(ints, t, last) + subtrees + at.SUBTREE_NEXT] = alternate
            last = alternate
        above = ints[node + at.NODE_PARENT]
        if above < 0 or ints[node + subtrees + at.SUBTREE_BESIDE] != 0:
            return last
        node = node_at(ints, t, above)


@kernel
def step(plan, ints, t: int, root: int) -> int:
    """Return the root of the next tree and remove it from the queue; 0: the queue is empty."""
    word = node_at(ints, t, root) + plan[at.PLAN_SUBTREES] + at.SUBTREE_NEXT
    following = ints[word]
    ints[word] = 0
    return following


@kernel
def judge_all(
    plan, params, ints, floats, t: int, end: int, x, seen, xs, label: int, weight: float, scratch
) -> bool:
    """Update the detectors on the paths of a record with the errors; return whether a change is due."""
    root, last, is_due = 0, 0, False
    while True:
        node = end
        if root != 0:
            node = arrive_from(plan, ints, floats, t, node_at(ints, t, root), x, False, 0)
            count_below(plan, ints, floats, t, node, weight)
        last = line_up(plan, ints, t, node, last)
        predicted = predict(plan, params, ints, floats, t, node, seen, xs, scratch)
        is_due |= judge(plan, params, ints, floats, t, node, 0.0 if predicted == label else 1.0)
        root = step(plan, ints, t, root)
        if root == 0:
            return is_due


@kernel
def count_below(plan, ints, floats, t: int, node: int, weight: float) -> None:
    """Count a record at the nodes of its path in an alternate tree."""
    subtrees = plan[at.PLAN_SUBTREES]
    while True:
        floats[node + at.NODE_ROUTED] += weight
        if ints[node + subtrees + at.SUBTREE_BESIDE] != 0:
            return
        node = node_at(ints, t, ints[node + at.NODE_PARENT])


@kernel
def predict(plan, params, ints, floats, t: int, node: int, seen, xs, scratch) -> int:
    """Return the class that the leaf predicts where a record ends."""
    if ints[node + at.NODE_KIND] == at.ABSENT:
        return 0  # MOA: there is no vote
    k = plan[at.PLAN_CLASSES]
    own = part(scratch, behind(plan) + 3 * plan[at.PLAN_ATTRIBUTES], k)
    for c in range(k):
        own[c] = 0.0
    best, _ = trees.votes(
        plan[at.PLAN_LEAF_MODEL],
        PlanRecord(plan, params, 0),
        Words(plan, params, plan[at.PLAN_LEAF_MODEL + 1]),
        Tree(ints, floats, t),
        Node(ints, floats, node),
        Row(seen, xs, -1, 1.0),
        scratch,
        own,
    )
    return best


@kernel
def judge(plan, params, ints, floats, t: int, node: int, error: float) -> bool:
    """Update the detectors from a node up to its root with an error; return whether a change is due there."""
    subtrees, first = plan[at.PLAN_SUBTREES], plan[at.PLAN_SUBTREE_DETECTOR + 1]
    is_due = False
    while True:
        state = node + subtrees
        p = AdwinParameters(plan, params, first)
        has_risen = watch(plan, p, AdwinState(ints, floats, state + at.SUBTREE_DETECTOR), error)
        kind = ints[node + at.NODE_KIND]
        if kind != at.LEAF and kind != at.ABSENT:
            due = STARTS if has_risen else 0
            alternate = ints[state + at.SUBTREE_ALTERNATE]
            if due == 0 and alternate != 0:
                other = node_at(ints, t, alternate) + subtrees
                own = AdwinState(ints, floats, state + at.SUBTREE_DETECTOR)
                due = compare(params, own, AdwinState(ints, floats, other + at.SUBTREE_DETECTOR))
            ints[state + at.SUBTREE_DUE] = due
            is_due |= due != 0
        above = ints[node + at.NODE_PARENT]
        if above < 0 or ints[state + at.SUBTREE_BESIDE] != 0:
            return is_due
        node = node_at(ints, t, above)


@kernel
def watch(plan, p, detector: AdwinState, error: float) -> bool:
    """Update a detector with an error; return whether it has cut its window, and the error has risen.

    MOA compares the means before and after; without the quirk the detector decides.
    """
    width, total = detector.width, detector.total
    level = adwin.update(p, detector, error)
    if plan[at.PLAN_QUIRKS] == 0:
        return level != IN_CONTROL
    if width == 0.0 or detector.width > width:
        return False
    return detector.total / detector.width >= total / width


@kernel
def compare(params, detector: AdwinState, other: AdwinState) -> int:
    """Return the change that is due by the errors in the windows of a node and its alternate tree."""
    width, other_width = detector.width, other.width
    if not min(width, other_width) > params[at.PLAN_SWITCH_RECORDS]:
        return 0
    error = detector.total / width
    other_error = other.total / other_width
    inverse = 1.0 / other_width + 1.0 / width
    bound = math.sqrt(2.0 * error * (1.0 - error) * params[at.PLAN_SWITCH_LOGARITHM] * inverse)
    if bound < error - other_error:
        return TAKES_OVER
    return GOES if bound < other_error - error else 0


@kernel
def train_all(
    plan,
    params,
    ints,
    floats,
    t: int,
    end: int,
    x,
    seen,
    xs,
    label: int,
    weight: float,
    serial: int,
    comes_again: bool,
    scratch,
    vote_buffer,
) -> int:
    """Train the leaves of the tree and of the alternate trees; return how many are due for an attempt.

    An alternate tree that starts with the record, which comes again for it, predicts it, too. Where a tree
    ends at an inner node (MOA: a value is missing) or at an absent branch, nothing learns.
    """
    root, last, n_due, rank = 0, 0, 0, 0
    while True:
        node = end
        if root != 0:
            node = arrive_from(plan, ints, floats, t, node_at(ints, t, root), x, False, 0)
        last = line_up(plan, ints, t, node, last)
        state = node + plan[at.PLAN_SUBTREES]
        detector = AdwinState(ints, floats, state + at.SUBTREE_DETECTOR)
        if comes_again and root != 0 and detector.ticks == 0.0:
            count_below(plan, ints, floats, t, node, weight)
            predicted = predict(plan, params, ints, floats, t, node, seen, xs, scratch)
            judge(plan, params, ints, floats, t, node, 0.0 if predicted == label else 1.0)
        if ints[node + at.NODE_KIND] == at.LEAF:
            mass = times_over(plan, ints, state, serial) * weight
            outcome = trees.train(
                PlanRecord(plan, params, 0),
                Tree(ints, floats, t),
                Node(ints, floats, node),
                Row(seen, xs, label, mass),
                -1,
                Work(scratch, vote_buffer),
            )
            if outcome == at.DECISION_DUE:
                n_due += 1
                ints[state + at.SUBTREE_DUE] = SPLITS + ORDER * (rank if root != 0 else LAST)
        rank += 1
        root = step(plan, ints, t, root)
        if root == 0:
            return n_due


@kernel
def attempt_all(plan, ints, floats, t: int, end: int, x, out) -> int:
    """Attempt to split the leaves that are due; DECISION_DUE: Python has to attempt the remaining splits.

    The attempt of the main tree comes last, so that ``out`` describes its split if there was one.
    """
    subtrees = plan[at.PLAN_SUBTREES]
    root, last = 0, 0
    outcome = at.LEARNED
    while True:
        node = end
        if root != 0:
            node = arrive_from(plan, ints, floats, t, node_at(ints, t, root), x, False, 0)
        last = line_up(plan, ints, t, node, last)
        if root != 0 and outcome != at.DECISION_DUE:
            outcome = attempt(plan, ints, t, node, node + subtrees, out)
        root = step(plan, ints, t, root)
        if root == 0:
            break
    if outcome != at.DECISION_DUE:
        outcome = attempt(plan, ints, t, end, end + subtrees, out)
    return outcome


@kernel
def attempt(plan, ints, t: int, node: int, state: int, out) -> int:
    """Attempt to split a leaf, if it is due."""
    if ints[state + at.SUBTREE_DUE] == 0:
        return at.LEARNED
    ints, floats = words_at(address_of(ints))
    outcome = attempt_here(plan_at(address_of(plan)), Tree(ints, floats, t), Node(ints, floats, node), out)
    if outcome != at.DECISION_DUE:
        ints[state + at.SUBTREE_DUE] = 0
    if outcome == at.GREW:
        begin_anew(plan, ints, t, state)
    return outcome


@kernel
def begin_anew(plan, ints, t: int, state: int) -> None:
    """Write the initial state of the detector of a node that got a test: it is another kind of node now."""
    ints[state + at.SUBTREE_DRAWS] = 0
    end = ints[t + at.TREE_NODE_STRIDE] - plan[at.PLAN_SUBTREES]
    for word in range(at.SUBTREE_DETECTOR, end):
        ints[state + word] = 0
