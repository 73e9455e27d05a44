"""The compiled part of forests, by the interface of learners (core/learners/protocol.py).

Members are trees of the Hoeffding family in one block and read the plan as a single tree does. The words that
they share (classes, values seen) belong to the model. The order is record by record, member by member:

    answer   every member predicts; their shares are added up, weighted by accuracy
    learn    a member's prediction is judged, the member learns the record k times, its detectors see the
             error; then its background tree learns. Splits, warnings and drifts that are due wait in the
             member's record until all members have learned: members do not depend on each other

Python is called once a record for all decisions that are due (core/learners/forest/blocks.py).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from core.drift.adwin import AdwinParameters, AdwinState
from core.drift.adwin import problem as adwin_problem
from core.kernels.jit import kernel, part, row_of, words_at
from core.layout.plan import PlanRecord
from core.layout.tree import Tree
from core.learners.forest import layout as of
from core.learners.forest.committee import (
    COMMITTEE_FIELDS,
    LEAD,
    WEIGHT,
    begin,
    count_vote,
    note_leaf,
    vote_entropy,
)
from core.learners.forest.layout import member_at
from core.learners.forest.member import is_watched, judge, normalise, train, vote, watch, weight_of
from core.learners.forest.resampling import times
from core.learners.hoeffding import kernels as trees
from core.problems import MOST, SOUND, of_plugin
from core.tree import layout as at
from core.tree.byoffset.columns import behind, gather
from core.tree.byoffset.routing import UNCOUNTED, arrive, count, node_at
from core.tree.byoffset.statistics import known_classes

PROBLEMS = (
    *trees.PROBLEMS,
    "a forest at rest has no step to go on with, and no member has anything due",
    "trees made for a member must be from 0 to 2**53, and so must be a tree's number",
    "the weight of a member's right predictions must be from 0 to the weight of all its predictions",
)
AT_REST, MADE, JUDGED = range(len(trees.PROBLEMS) + 1, len(PROBLEMS) + 1)


@kernel
def committee_of(plan, scratch) -> Any:
    """Return the words of scratch for the committee: float64[COMMITTEE_FIELDS + K]."""
    k = plan[at.PLAN_CLASSES]
    return part(scratch, behind(plan) + 3 * plan[at.PLAN_ATTRIBUTES] + k, COMMITTEE_FIELDS + k)


@kernel
def answer(
    plan, params, ints, floats, t: int, place: int, x, xs, weight: float, prepared: int, scratch, shares
) -> tuple[int, int, int]:
    """Let all members vote; the hint shows that their records hold their votes."""
    n, k = of.of(plan, of.OF_MEMBERS), ints[at.MODEL_CLASSES]
    mean = params[plan[at.PLAN_LEARNER + 1]]
    committee = committee_of(plan, scratch)
    is_polled = prepared != at.COUNTS or plan[at.PLAN_COLUMNS] != 0
    if is_polled:
        begin(committee, k)
    own = part(scratch, behind(plan) + 3 * plan[at.PLAN_ATTRIBUTES], plan[at.PLAN_CLASSES])
    frozen = prepared != at.COUNTS
    routed, first = prepared, -1
    for i in range(n):
        record = member_at(plan, t, i)
        tree = t + ints[record + of.TREE]
        node = arrive(plan, ints, floats, tree, x, frozen, routed)
        if node == UNCOUNTED:
            return -1, node, -1
        if frozen and prepared != 0:
            routed += at.WORD * ints[tree + at.TREE_NODES]
        best, hint = vote(plan, params, ints, floats, tree, record, node, x, xs, scratch, own)
        if not frozen:
            count(ints, floats, tree, node, weight)
            ints[record + of.PLACE] = (node - tree - at.TREE_HEADER) // ints[tree + at.TREE_NODE_STRIDE]
            ints[record + of.VOTE], ints[record + of.HINT] = best, hint
        if is_polled:
            count_vote(committee, k, best, own)
            _, lead, labels = trees.uncertainty(
                PlanRecord(plan, params, 0), Tree(ints, floats, tree), node, own, scratch, at.LEAD
            )
            note_leaf(committee, lead, labels, mean)
        if n == 1:
            first = best
        share = 1.0 if n == 1 else weight_of(plan, floats, record)
        for c in range(k):
            shares[c] += share * own[c]
    if n == 1:
        return first, 0, 0
    return normalise(shares, k), 0, 0


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
    """Train all members and background trees with a record.

    A step is a member (even) or its background tree (odd). After GROW_FIRST, the step's tree has to grow for
    the record; the forest keeps the number of the step, and goes on there.
    """
    n = of.of(plan, of.OF_MEMBERS)
    own = part(scratch, behind(plan) + 3 * plan[at.PLAN_ATTRIBUTES], plan[at.PLAN_CLASSES])
    start = max(ints[t + of.NEXT] - 1, 0)
    is_new = place == at.NOT_ANSWERED
    again = start if ints[t + of.NEXT] != 0 else -1  # the step that has counted the record
    ints[t + of.NEXT] = 0
    for step in range(start, 2 * n):
        i = step >> 1
        is_background = step & 1 != 0
        record = step_at(plan, t, step)
        if record < 0 or ints[record + of.TREE] == 0:
            continue
        tree = t + ints[record + of.TREE]
        times_over = times(plan, params, ints, i)
        if is_background and times_over == 0:
            continue
        node, predicted, leaf_hint = (
            node_at(ints, tree, ints[record + of.PLACE]),
            ints[record + of.VOTE],
            ints[record + of.HINT],
        )
        if hint < 0 or is_background:
            node = arrive(plan, ints, floats, tree, x, False, 0)
            if (is_new or is_background) and step != again:
                count(ints, floats, tree, node, weight)
            leaf_hint = -1
            if not is_background:
                predicted, leaf_hint = vote(
                    plan, params, ints, floats, tree, record, node, x, xs, scratch, own
                )
        if times_over > 0:
            mass = times_over * weight
            if is_background and of.of(plan, of.OF_ONCE) != 0:
                mass = weight
            outcome = train(
                plan,
                params,
                ints,
                floats,
                tree,
                record,
                node,
                x,
                xs,
                label,
                mass,
                leaf_hint,
                scratch,
                vote_buffer,
                not is_background,
            )
            if outcome == at.GROW_FIRST:
                ints[t + of.NEXT] = step + 1
                return outcome, 0
        if not is_background:
            judge(floats, record, weight, predicted == label)
            if is_watched(plan, times_over):
                if of.of(plan, of.OF_MOA) != 0:
                    predicted = vote(plan, params, ints, floats, tree, record, node, x, xs, scratch, own)[0]
                watch(plan, params, ints, floats, record, 0.0 if predicted == label else 1.0)
    return outcome_of(plan, ints, floats, t), 0


@kernel
def step_at(plan, t: int, step: int) -> int:
    """Return the record of a step's tree; -1: members have no background trees."""
    n = of.of(plan, of.OF_MEMBERS)
    if step & 1 == 0:
        return member_at(plan, t, step >> 1)
    return member_at(plan, t, (step >> 1) + n) if of.of(plan, of.OF_SLOTS) > n else -1


