"""Re-evaluation of nodes (EFDT): merits of tests, averaged over the evaluations of a node.

A node keeps in the *revision* section of its leaf record the number of its evaluations, for each attribute
the sum of the merits of its best test at these evaluations, and the sum of the merits of the node's present
test. Splits and revisions compare averages [D38] (Manapragada, Webb and Salehi 2018).

The average of the node's test begins with the average of its attribute, so that it falls below the latter as
soon as another threshold would be better: then the threshold moves.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from core.criteria import base as criteria
from core.criteria.base import min_branch_frac
from core.kernels.jit import kernel, outlined
from core.kernels.records import name_tuple
from core.layout.plan import PlanRecord
from core.layout.tree import LEAF, NO_NODE, Leaf, Node, Revision, Tree
from core.learners.hoeffding import ranking
from core.learners.hoeffding.branch_masses import branches_of, divide_leaf
from core.learners.hoeffding.ranking import Ranking
from core.learners.hoeffding.schedules import base as schedules
from core.learners.hoeffding.split_decision import (
    MIN_GAIN,
    ONLY,
    OPEN,
    TIE,
    case_of,
    decide_lead,
    half_width,
)
from core.tree import quirks
from core.tree.statistics import count_attempt, later


class Averages(NamedTuple):
    """The merits of tests at a node, averaged over its evaluations with the present one."""

    attribute: int
    """Attribute of the best test; ranking.NO_SPLIT: not to split is best."""
    test: int
    """Kind of the best test."""
    value: float
    merit: float
    """Present merit of the best test."""
    average: float
    """Average merit of its attribute."""
    current: float
    """Average merit of the present state: of no split at a leaf, of the test of an inner node."""
    own: float
    """Present merit of an inner node's test."""


class Evaluation(NamedTuple):
    """The result of an evaluation of a node."""

    averages: Averages
    outcome: int
    """OPEN: no change; GAP, TIE, ONLY (core/learners/hoeffding/split_decision.py)."""
    epsilon: float
    evidence: float
    """The weight that the bound uses."""


name_tuple(Averages, "int64", "int64", "float64", "float64", "float64", "float64", "float64")
name_tuple(Evaluation, "Averages", "int64", "float64", "float64")

ABOVE_ROOT: Final = -1
"""A depth for ``highest_due`` that includes all nodes of a path."""

impurity = criteria.dispatcher()
reschedule_leaf = schedules.dispatcher()[1]


@kernel
def is_revisited(plan: PlanRecord, tree: Tree, node: Node) -> bool:
    """Return whether an inner node is due: after a fixed weight in the node, or for MOA in the whole tree.

    If the schedule watches inner nodes, it decides instead; it has seen the record already.
    """
    leaf = tree.leaf_of(node)
    if plan.watches != 0:
        return tree.revision(plan, leaf).due != 0.0
    if not plan.has(quirks.PERIOD_OF_TREE):
        return leaf.observed >= leaf.next
    period = max(int(plan.revisit), 1)
    return (tree.labels - 1) % period == 0 and leaf.evaluated != tree.labels


@kernel
def highest_due(plan: PlanRecord, tree: Tree, end: Node, depth: int) -> Node:
    """Return the highest due node deeper than ``depth`` on the path to a node; one at NO_NODE: none is.

    Callers go through a path from the root down and visit each node once, so that the loop ends.
    """
    due = tree.node_of(NO_NODE)
    if end.depth <= depth:
        return due
    if end.kind == LEAF:
        if tree.revision(plan, tree.leaf_of(end)).due != 0.0:
            due = end
    elif is_revisited(plan, tree, end):
        due = end
    number = end.parent
    while number >= 0:
        above = tree.node(number)
        if above.depth <= depth:
            return due
        if is_revisited(plan, tree, above):
            due = above
        number = above.parent
    return due


