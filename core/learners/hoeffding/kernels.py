"""The compiled part of the Hoeffding family, by the interface of learners (core/learners/protocol.py).

A block is a tree, and the place of a record is the first word of the node record where it ends. All learners
of the family share this module: the plan holds their differences.
"""

from __future__ import annotations

from core.kernels.jit import address_of, kernel
from core.kernels.records import Words
from core.layout.learning import Row, Work
from core.layout.plan import PlanRecord
from core.layout.tree import Leaf, Node, Tree
from core.leaf_models import base as leaf_models
from core.learners.hoeffding import soundness
from core.learners.hoeffding.reevaluation import is_revisited
from core.learners.hoeffding.schedules import base as schedules
from core.learners.hoeffding.split_attempt import attempt_here
from core.observers import base as observers
from core.tree import layout as at
from core.tree.byoffset import prefetch
from core.tree.byoffset.routing import UNCOUNTED, arrive, count, leaf_at, node_at
from core.tree.byoffset.statistics import (
    add_weight,
    all_weight,
    count_label,
    is_active,
    largest_share,
    two_largest,
)

votes, account = leaf_models.dispatcher()
update_numeric = observers.numeric_dispatcher()[0]
update_nominal = observers.nominal_dispatcher()[0]
observe = schedules.dispatcher()[0]

PROBLEMS = soundness.PROBLEMS
block_problem = soundness.block_problem


@kernel
def route_ahead(plan, ints, floats, t: int, xs, d: int, ends) -> bool:
    """Write where several records end, routed together (core/tree/prefetch.py), unless there is one leaf."""
    if ints[t + at.TREE_NODES] <= 1:
        return False
    prefetch.route_ahead(plan[at.PLAN_ROUTE_AHEAD], ints, floats, t, xs, d, ends)
    return True


@kernel
def answer(
    plan, params, ints, floats, t: int, place: int, x, xs, weight: float, prepared: int, scratch, shares
) -> tuple[int, int, int]:
    """Route a record, count it unless the model is frozen, and return the leaf's vote."""
    node = place
    if node < 0:
        node = arrive(plan, ints, floats, t, x, prepared != at.COUNTS, prepared)
        if node == UNCOUNTED:
            return -1, node, -1
    if prepared == at.COUNTS:
        count(ints, floats, t, node, weight)
    best, leaf_hint = votes(
        plan[at.PLAN_LEAF_MODEL],
        PlanRecord(plan, params, 0),
        Words(plan, params, plan[at.PLAN_LEAF_MODEL + 1]),
        Tree(ints, floats, t),
        Node(ints, floats, node),
        Row(x, xs, -1, weight),
        scratch,
        shares,
    )
    return best, node, leaf_hint


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
    leaf_hint: int,
    scratch,
    vote_buffer,
) -> tuple[int, int]:
    """Train the tree with a record; a due attempt is made here, as far as compiled code can make it.

    A split of the tree that answers is described in ``vote_buffer``; splits of further trees are no events.
    """
    node = place
    if node < 0:
        node = arrive(plan, ints, floats, t, x, False, 0)
        if place == at.NOT_ANSWERED:
            count(ints, floats, t, node, weight)
    outcome = train(
        plan, params, ints, floats, t, node, x, xs, label, weight, leaf_hint, scratch, vote_buffer
    )
    if outcome == at.DECISION_DUE:
        outcome = attempt_here(address_of(plan), address_of(ints), t, node, vote_buffer)
        if outcome == at.GREW and t != ints[at.MODEL_FIRST]:
            outcome = at.LEARNED
    return outcome, node