@kernel
def outcome_of(plan, ints, floats, t: int) -> int:
    """Return whether any decision is due after all members have learned a record."""
    if of.of(plan, of.OF_WORST) != 0:
        name_worst(plan, ints, floats, t)
    is_due = False
    for slot in range(of.of(plan, of.OF_SLOTS)):
        record = member_at(plan, t, slot)
        is_due |= ints[record + of.DUE] != 0 or ints[record + of.ALARM] != of.QUIET
    return at.DECISION_DUE if is_due or is_reviewed(plan, ints, t) else at.LEARNED


@kernel
def is_reviewed(plan, ints, t: int) -> bool:
    """Return whether a forest that is short of memory is reviewed after this record."""
    review = plan[at.PLAN_REVIEW]
    if review == 0 or (ints[at.MODEL_LABELS] + 1) % review != 0:
        return False
    is_short = ints[t + of.RANKED] != 0
    for slot in range(of.of(plan, of.OF_SLOTS)):
        tree = t + ints[member_at(plan, t, slot) + of.TREE]
        is_short |= tree != t and ints[tree + at.TREE_STOPPED] == at.LACKS_ROOM
    return is_short


@kernel
def name_worst(plan, ints, floats, t: int) -> None:
    """Move an alarm of any member to the member with the largest error, the first of equals."""
    worst, largest, is_alarmed = 0, -1.0, False
    drift = of.of(plan, of.OF_DRIFT)
    for i in range(of.of(plan, of.OF_MEMBERS)):
        record = member_at(plan, t, i)
        is_alarmed |= ints[record + of.ALARM] != of.QUIET
        ints[record + of.ALARM] = of.QUIET
        window = AdwinState(ints, floats, record + drift)
        if drift != 0 and window.width > 0.0:
            error = window.total / window.width
            if error > largest:
                worst, largest = i, error
    if is_alarmed:
        ints[member_at(plan, t, worst) + of.ALARM] = of.DRIFTED


