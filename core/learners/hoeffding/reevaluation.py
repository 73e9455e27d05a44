"""Re-evaluation of nodes (EFDT): merits of tests, averaged over the evaluations of a node.

A node keeps in the *revision* section of its leaf record the number of its evaluations, for each attribute
the sum of the merits of its best test at these evaluations, and the sum of the merits of the node's present
test. Splits and revisions compare averages (ALGORITHMS section 17 [D38]; Manapragada, Webb and Salehi 2018).

The average of the node's test begins with the average of its attribute, so that it falls below the latter as
soon as another threshold would be better: then the threshold moves.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from core.criteria import base as criteria
from core.criteria.base import min_branch_frac
from core.kernels.jit import kernel, outlined, words_at
from core.layout.plan import PlanRecord, plan_at
from core.layout.tree import LEAF, Leaf, Node, Revision, Tree
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

# Result of an evaluation (float64[DECISION_WORDS])
ATTRIBUTE: Final = 0  # ranking.NO_SPLIT: not to split is best
TEST: Final = 1  # kind of node
VALUE: Final = 2
MERIT: Final = 3  # present merit
AVERAGE: Final = 4  # average merit of the attribute
CURRENT: Final = 5  # average merit of the present state: of no split at a leaf, of the test of an inner node
CLASSES: Final = 6  # classes that have weight; below 2 nothing was evaluated
OUTCOME: Final = 7  # OPEN: no change; GAP, TIE, ONLY (core/learners/hoeffding/split_decision.py)
EPSILON: Final = 8
EVIDENCE: Final = 9  # the weight that the bound uses
DECISION_WORDS: Final = 10

ABOVE_ROOT: Final = -1
"""A depth for ``highest_due`` that includes all nodes of a path."""

NO_NODE: Final = -1
"""Place of no node."""

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


@kernel("int64(int64, int64, int64, int64, int64)", alone=True)
def next_due(plan_address: int, address: int, t: int, place: int, depth: int) -> int:
    """Return the place of ``highest_due`` for the path that ends at the node record at word ``place``."""
    ints, floats = words_at(address)
    tree = Tree(ints, floats, t)
    return highest_due(plan_at(plan_address), tree, tree.node_of(place), depth).start


@kernel("boolean(int64, int64, int64, int64, boolean, float64[::1])", alone=True)
def reevaluate(plan_address: int, address: int, t: int, place: int, if_hopeless: bool, decision) -> bool:
    """Evaluate a node: write the decision (float64[DECISION_WORDS]); return whether it was counted.

    With ``if_hopeless`` it is counted, and the next attempt scheduled, only if the outcome is OPEN.
    """
    plan = plan_at(plan_address)
    ints, floats = words_at(address)
    tree = Tree(ints, floats, t)
    node = tree.node_of(place)
    leaf = tree.leaf_of(node)
    ranked = ranking.new_ranking(plan)
    ranking.survey_here(plan, tree, leaf, ranked)
    present = average_merits(plan, tree, node, leaf, ranked, decision)
    decide_node(plan, tree, node, leaf, int(ranked.out[ranking.SUGGESTIONS]), decision)
    if if_hopeless and decision[OUTCOME] != OPEN:
        return False
    count_evaluation(plan, tree, node, leaf, present, ranked)
    if if_hopeless and (node.kind == LEAF or plan.watches != 0):
        p = plan.parameters(plan.schedule_at)
        reschedule_leaf(plan.schedule, plan, p, tree, node, leaf, ranked)
    return True


reevaluate_here: Any = outlined(reevaluate)


@kernel("boolean(int64, int64, int64, int64)", alone=True)
def finish_failed_path(plan_address: int, address: int, t: int, place: int) -> bool:
    """Evaluate a path's due nodes from the root down; return False at the first node that may change.

    place: first word of the node record where the path ends.
    """
    plan = plan_at(plan_address)
    ints, floats = words_at(address)
    tree = Tree(ints, floats, t)
    end = tree.node_of(place)
    decision = np.zeros(DECISION_WORDS)
    due = highest_due(plan, tree, end, ABOVE_ROOT)
    while due.start >= 0:
        if not reevaluate_here(plan_address, address, t, due.start, True, decision):
            return False
        due = highest_due(plan, tree, end, due.depth)
    return True


finish_failed_path_here: Any = outlined(finish_failed_path, is_optional=True)
"""``finish_failed_path`` for other kernels: a call, not inlined."""


@kernel
def average_merits(plan: PlanRecord, tree: Tree, node: Node, leaf: Leaf, ranked: Ranking, decision) -> float:
    """Write the averages with a ranking that is not counted yet; return the merit of the node's test."""
    merit, test, out = ranked.merit, ranked.test, ranked.out
    decision[CLASSES] = out[ranking.CLASSES]
    if out[ranking.CLASSES] < 2:
        return 0.0
    sums = tree.revision(plan, leaf)
    n = sums.evaluations + 1.0
    best, present = ranking.NO_SPLIT, 0.0
    if plan.has(quirks.MERIT_OF_NULL):
        best = int(out[ranking.BEST_ATTRIBUTE])
        null = moa_null(plan, node, sums, tree.model.classes) / n
        decision[CURRENT] = null
        if node.kind != LEAF:
            a = node.attribute
            decision[CURRENT] = (sums.merits[a] + (merit[a] if test[a] != LEAF else 0.0)) / n
        decision[AVERAGE] = null if best < 0 else (sums.merits[best] + merit[best]) / n
        decision[MERIT] = out[ranking.BEST_MERIT]
    else:
        decision[CURRENT] = 0.0
        if node.kind != LEAF:
            present = present_merit(plan, tree, node, leaf)
            decision[CURRENT] = (sums.own + present) / n
        decision[AVERAGE] = 0.0
        for a in range(plan.attributes):
            if test[a] != LEAF and (sums.merits[a] + merit[a]) / n > decision[AVERAGE]:
                best, decision[AVERAGE] = a, (sums.merits[a] + merit[a]) / n
        decision[MERIT] = merit[best] if best >= 0 else 0.0
    decision[ATTRIBUTE] = best
    decision[TEST] = test[best] if best >= 0 else LEAF
    decision[VALUE] = ranked.value[best] if best >= 0 else 0.0
    return present