@kernel("int64(PlanRecord, Tree, Node, int64)", alone=True)
def next_due(plan: PlanRecord, tree: Tree, end: Node, depth: int) -> int:
    """Return the place of ``highest_due``."""
    return highest_due(plan, tree, end, depth).start


@kernel("Evaluation(PlanRecord, Tree, Node, boolean)", alone=True)
def reevaluate(plan: PlanRecord, tree: Tree, node: Node, if_hopeless: bool) -> Evaluation:
    """Evaluate a node and count the evaluation; return it.

    With ``if_hopeless`` it is counted, and the next attempt scheduled, only if the outcome is OPEN.
    """
    leaf = tree.leaf_of(node)
    ranked = ranking.new_ranking(plan)
    ranking.survey_here(plan, tree, leaf, ranked)
    evaluation = evaluate(plan, tree, node, leaf, ranked)
    if not if_hopeless or evaluation.outcome == OPEN:
        count_evaluation(plan, tree, node, leaf, evaluation.averages.own, ranked)
        if if_hopeless and (node.kind == LEAF or plan.watches != 0):
            p = plan.parameters(plan.schedule_at)
            reschedule_leaf(plan.schedule, plan, p, tree, node, leaf, ranked)
    return evaluation


reevaluate_here: Any = outlined(reevaluate)


@kernel("boolean(PlanRecord, Tree, Node)", alone=True)
def finish_failed_path(plan: PlanRecord, tree: Tree, end: Node) -> bool:
    """Evaluate the due nodes on the path to a node from the root down.

    Returns False at the first node that may change.
    """
    due = highest_due(plan, tree, end, ABOVE_ROOT)
    while due.start >= 0:
        if reevaluate_here(plan, tree, due, True).outcome != OPEN:
            return False
        due = highest_due(plan, tree, end, due.depth)
    return True


finish_failed_path_here: Any = outlined(finish_failed_path, is_optional=True)
"""``finish_failed_path`` for other kernels: a call, not inlined."""


@kernel
def evaluate(plan: PlanRecord, tree: Tree, node: Node, leaf: Leaf, ranked: Ranking) -> Evaluation:
    """Return the evaluation of a node by a ranking that is not counted yet."""
    if ranked.out[ranking.CLASSES] < 2:
        return Evaluation(Averages(ranking.NO_SPLIT, LEAF, 0.0, 0.0, 0.0, 0.0, 0.0), OPEN, 0.0, 0.0)
    averages = average_merits(plan, tree, node, leaf, ranked)
    case = case_of(plan, tree, node, leaf)
    epsilon = half_width(plan, case)
    outcome = outcome_of(plan, node, averages, epsilon, int(ranked.out[ranking.SUGGESTIONS]))
    return Evaluation(averages, outcome, epsilon, case.weight)


@kernel
def average_merits(plan: PlanRecord, tree: Tree, node: Node, leaf: Leaf, ranked: Ranking) -> Averages:
    """Return the averages with a ranking that is not counted yet."""
    merit, test = ranked.merit, ranked.test
    sums = tree.revision(plan, leaf)
    n = sums.evaluations + 1.0
    best, own, average, current = ranking.NO_SPLIT, 0.0, 0.0, 0.0
    if plan.has(quirks.MERIT_OF_NULL):
        best = int(ranked.out[ranking.BEST_ATTRIBUTE])
        null = moa_null(plan, node, sums, tree.model.classes) / n
        current = null
        if node.kind != LEAF:
            a = node.attribute
            current = (sums.merits[a] + (merit[a] if test[a] != LEAF else 0.0)) / n
        average = null if best < 0 else (sums.merits[best] + merit[best]) / n
        best_merit = ranked.out[ranking.BEST_MERIT]
    else:
        if node.kind != LEAF:
            own = own_merit(plan, tree, node, leaf)
            current = (sums.own + own) / n
        for a in range(plan.attributes):
            if test[a] != LEAF and (sums.merits[a] + merit[a]) / n > average:
                best, average = a, (sums.merits[a] + merit[a]) / n
        best_merit = merit[best] if best >= 0 else 0.0
    best_test = test[best] if best >= 0 else LEAF
    value = ranked.value[best] if best >= 0 else 0.0
    return Averages(best, best_test, value, best_merit, average, current, own)