@kernel
def uncertainty(
    plan, params, ints, floats, t: int, place: int, shares, scratch, columns: int
) -> tuple[float, float, float]:
    """Return the uncertainty of the committee: the largest weighted share, or a share by vote entropy.

    Vote entropy E of all K classes is mapped to a share between 1 and 1/K as E lies between 0 and 1. Lead and
    labels belong to the leaf of the least certain member, and by votes the lead is at most 1 - E: a forest is
    consistent iff all leaves are. Without lead, the weight is that of all labels that the busiest member has
    predicted.
    """
    weight, largest = 0.0, 0.0
    for i in range(of.of(plan, of.OF_MEMBERS)):
        weight = max(weight, floats[member_at(plan, t, i) + of.SEEN])
    for c in range(ints[at.MODEL_CLASSES]):
        largest = max(largest, shares[c])
    committee, lead, agreement = committee_of(plan, scratch), 0.0, 1.0
    if largest <= 0.0:
        largest, agreement = 0.5, 0.0
    elif of.of(plan, of.OF_ENTROPY) != 0:
        known = known_classes(ints)
        agreement = 1.0 - vote_entropy(committee, ints[at.MODEL_CLASSES], known)
        largest = 1.0 - (1.0 - agreement) * (1.0 - 1.0 / known)
    if columns & at.LEAD != 0:
        lead, weight = min(committee[LEAD], agreement), committee[WEIGHT]
    return largest, lead, weight


@kernel
def block_problem(plan, params, ints, floats, t: int, blank_address: int) -> int:
    """Return a problem of a foreign forest: of its records, their detectors, or a tree."""
    if ints[t + of.NEXT] != 0:
        return AT_REST
    for slot in range(of.of(plan, of.OF_SLOTS)):
        record = member_at(plan, t, slot)
        if ints[record + of.DUE] != 0 or ints[record + of.ALARM] != of.QUIET:
            return AT_REST
        if not (0 <= ints[record + of.SERIAL] <= MOST and 0 <= ints[record + of.MADE] <= MOST):
            return MADE
        if not 0.0 <= floats[record + of.RIGHT] <= floats[record + of.SEEN] < math.inf:
            return JUDGED
        for word, state in (
            (at.PLAN_NODE_DETECTOR, of.of(plan, of.OF_DRIFT)),
            (at.PLAN_WARNING_DETECTOR, of.of(plan, of.OF_WARNING)),
        ):
            if state != 0:
                p = AdwinParameters(plan, params, plan[word + 1])
                found = adwin_problem(p, AdwinState(ints, floats, record + state))
                if found != SOUND:
                    return of_plugin(word, found)
        if ints[record + of.TREE] != 0:
            tree = Tree(ints, floats, t + ints[record + of.TREE])
            found = trees.block_problem(PlanRecord(plan, params, 0), tree, blank_address)
            if found != SOUND:
                return found
    return SOUND


@kernel("int64(int64, int64, int64, int64, float64[:, ::1], float64[:, ::1], int64[::1])", alone=True)
def poll(plan_address: int, address: int, t: int, routed: int, x, workspace, votes) -> int:
    """Write the class that each member of the forest at word t predicts; return the forest's.

    routed: address of the array of ForestLayout.prepare; x: float64[1, d]; workspace: the run's; votes:
    int64[member], -1 for a member that has seen nothing.
    """
    plan, params = words_at(plan_address)
    ints, floats = words_at(address)
    record, scratch = row_of(x, 0), row_of(workspace, 0)
    xs = gather(plan, record, row_of(workspace, 1))
    own = part(scratch, behind(plan) + 3 * plan[at.PLAN_ATTRIBUTES], plan[at.PLAN_CLASSES])
    shares, k = row_of(workspace, 2), ints[at.MODEL_CLASSES]
    for c in range(k):
        shares[c] = 0.0
    first: Any = np.int64(-1)
    for i in range(len(votes)):
        member = member_at(plan, t, i)
        tree = t + ints[member + of.TREE]
        node = arrive(plan, ints, floats, tree, record, True, routed)
        routed += at.WORD * ints[tree + at.TREE_NODES]
        first = vote(plan, params, ints, floats, tree, member, node, record, xs, scratch, own)[0]
        share, total = weight_of(plan, floats, member), 0.0
        for c in range(k):
            shares[c] += share * own[c]
            total += own[c]
        votes[i] = first if total > 0.0 else -1
    return first if len(votes) == 1 else normalise(shares, k)
