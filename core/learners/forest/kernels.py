"""The compiled part of forests, by the interface of learners (core/learners/protocol.py).

Members are trees of the Hoeffding family in one block and read the plan as a single tree does. The words that
they share (classes, values seen) belong to the model. The order is record by record, member by member:

    answer   every member predicts; their shares are added up, weighted by accuracy
    learn    a member's prediction is judged, the member learns the record k times, its detectors see the
             error; then its background tree learns. Splits, warnings and drifts that are due wait in the
             member's record until all members have learned: members do not depend on each other, unless they
             are boosted (core/learners/forest/boosting.py)

Python is called once a record for all decisions that are due (core/learners/forest/blocks.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from core.drift.adwin import AdwinParameters
from core.drift.adwin import problem as adwin_problem
from core.kernels.jit import kernel, part, row_of
from core.kernels.records import offset
from core.layout.learning import (
    COUNTS,
    DECISION_DUE,
    GROW_FIRST,
    LEAD,
    LEARNED,
    NO_CLASS,
    NOT_ANSWERED,
    VOTES,
    Row,
    Work,
)
from core.layout.model import WORD
from core.layout.plan import PlanRecord
from core.layout.tree import LACKS_ROOM
from core.learners.forest import committee as committees
from core.learners.forest.boosting import learn_boosted
from core.learners.forest.committee import COMMITTEE_FIELDS, begin, count_vote, note_leaf, vote_entropy
from core.learners.forest.layout import (
    DRIFTED,
    QUIET,
    Boosted,
    ForestBlock,
    Member,
    forest_plan,
    mean_repeats,
)
from core.learners.forest.member import (
    Arrival,
    arrive_in,
    error_rate,
    is_watched,
    judge,
    member_shares,
    normalise,
    train,
    vote,
    watch,
    weight_of,
)
from core.learners.forest.resampling import times
from core.learners.hoeffding import kernels as trees
from core.problems import SOUND, of_plugin, range_problem, range_rules
from core.tree.columns import gather, unused_scratch
from core.tree.routing import UNCOUNTED, count
from core.tree.statistics import known_classes

_FOREST_RULES = (*trees.PROBLEMS, *range_rules(ForestBlock))
_MEMBER_RULES = (*_FOREST_RULES, *range_rules(Member))
PROBLEMS = (*_MEMBER_RULES, *range_rules(Boosted))

forest_ranges = range_problem(ForestBlock, len(trees.PROBLEMS))
member_ranges = range_problem(Member, len(_FOREST_RULES))
boosted_ranges = range_problem(Boosted, len(_MEMBER_RULES))

NODE_DETECTOR = offset(PlanRecord, "node_detector")
WARNING_DETECTOR = offset(PlanRecord, "warning_detector")


@kernel
def committee_of(plan: PlanRecord, scratch) -> Any:
    """Return the words of scratch for the committee: float64[COMMITTEE_FIELDS + K]."""
    first = unused_scratch(plan) + 3 * plan.attributes + plan.classes
    return part(scratch, first, COMMITTEE_FIELDS + plan.classes)


@kernel
def answer(
    plan: PlanRecord, forest: ForestBlock, place: int, row: Row, prepared: int, scratch, shares
) -> tuple[int, int, int]:
    """Let all members vote; the hint shows that their records hold their votes."""
    n, k = forest_plan(plan).members, forest.model.classes
    committee = committee_of(plan, scratch)
    is_polled = prepared != COUNTS or plan.columns != 0
    if is_polled:
        begin(committee, k)
    leaf_shares = member_shares(plan, scratch)
    frozen = prepared != COUNTS
    routed, first, is_silent = prepared, -1, False
    for i in range(n):
        member = forest.member(plan, i)
        arrival = arrive_in(plan, forest, member, row.x, frozen, routed)
        tree, node = arrival.tree, arrival.node
        if node.start == UNCOUNTED:
            return NO_CLASS, UNCOUNTED, -1
        if frozen and prepared != 0:
            routed += WORD * tree.nodes
        best, hint = vote(plan, arrival, row, scratch, leaf_shares)
        if not frozen:
            count(tree, node, row.weight)
            member.place, member.vote, member.hint = tree.number(node), best, hint
        if is_polled:
            count_vote(committee, k, best, leaf_shares)
            _, lead, labels = trees.uncertainty(plan, tree, node.start, leaf_shares, scratch, LEAD)
            note_leaf(committee, lead, labels, mean_repeats(plan))
        if n == 1:
            first = best
        share = 1.0 if n == 1 else weight_of(plan, member)
        is_silent |= share <= 0.0  # MOA: members after one without weight do not vote
        for c in range(k):
            shares[c] += 0.0 if is_silent else share * leaf_shares[c]
    if n == 1:
        return first, 0, 0
    return normalise(shares, k), 0, 0


@kernel
def learn(
    plan: PlanRecord, forest: ForestBlock, place: int, row: Row, hint: int, work: Work
) -> tuple[int, int]:
    """Train all members and background trees with a record.

    A step is a member (even) or its background tree (odd). After GROW_FIRST, the step's tree has to grow for
    the record; the forest keeps the number of the step, and goes on there.
    """
    forests = forest_plan(plan)
    if forests.boosted != 0:
        outcome = learn_boosted(plan, forest, place, row, hint, work)
        return outcome_of(plan, forest) if outcome == LEARNED else outcome, 0
    leaf_shares = member_shares(plan, work.scratch)
    start = max(forest.next - 1, 0)
    is_new = place == NOT_ANSWERED
    again = start if forest.next != 0 else -1  # the step that has counted the record
    forest.next = 0
    for step in range(start, 2 * forests.members):
        is_background = step & 1 != 0
        slot = slot_of(plan, step)
        if slot < 0 or forest.member(plan, slot).tree == 0:
            continue
        times_over = times(plan, forest.model, step >> 1)
        if is_background and times_over == 0:
            continue
        member = forest.member(plan, slot)
        tree = forest.tree(member)
        arrival = Arrival(member, tree, tree.node(member.place))
        predicted, leaf_hint = member.vote, member.hint
        if hint < 0 or is_background:
            arrival = arrive_in(plan, forest, member, row.x, False, 0)
            if (is_new or is_background) and step != again:
                count(tree, arrival.node, row.weight)
            leaf_hint = -1
            if not is_background:
                predicted, leaf_hint = vote(plan, arrival, row, work.scratch, leaf_shares)
        if times_over > 0:
            mass = times_over * row.weight
            if is_background and forests.once != 0:
                mass = row.weight
            repeated = Row(row.x, row.xs, row.label, mass)
            outcome = train(plan, arrival, repeated, leaf_hint, work, not is_background)
            if outcome == GROW_FIRST:
                forest.next = step + 1
                return outcome, 0
        if not is_background:
            judge(member, row.weight, predicted == row.label)
            if is_watched(plan, times_over):
                if forests.moa != 0:
                    predicted, _ = vote(plan, arrival, row, work.scratch, leaf_shares)
                watch(plan, member, 0.0 if predicted == row.label else 1.0)
    return outcome_of(plan, forest), 0


@kernel
def slot_of(plan: PlanRecord, step: int) -> int:
    """Return the slot of a step's tree; -1: members have no background trees."""
    forests = forest_plan(plan)
    if step & 1 == 0:
        return step >> 1
    return (step >> 1) + forests.members if forests.slots > forests.members else -1


