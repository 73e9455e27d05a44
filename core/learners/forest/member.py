"""Member: one tree of a forest votes, learns, is evaluated and watched, in compiled code.

No kernel here reads or writes another member's words: the effect of a record on a member depends on the
record, on the number of labels that the model has learned, and on the member.
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

from core.drift import adwin
from core.drift.adwin import AdwinParameters
from core.drift.base import DRIFT
from core.kernels.jit import called, kernel, part
from core.layout.learning import DECISION_DUE, GREW, LEARNED, Row, Work
from core.layout.plan import PlanRecord
from core.learners.forest.layout import (
    DRIFTED,
    QUIET,
    SPLIT_MADE,
    WARNED,
    ForestBlock,
    Member,
    forest_plan,
)
from core.learners.forest.resampling import seen_by
from core.learners.hat.kernels import learn_tree
from core.learners.hoeffding import kernels as trees
from core.learners.hoeffding.plain_split import SPLIT_WORDS
from core.learners.hoeffding.split_attempt import attempt_here
from core.tree.columns import unused_scratch
from core.tree.routing import arrive

LEAST_WEIGHT: Final = 1e-9
"""Weight of the vote of a boosted member that is not better than chance: it counts only beside its equals."""


class Arrival(NamedTuple):
    """The node where a record ends in a tree of a forest."""

    member: Any
    """The member record that the tree belongs to."""
    tree: Any
    node: Any


@kernel
def arrive_in(plan: PlanRecord, forest: ForestBlock, member: Member, x, frozen: bool, routed: int) -> Arrival:
    """Return where x (float64[d]) ends in a member's tree (core/tree/routing.py:arrive)."""
    tree = forest.tree(member)
    return Arrival(member, tree, arrive(plan, tree, x, frozen, routed))


@kernel
def member_shares(plan: PlanRecord, scratch) -> Any:
    """Return the words of scratch for the class shares of one member: float64[K]."""
    return part(scratch, unused_scratch(plan) + 3 * plan.attributes, plan.classes)


@kernel
def seen_at(plan: PlanRecord, arrival: Arrival, row: Row, scratch) -> Row:
    """Return a record as the leaf where it arrives sees it."""
    forests = forest_plan(plan)
    x, xs = row.x, row.xs
    if forests.attributes > 0:
        number = 0 if forests.subspaces != 0 else arrival.tree.number(arrival.node)
        spare = part(scratch, unused_scratch(plan), 3 * plan.attributes)
        x, xs = seen_by(plan, arrival.member.serial, number, row.x, spare)
    return Row(x, xs, row.label, row.weight)


@kernel
def vote(plan: PlanRecord, arrival: Arrival, row: Row, scratch, shares) -> tuple[int, int]:
    """Write the votes of the leaf where a record arrives to shares: float64[class]."""
    return vote_seen(plan, arrival, seen_at(plan, arrival, row, scratch), scratch, shares)


@called
def vote_seen(plan: PlanRecord, arrival: Arrival, seen: Row, scratch, shares) -> tuple[int, int]:
    """Write the votes of the leaf, for a record as ``seen_at`` returned it."""
    for c in range(arrival.tree.model.classes):
        shares[c] = 0.0
    return trees.vote(plan, arrival.tree, arrival.node, seen, scratch, shares)


@kernel
def train(plan: PlanRecord, arrival: Arrival, row: Row, hint: int, work: Work, is_reported: bool) -> int:
    """Train a tree with a record that arrives at a node; note the node if a decision is due.

    A split that is made here is described in the member record if ``is_reported``.
    """
    seen = seen_at(plan, arrival, row, work.scratch)
    return train_seen(plan, arrival, row.x, seen, hint, work, is_reported)


@called
def train_seen(
    plan: PlanRecord, arrival: Arrival, x, seen: Row, hint: int, work: Work, is_reported: bool
) -> int:
    """Train the tree with a record (x), as ``seen_at`` returned it."""
    member, tree, node = arrival
    out = work.votes  # for a background tree, whose splits are no events
    if is_reported:
        out = split_words(plan, member)
    if plan.subtrees != 0:
        outcome, _ = learn_tree(plan, tree, node.start, x, seen, hint, member.serial, work, out)
    else:
        outcome = trees.train(plan, tree, node, seen, hint, work)
        if outcome == DECISION_DUE:
            outcome = attempt_here(plan, tree, node, out)
    if outcome == GREW:
        member.due = SPLIT_MADE if is_reported else 0
    elif outcome != LEARNED:
        member.due = node.start - tree.start
    return outcome


@kernel
def split_words(plan: PlanRecord, member: Member) -> Any:
    """Return the words of a member record that describe a split: float64[SPLIT_WORDS + class]."""
    return part(member.floats, member.start + forest_plan(plan).event, SPLIT_WORDS + plan.classes)


@kernel
def weight_of(plan: PlanRecord, member: Member) -> float:
    """Return the weight of a member's vote: its accuracy since it took its place, or 1 while that is 0.

    A boosted member has the logarithm of its odds, and nearly none if it is not better than chance. For MOA
    it has none then, and none before its first error.
    """
    forests = forest_plan(plan)
    if forests.boosted != 0:
        state = member.boosted(forests.boosted)
        right, wrong = state.right, state.wrong
        if forests.moa != 0:
            error = wrong / (right + wrong) if right + wrong > 0.0 else 0.0
            return math.log(1.0 / (error / (1.0 - error))) if 0.0 < error <= 0.5 else 0.0
        return max(math.log((right + 0.5) / (wrong + 0.5)), LEAST_WEIGHT)
    if forests.weighted == 0 or member.right <= 0.0:
        return 1.0
    return member.right / member.seen


@kernel
def normalise(shares, k: int) -> int:
    """Divide shares by their sum, if it is not 0; return the class of the largest, -1 without classes."""
    total, best = 0.0, -1
    for c in range(k):
        total += shares[c]
        if best < 0 or shares[c] > shares[best]:
            best = c
    if total > 0.0:
        for c in range(k):
            shares[c] /= total
    return best


@kernel
def is_watched(plan: PlanRecord, times_over: int) -> bool:
    """Return whether detectors see the error; MOA's see it only for records which the member has learned."""
    forests = forest_plan(plan)
    return times_over > 0 or forests.moa == 0 or forests.worst != 0


@kernel
def judge(member: Member, weight: float, is_right: bool) -> None:
    """Count a right or wrong prediction of a member."""
    member.seen += weight
    if is_right:
        member.right += weight


@kernel
def watch(plan: PlanRecord, member: Member, error: float) -> None:
    """Update a member's detectors with an error, and note their alarm. A drift outweighs a warning."""
    forests = forest_plan(plan)
    alarm = QUIET
    if forests.warning != 0:
        p = AdwinParameters(plan.ints, plan.floats, plan.warning_detector_at)
        if adwin.update(p, member.window(forests.warning), error) == DRIFT:
            alarm = WARNED
    if forests.drift != 0:
        p = AdwinParameters(plan.ints, plan.floats, plan.node_detector_at)
        if adwin.update(p, member.window(forests.drift), error) == DRIFT:
            alarm = DRIFTED
    member.alarm = alarm


@kernel
def error_rate(plan: PlanRecord, member: Member) -> float:
    """Return the error rate in the window of a member's drift detector; -1: it is not known."""
    drift = forest_plan(plan).drift
    window = member.window(drift)
    if drift != 0 and window.width > 0.0:
        return window.total / window.width
    return -1.0
