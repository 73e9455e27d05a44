"""Boosting: members learn a record one after the other, each by the answers of the members before it.

The record has the weight 1 for the first member. A member learns it, and then votes for it. The weight for
the next member is multiplied by N / (2 right) or N / (2 wrong), as the vote is right or wrong, where N is the
weight of all records and right and wrong are the member's sums of its weights: both kinds have half of the
weight of all records for the next member (Oza and Russell 2001).

A member votes after the split that the record leads to. So where a split needs Python, the record waits at
the member and comes again after the split (``ForestBlock.next`` is below 0 then).
"""

from __future__ import annotations

import math
from typing import Final

from core.kernels.jit import kernel
from core.layout.learning import DECISION_DUE, GROW_FIRST, LEARNED, NOT_ANSWERED, Row, Work
from core.layout.plan import PlanRecord
from core.learners.forest.layout import Boosted, ForestBlock, forest_plan, mean_repeats
from core.learners.forest.member import Arrival, arrive_in, judge, member_shares, train, vote
from core.numeric import rng
from core.tree.routing import count

MOST_DRAWN: Final = 100.0
"""Largest mean of a Poisson variate: beyond it, the variate differs from its mean by less than a tenth."""
LARGEST: Final = 2.0**53
"""Largest weight of a record for a member."""


@kernel
def learn_boosted(plan: PlanRecord, forest: ForestBlock, place: int, row: Row, hint: int, work: Work) -> int:
    """Train all members with a record, in turn; return LEARNED, or GROW_FIRST if it has to come again."""
    step, is_trained = abs(forest.next) - 1, forest.next < 0
    forest.next = 0
    leaf_shares = member_shares(plan, work.scratch)
    if step < 0:
        forest.member(plan, 0).boosted(forest_plan(plan).boosted).weight = 1.0
    for i in range(max(step >> 1, 0), forest_plan(plan).members):
        member = forest.member(plan, i)
        tree, state = forest.tree(member), member.boosted(forest_plan(plan).boosted)
        arrival, leaf_hint = Arrival(member, tree, tree.node(member.place)), member.hint
        if hint < 0 or is_trained:
            arrival, leaf_hint = arrive_in(plan, forest, member, row.x, False, 0), -1
            if place == NOT_ANSWERED and step != 2 * i:
                count(tree, arrival.node, row.weight)
        repeats = repeats_of(plan, forest, i)
        if repeats > 0.0 and not is_trained:
            repeated = Row(row.x, row.xs, row.label, repeats * row.weight)
            outcome = train(plan, arrival, repeated, leaf_hint, work, True)
            if outcome == GROW_FIRST:
                forest.next = 2 * i + 1
                return GROW_FIRST
            if outcome == DECISION_DUE:
                forest.next = -(2 * i + 1)
                return GROW_FIRST
            if outcome != LEARNED or plan.subtrees != 0:
                arrival = arrive_in(plan, forest, member, row.x, False, 0)
        is_trained = False
        predicted, _ = vote(plan, arrival, row, work.scratch, leaf_shares)
        judge(member, row.weight, predicted == row.label)
        following = weight_for_next(plan, forest, state, row.weight, predicted == row.label)
        if i + 1 < forest_plan(plan).members:
            forest.member(plan, i + 1).boosted(forest_plan(plan).boosted).weight = following
    return LEARNED


@kernel
def repeats_of(plan: PlanRecord, forest: ForestBlock, i: int) -> float:
    """Return how often member i learns the record; with a mean of 0, its weight for the member."""
    weight = forest.member(plan, i).boosted(forest_plan(plan).boosted).weight
    mean = weight * mean_repeats(plan)
    if mean_repeats(plan) == 0.0:
        return weight
    if mean > MOST_DRAWN:
        return math.floor(mean + 0.5)
    return float(rng.poisson(plan.bagging_key, (forest.model.labels << rng.DRAW_BITS) + i, mean))


@kernel
def weight_for_next(
    plan: PlanRecord, forest: ForestBlock, state: Boosted, weight: float, is_right: bool
) -> float:
    """Add the record to the sums of a member; return its weight for the next member."""
    if is_right:
        state.right += state.weight * weight
    else:
        state.wrong += state.weight * weight
    first = forest.member(plan, 0).boosted(forest_plan(plan).boosted)
    kind = state.right if is_right else state.wrong
    if kind <= 0.0:
        return state.weight
    return min(state.weight * ((first.right + first.wrong) / (2.0 * kind)), LARGEST)