@kernel
def moa_null(plan: PlanRecord, node: Node, sums: Revision, k: int) -> float:
    """Return MOA's sum of merits of not splitting, never below 0."""
    return max(0.0, sums.null + ranking.moa_merits(plan, node, k)[1])


@kernel
def present_merit(plan: PlanRecord, tree: Tree, node: Node, leaf: Leaf) -> float:
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
    plan: PlanRecord, tree: Tree, node: Node, leaf: Leaf, present: float, ranked: Ranking
) -> None:
    """Count an evaluation and add its merits; an inner node is due again after another period.

    present: merit of the node's test.
    """
    sums = tree.revision(plan, leaf)
    sums.due = 0.0
    if ranked.out[ranking.CLASSES] >= 2:
        count_attempt(tree, leaf)
        sums.evaluations += 1.0
        sums.own += present
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
def decide_node(plan: PlanRecord, tree: Tree, node: Node, leaf: Leaf, suggestions: int, decision) -> None:
    """Write the outcome and ε: the bound's decision on the lead over the present state of the node.

    A tie makes an inner node change its test only for a lead of more than τ/2. MOA neither prunes nor moves a
    threshold, and a leaf that could not be split at all starts again (ONLY).
    """
    decision[OUTCOME] = OPEN
    if decision[CLASSES] < 2:
        return
    case = case_of(plan, tree, node, leaf)
    lead, best = decision[AVERAGE] - decision[CURRENT], int(decision[ATTRIBUTE])
    null_has_merit = plan.has(quirks.MERIT_OF_NULL)
    decision[EPSILON] = half_width(plan, case)
    decision[EVIDENCE] = case.weight
    outcome = decide_lead(plan, lead, decision[EPSILON])
    if node.kind == LEAF:
        if null_has_merit and suggestions == 1:
            outcome = ONLY
        elif decision[MERIT] < MIN_GAIN or (best < 0 and not null_has_merit):
            outcome = OPEN
    elif outcome == TIE and not lead > plan.tau / 2.0:
        outcome = OPEN
    elif plan.has(quirks.REPLACES_ONLY):
        if best < 0 or best == node.attribute:
            outcome = OPEN
    elif best >= 0:
        same = best == node.attribute and int(decision[TEST]) == node.kind
        if decision[MERIT] < MIN_GAIN or (same and decision[VALUE] == node.value):
            outcome = OPEN
    decision[OUTCOME] = outcome