@kernel
def moa_null(plan: PlanRecord, node: Node, sums: Revision, k: int) -> float:
    """Return MOA's sum of merits of not splitting, never below 0."""
    return max(0.0, sums.null + ranking.moa_merits(plan, node, k)[1])


@kernel
def own_merit(plan: PlanRecord, tree: Tree, node: Node, leaf: Leaf) -> float:
    """Return the merit of an inner node's test on all its observations; 0 if a branch is too small."""
    k, branches = tree.model.classes, branches_of(plan, tree, node.attribute, node.kind)
    masses = np.empty((branches, k))
    divide_leaf(plan, tree, leaf, node.attribute, node.kind, node.value, masses)
    # Columns: the branches, then their sum.
    columns = np.zeros((k, branches + 1))
    for c in range(k):
        for b in range(branches):
            columns[c, b] = max(masses[b, c], 0.0)
            columns[c, branches] += columns[c, b]
    mixed, weight = np.empty(branches + 1), np.empty(branches + 1)
    impurity(plan.criterion, columns, k, branches + 1, mixed, weight)
    total, remaining, large = weight[branches], 0.0, 0
    share = min_branch_frac(plan)
    for b in range(branches):
        remaining += mixed[b]
        if weight[b] / total > share:
            large += 1
    if total <= 0.0 or (share > 0.0 and large < 2):
        return 0.0
    return (mixed[branches] - remaining) / total


@kernel
def count_evaluation(
    plan: PlanRecord, tree: Tree, node: Node, leaf: Leaf, own: float, ranked: Ranking
) -> None:
    """Count an evaluation and add its merits; an inner node is due again after another period.

    own: merit of the node's test.
    """
    sums = tree.revision(plan, leaf)
    sums.due = 0.0
    if ranked.out[ranking.CLASSES] >= 2:
        count_attempt(tree, leaf)
        sums.evaluations += 1.0
        sums.own += own
        if plan.has(quirks.MERIT_OF_NULL):
            sums.null = moa_null(plan, node, sums, tree.model.classes)
        for a in range(plan.attributes):
            if ranked.test[a] != LEAF:
                sums.merits[a] += ranked.merit[a]
    if node.kind != LEAF:
        leaf.next = later(leaf.observed, plan.revisit)
        leaf.evaluated = leaf.observed
        if plan.has(quirks.PERIOD_OF_TREE):
            leaf.evaluated = tree.labels


@kernel
def outcome_of(plan: PlanRecord, node: Node, averages: Averages, epsilon: float, suggestions: int) -> int:
    """Return the bound's decision on the lead over the present state of the node.

    A tie makes an inner node change its test only for a lead of more than τ/2. MOA neither prunes nor moves a
    threshold, and a leaf that could not be split at all starts again (ONLY).
    """
    lead, best = averages.average - averages.current, averages.attribute
    null_has_merit = plan.has(quirks.MERIT_OF_NULL)
    outcome = decide_lead(plan, lead, epsilon)
    if node.kind == LEAF:
        if null_has_merit and suggestions == 1:
            outcome = ONLY
        elif averages.merit < MIN_GAIN or (best < 0 and not null_has_merit):
            outcome = OPEN
    elif outcome == TIE and not lead > plan.tau / 2.0:
        outcome = OPEN
    elif plan.has(quirks.REPLACES_ONLY):
        if best < 0 or best == node.attribute:
            outcome = OPEN
    elif best >= 0:
        same = best == node.attribute and averages.test == node.kind
        if averages.merit < MIN_GAIN or (same and averages.value == node.value):
            outcome = OPEN
    return outcome
