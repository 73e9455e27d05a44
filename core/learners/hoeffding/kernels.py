"""The compiled part of the Hoeffding family, by the interface of learners (core/learners/protocol.py).

A block is a tree, and the place of a record is the first word of the node record where it ends. All learners
of the family share this module: the plan holds their differences.
"""

from __future__ import annotations

from core.kernels.jit import kernel
from core.layout.learning import (
    COUNTS,
    DECISION_DUE,
    GREW,
    GROW_FIRST,
    LEAD,
    LEARNED,
    NO_CLASS,
    NOT_ANSWERED,
    SHARE,
    WEIGHT,
    Row,
    Work,
)
from core.layout.plan import PlanRecord
from core.layout.tree import ABSENT, LEAF, Leaf, Node, Tree
from core.leaf_models import base as leaf_models
from core.learners.hoeffding import soundness
from core.learners.hoeffding.reevaluation import is_revisited
from core.learners.hoeffding.schedules import base as schedules
from core.learners.hoeffding.split_attempt import attempt_here
from core.observers import base as observers
from core.tree import prefetch
from core.tree.routing import UNCOUNTED, arrive, count
from core.tree.statistics import (
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
observe, _, judge = schedules.dispatcher()

PROBLEMS = soundness.PROBLEMS
block_problem = soundness.block_problem


@kernel
def route_ahead(plan: PlanRecord, tree: Tree, xs, d: int, ends) -> bool:
    """Write where several records end, routed together (core/tree/prefetch.py), unless there is one leaf."""
    if tree.nodes <= 1:
        return False
    prefetch.route_ahead(plan.route_ahead, tree, xs, d, ends)
    return True


@kernel
def answer(
    plan: PlanRecord, tree: Tree, place: int, row: Row, prepared: int, scratch, shares
) -> tuple[int, int, int]:
    """Route a record, count it unless the model is frozen, and return the leaf's vote."""
    node = tree.node_of(place)
    if place < 0:
        node = arrive(plan, tree, row.x, prepared != COUNTS, prepared)
        if node.start == UNCOUNTED:
            return NO_CLASS, UNCOUNTED, -1
    if prepared == COUNTS:
        count(tree, node, row.weight)
    best, hint = vote(plan, tree, node, row, scratch, shares)
    return best, node.start, hint


@kernel
def vote(plan: PlanRecord, tree: Tree, node: Node, row: Row, scratch, shares) -> tuple[int, int]:
    """Write the votes of the node where a record ends; return the class and the hint of the leaf model."""
    p = plan.parameters(plan.leaf_model_at)
    return votes(plan.leaf_model, plan, p, tree, node, row, scratch, shares)


@kernel
def learn(plan: PlanRecord, tree: Tree, place: int, row: Row, hint: int, work: Work) -> tuple[int, int]:
    """Train the tree with a record; a due attempt is made here, as far as compiled code can make it.

    A split of the tree that answers is described in ``work.votes``; splits of further trees are no events.
    """
    node = tree.node_of(place)
    if place < 0:
        node = arrive(plan, tree, row.x, False, 0)
        if place == NOT_ANSWERED:
            count(tree, node, row.weight)
    outcome = train(plan, tree, node, row, hint, work)
    if outcome == DECISION_DUE:
        outcome = attempt_here(plan, tree, node, work.votes)
        if outcome == GREW and tree.start != tree.model.first:
            outcome = LEARNED
    return outcome, node.start


@kernel
def train(plan: PlanRecord, tree: Tree, end: Node, row: Row, hint: int, work: Work) -> int:
    """Train a tree with a record that ends at a node; GROW_FIRST: at an absent branch.

    Where splits are revised every node of the path learns, and one of the nodes may be due. Otherwise an
    inner node (MOA: a value is missing) learns nothing.
    """
    revises = plan.revision != 0
    if end.kind == ABSENT or (end.kind != LEAF and not revises):
        return GROW_FIRST if end.kind == ABSENT else LEARNED
    if end.kind == LEAF and end.slot < 0:
        return count_alone(tree, end, row)
    if end.kind == LEAF:
        p = plan.parameters(plan.leaf_model_at)
        predicted = account(plan.leaf_model, plan, p, tree, end, row, hint, work)
        if plan.judges != 0:
            error = 0.0 if predicted == row.label else 1.0
            p = plan.parameters(plan.schedule_at)
            judge(plan.schedule, plan, p, tree, end, tree.leaf_of(end), error)
    tree.labels += 1
    node, due = end, False
    while True:
        leaf = tree.leaf_of(node)
        reach = node.reach
        count_label(node, leaf, row.label, row.weight, tree.labels)
        observe_attributes(plan, tree, leaf, row)
        if node.kind == LEAF or plan.watches != 0:
            p = plan.parameters(plan.schedule_at)
            if observe(plan.schedule, plan, p, tree, node, leaf, row):
                due = True
                if revises:
                    tree.revision(plan, leaf).due = 1.0
        else:
            node.reach = reach  # MOA's range is the range at the node's beginning
            due |= is_revisited(plan, tree, node)
        if not revises or node.parent < 0:
            return DECISION_DUE if due else LEARNED
        node = tree.node(node.parent)


@kernel
def observe_attributes(plan: PlanRecord, tree: Tree, leaf: Leaf, row: Row) -> None:
    """Add a row to the statistics of a leaf."""
    if plan.numeric > 0:
        p = plan.parameters(plan.numeric_observer_at)
        statistics = tree.numeric_statistics(plan, leaf)
        if not update_numeric(plan.numeric_observer, plan, p, statistics, row.label, row.xs, row.weight):
            leaf.left_out += row.weight
    if plan.nominal > 0:
        p = plan.parameters(plan.nominal_observer_at)
        statistics = tree.nominal_statistics(leaf)
        update_nominal(plan.nominal_observer, plan, p, statistics, row.label, row.x, row.weight)


@kernel
def count_alone(tree: Tree, node: Node, row: Row) -> int:
    """Count a label at an inactive leaf, which counts classes only and is never due."""
    tree.labels += 1
    if node.reach <= row.label:
        node.reach = row.label + 1
    add_weight(node.masses, row.label, row.weight, tree.labels)
    return LEARNED


@kernel
def uncertainty(
    plan: PlanRecord, tree: Tree, place: int, shares, scratch, columns: int
) -> tuple[float, float, float]:
    """Return share, lead and weight by the leaf's class counts.

    The share uses all class masses of the leaf; lead and weight use its observations only. At an inner node,
    where MOA ends records that miss a value, nothing is learned: the weight is -1. In an inactive leaf both
    counts are the same.
    """
    node, classes = tree.node_of(place), tree.model.classes
    share, lead, n = 0.5, 0.0, 0.0
    if columns & SHARE != 0:
        share = largest_share(node.masses, classes)
    if columns & (LEAD | WEIGHT) != 0:
        n = -1.0
        if node.kind == LEAF:
            counts = node.masses
            if is_active(node):
                leaf = tree.leaf_of(node)
                n, counts = leaf.observed, leaf.seen
            else:
                n = all_weight(node, classes)
            if columns & LEAD != 0 and n > 0.0:
                largest, second = two_largest(counts, classes)
                lead = (largest - second) / n
    return share, lead, n