@kernel
def train(
    plan,
    params,
    ints,
    floats,
    t: int,
    node: int,
    x,
    xs,
    label: int,
    weight: float,
    leaf_hint: int,
    scratch,
    vote_buffer,
) -> int:
    """Train the tree at word t with a record that ends at a node; GROW_FIRST: at an absent branch.

    Where splits are revised every node of the path learns, and one of the nodes may be due. Otherwise an
    inner node (MOA: a value is missing) learns nothing.
    """
    kind = ints[node + at.NODE_KIND]
    revises = plan[at.PLAN_REVISION] != 0
    if kind == at.ABSENT or (kind != at.LEAF and not revises):
        return at.GROW_FIRST if kind == at.ABSENT else at.LEARNED
    if kind == at.LEAF and ints[node + at.NODE_SLOT] < 0:
        return count_alone(ints, floats, t, node, label, weight)
    if kind == at.LEAF:
        account(
            plan[at.PLAN_LEAF_MODEL],
            PlanRecord(plan, params, 0),
            Words(plan, params, plan[at.PLAN_LEAF_MODEL + 1]),
            Tree(ints, floats, t),
            Node(ints, floats, node),
            Row(x, xs, label, weight),
            leaf_hint,
            Work(scratch, vote_buffer),
        )
    ints[t + at.TREE_LABELS] += 1
    due = False
    while True:
        leaf = leaf_at(ints, t, ints[node + at.NODE_SLOT])
        reach = ints[node + at.NODE_REACH]
        count_label(ints, floats, node, leaf, label, weight, ints[t + at.TREE_LABELS])
        if plan[at.PLAN_NUMERIC] > 0:
            statistics = leaf + at.LEAF_FIELDS + plan[at.PLAN_CLASSES]
            observer = plan[at.PLAN_NUMERIC_OBSERVER]
            if not update_numeric(
                observer,
                PlanRecord(plan, params, 0),
                Words(plan, params, plan[at.PLAN_NUMERIC_OBSERVER + 1]),
                Words(ints, floats, statistics),
                label,
                xs,
                weight,
            ):
                floats[leaf + at.LEAF_LEFT_OUT] += weight
        if plan[at.PLAN_NOMINAL] > 0:
            statistics = leaf + ints[t + at.TREE_NOMINAL_AT]
            update_nominal(
                plan[at.PLAN_NOMINAL_OBSERVER],
                PlanRecord(plan, params, 0),
                Words(plan, params, plan[at.PLAN_NOMINAL_OBSERVER + 1]),
                Words(ints, floats, statistics),
                label,
                x,
                weight,
            )
        if ints[node + at.NODE_KIND] == at.LEAF or plan[at.PLAN_WATCHES] != 0:
            schedule = plan[at.PLAN_SCHEDULE]
            if observe(
                schedule,
                PlanRecord(plan, params, 0),
                Words(plan, params, plan[at.PLAN_SCHEDULE + 1]),
                Tree(ints, floats, t),
                Node(ints, floats, node),
                Leaf(ints, floats, leaf),
                Row(x, xs, label, weight),
            ):
                due = True
                if revises:
                    floats[leaf + plan[at.PLAN_REVISION] + at.REVISION_DUE] = 1.0
        else:
            ints[node + at.NODE_REACH] = reach  # MOA's range is the range at the node's beginning
            due |= is_revisited(plan, params, ints, floats, t, node)
        if not revises or ints[node + at.NODE_PARENT] < 0:
            return at.DECISION_DUE if due else at.LEARNED
        node = node_at(ints, t, ints[node + at.NODE_PARENT])


@kernel
def count_alone(ints, floats, t: int, node: int, label: int, weight: float) -> int:
    """Count a label at an inactive leaf, which counts classes only and is never due."""
    ints[t + at.TREE_LABELS] += 1
    if ints[node + at.NODE_REACH] <= label:
        ints[node + at.NODE_REACH] = label + 1
    add_weight(floats, node + at.NODE_FIELDS + label, weight, ints[t + at.TREE_LABELS])
    return at.LEARNED


@kernel
def uncertainty(
    plan, params, ints, floats, t: int, place: int, shares, scratch, columns: int
) -> tuple[float, float, float]:
    """Return share, lead and weight by the leaf's class counts.

    The share uses all class masses of the leaf; lead and weight use its observations only. At an inner node,
    where MOA ends records that miss a value, nothing is learned: the weight is -1. In an inactive leaf both
    counts are the same.
    """
    share, lead, n = 0.5, 0.0, 0.0
    if columns & at.SHARE != 0:
        share = largest_share(ints, floats, place)
    if columns & (at.LEAD | at.WEIGHT) != 0:
        n = -1.0
        if ints[place + at.NODE_KIND] == at.LEAF:
            counts = place + at.NODE_FIELDS
            if is_active(ints, place):
                leaf = leaf_at(ints, t, ints[place + at.NODE_SLOT])
                n, counts = floats[leaf + at.LEAF_OBSERVED], leaf + at.LEAF_FIELDS
            else:
                n = all_weight(ints, floats, place)
            if columns & at.LEAD != 0 and n > 0.0:
                largest, second = two_largest(ints, floats, counts)
                lead = (largest - second) / n
    return share, lead, n