@kernel
def outcome_of(plan: PlanRecord, forest: ForestBlock) -> int:
    """Return whether any decision is due after all members have learned a record."""
    if forest_plan(plan).worst != 0:
        name_worst(plan, forest)
    is_due = False
    for slot in range(forest_plan(plan).slots):
        member = forest.member(plan, slot)
        is_due |= member.due != 0 or member.alarm != QUIET
    return DECISION_DUE if is_due or is_reviewed(plan, forest) else LEARNED


@kernel
def is_reviewed(plan: PlanRecord, forest: ForestBlock) -> bool:
    """Return whether a forest that is short of memory is reviewed after this record."""
    if plan.review == 0 or (forest.model.labels + 1) % plan.review != 0:
        return False
    is_short = forest.ranked != 0
    for slot in range(forest_plan(plan).slots):
        member = forest.member(plan, slot)
        is_short |= member.tree != 0 and forest.tree(member).stopped == LACKS_ROOM
    return is_short


@kernel
def name_worst(plan: PlanRecord, forest: ForestBlock) -> None:
    """Move an alarm of any member to the member with the largest error, the first of equals."""
    worst, largest, is_alarmed = 0, -1.0, False
    for i in range(forest_plan(plan).members):
        member = forest.member(plan, i)
        is_alarmed |= member.alarm != QUIET
        member.alarm = QUIET
        error = error_rate(plan, member)
        if error > largest:
            worst, largest = i, error
    if is_alarmed:
        forest.member(plan, worst).alarm = DRIFTED


@kernel
def uncertainty(
    plan: PlanRecord, forest: ForestBlock, place: int, shares, scratch, columns: int
) -> tuple[float, float, float]:
    """Return the uncertainty of the committee: the largest weighted share, or a share by vote entropy.

    Vote entropy E of all K classes is mapped to a share between 1 and 1/K as E lies between 0 and 1. Lead and
    labels belong to the leaf of the least certain member, and by votes the lead is at most 1 - E: a forest is
    consistent iff all leaves are. Without lead, the weight is that of all labels that the busiest member has
    predicted.
    """
    forests, model = forest_plan(plan), forest.model
    weight, largest = 0.0, 0.0
    for i in range(forests.members):
        weight = max(weight, forest.member(plan, i).seen)
    for c in range(model.classes):
        largest = max(largest, shares[c])
    committee, lead, agreement = committee_of(plan, scratch), 0.0, 1.0
    if largest <= 0.0:
        largest, agreement = 0.5, 0.0
    elif forests.entropy != 0 or columns & VOTES != 0:
        n_classes = known_classes(model)
        agreement = 1.0 - vote_entropy(committee, model.classes, n_classes)
        largest = 1.0 - (1.0 - agreement) * (1.0 - 1.0 / n_classes)
    if columns & LEAD != 0:
        lead, weight = min(committee[committees.LEAD], agreement), committee[committees.WEIGHT]
    return largest, lead, weight


@kernel
def block_problem(plan: PlanRecord, forest: ForestBlock, blank_address: int) -> int:
    """Return a problem of a foreign forest: of its records, their detectors, or a tree."""
    problem = forest_ranges(forest)
    if problem != SOUND:
        return problem
    for slot in range(forest_plan(plan).slots):
        member = forest.member(plan, slot)
        problem = member_ranges(member)
        if problem == SOUND:
            problem = detectors_problem(plan, member)
        if problem == SOUND and forest_plan(plan).boosted != 0:
            problem = boosted_ranges(member.boosted(forest_plan(plan).boosted))
        if problem == SOUND and member.tree != 0:
            problem = trees.block_problem(plan, forest.tree(member), blank_address)
        if problem != SOUND:
            return problem
    return SOUND


@kernel
def detectors_problem(plan: PlanRecord, member: Member) -> int:
    """Return a problem of the states of a member's detectors."""
    forests, problem = forest_plan(plan), SOUND
    if forests.drift != 0:
        p = AdwinParameters(plan.ints, plan.floats, plan.node_detector_at)
        problem = of_plugin(NODE_DETECTOR, adwin_problem(p, member.window(forests.drift)))
    if problem == SOUND and forests.warning != 0:
        p = AdwinParameters(plan.ints, plan.floats, plan.warning_detector_at)
        problem = of_plugin(WARNING_DETECTOR, adwin_problem(p, member.window(forests.warning)))
    return problem


@kernel(
    "int64(PlanRecord, ForestBlock, int64, float64[:, ::1], float64[:, ::1], int64[::1])",
    alone=True,
)
def poll(plan: PlanRecord, forest: ForestBlock, routed: int, x, workspace, votes) -> int:
    """Write the class that each member of a forest predicts; return the forest's.

    routed: address of the array of ForestLayout.prepare; x: float64[1, d]; workspace: the run's; votes:
    int64[member], -1 for a member that has seen nothing.
    """
    record, scratch = row_of(x, 0), row_of(workspace, 0)
    row = Row(record, gather(plan, record, row_of(workspace, 1)), -1, 1.0)
    leaf_shares = member_shares(plan, scratch)
    shares, k = row_of(workspace, 2), forest.model.classes
    for c in range(k):
        shares[c] = 0.0
    best: Any = np.int64(-1)
    is_silent = False
    for i in range(len(votes)):
        member = forest.member(plan, i)
        arrival = arrive_in(plan, forest, member, record, True, routed)
        routed += WORD * arrival.tree.nodes
        best, _ = vote(plan, arrival, row, scratch, leaf_shares)
        share, total = weight_of(plan, member), 0.0
        is_silent |= share <= 0.0
        for c in range(k):
            shares[c] += 0.0 if is_silent else share * leaf_shares[c]
            total += leaf_shares[c]
        votes[i] = best if total > 0.0 else NO_CLASS
    return best if len(votes) == 1 else normalise(shares, k)
