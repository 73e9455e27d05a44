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

from core.bounds import base as bounds
from core.criteria import base as criteria
from core.kernels.jit import kernel, outlined, words_at
from core.kernels.records import Words
from core.layout.plan import PlanRecord
from core.layout.tree import Leaf, Node, Tree
from core.learners.hoeffding import ranking
from core.learners.hoeffding.branch_masses import branches_of, divide_leaf
from core.learners.hoeffding.schedules import base as schedules
from core.learners.hoeffding.split_decision import MIN_GAIN, ONLY, OPEN, TIE, describe, half_width
from core.tree import layout as at
from core.tree import quirks
from core.tree.byoffset.routing import leaf_at, node_at
from core.tree.byoffset.statistics import count_attempt, later

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

impurity = criteria.dispatcher()
decision_of = bounds.dispatcher()[1]
reschedule_leaf = schedules.dispatcher()[1]


@kernel
def is_revisited(plan, params, ints, floats, t: int, node: int) -> bool:
    """Return whether an inner node is due: after a fixed weight in the node, or for MOA in the whole tree.

    If the schedule watches inner nodes, it decides instead; it has seen the record already.
    """
    leaf = leaf_at(ints, t, ints[node + at.NODE_SLOT])
    if plan[at.PLAN_WATCHES] != 0:
        return floats[leaf + plan[at.PLAN_REVISION] + at.REVISION_DUE] != 0.0
    if plan[at.PLAN_QUIRKS] & quirks.PERIOD_OF_TREE == 0:
        return floats[leaf + at.LEAF_OBSERVED] >= floats[leaf + at.LEAF_NEXT]
    learned = ints[t + at.TREE_LABELS]
    period = max(int(params[at.PLAN_REVISIT]), 1)
    return (learned - 1) % period == 0 and floats[leaf + at.LEAF_EVALUATED] != learned


@kernel
def highest_due(plan, params, ints, floats, t: int, node: int, depth: int) -> int:
    """Return the record of the highest due node deeper than ``depth`` on a node's path; -1: none is.

    Callers go through a path from the root down and visit each node once, so that the loop ends.
    """
    due = -1
    if ints[node + at.NODE_DEPTH] <= depth:
        return due
    if ints[node + at.NODE_KIND] == at.LEAF:
        leaf = leaf_at(ints, t, ints[node + at.NODE_SLOT])
        if floats[leaf + plan[at.PLAN_REVISION] + at.REVISION_DUE] != 0.0:
            due = node
    elif is_revisited(plan, params, ints, floats, t, node):
        due = node
    above = ints[node + at.NODE_PARENT]
    while above >= 0:
        record = node_at(ints, t, above)
        if ints[record + at.NODE_DEPTH] <= depth:
            return due
        if is_revisited(plan, params, ints, floats, t, record):
            due = record
        above = ints[record + at.NODE_PARENT]
    return due


@kernel("int64(int64, int64, int64, int64, int64)", alone=True)
def next_due(plan_address: int, address: int, t: int, node: int, depth: int) -> int:
    """Return ``highest_due`` of the path that ends at the node record at word ``node``."""
    plan, params = words_at(plan_address)
    ints, floats = words_at(address)
    return highest_due(plan, params, ints, floats, t, node, depth)


@kernel("boolean(int64, int64, int64, int64, boolean, float64[::1])", alone=True)
def reevaluate(plan_address: int, address: int, t: int, node: int, if_hopeless: bool, decision) -> bool:
    """Evaluate a node: write the decision (float64[DECISION_WORDS]); return whether it was counted.

    With ``if_hopeless`` it is counted, and the next attempt scheduled, only if the outcome is OPEN.
    """
    plan, params = words_at(plan_address)
    ints, floats = words_at(address)
    leaf = leaf_at(ints, t, ints[node + at.NODE_SLOT])
    survey = ranking.new_survey(plan)
    ranking.survey_here(plan, params, ints, floats, t, leaf, *survey)
    own = average_merits(plan, params, ints, floats, t, node, leaf, *survey, decision)
    decide_node(plan, params, ints, floats, node, leaf, int(survey[3][ranking.SUGGESTIONS]), decision)
    if if_hopeless and decision[OUTCOME] != OPEN:
        return False
    count_evaluation(plan, params, ints, floats, t, node, leaf, own, *survey)
    if if_hopeless and (ints[node + at.NODE_KIND] == at.LEAF or plan[at.PLAN_WATCHES] != 0):
        reschedule_leaf(
            plan[at.PLAN_SCHEDULE],
            PlanRecord(plan, params, 0),
            Words(plan, params, plan[at.PLAN_SCHEDULE + 1]),
            Tree(ints, floats, t),
            Node(ints, floats, node),
            Leaf(ints, floats, leaf),
            schedules.Ranking(survey[0], survey[1], survey[2], survey[3]),
        )
    return True


reevaluate_here: Any = outlined(reevaluate)


@kernel("boolean(int64, int64, int64, int64)", alone=True)
def finish_failed_path(plan_address: int, address: int, t: int, node: int) -> bool:
    """Evaluate a path's due nodes from the root down; return False at the first node that may change."""
    plan, params = words_at(plan_address)
    ints, floats = words_at(address)
    decision = np.zeros(DECISION_WORDS)
    due = highest_due(plan, params, ints, floats, t, node, ABOVE_ROOT)
    while due >= 0:
        if not reevaluate_here(plan_address, address, t, due, True, decision):
            return False
        due = highest_due(plan, params, ints, floats, t, node, ints[due + at.NODE_DEPTH])
    return True


finish_failed_path_here: Any = outlined(finish_failed_path, is_optional=True)
"""``finish_failed_path`` for other kernels: a call, not inlined."""


@kernel
def average_merits(
    plan, params, ints, floats, t: int, node: int, leaf: int, merit, test, value, out, decision
) -> float:
    """Write the averages with a survey that is not counted yet; return the merit of the node's test."""
    decision[CLASSES] = out[ranking.CLASSES]
    if out[ranking.CLASSES] < 2:
        return 0.0
    section = leaf + plan[at.PLAN_REVISION]
    sums = section + at.REVISION_FIELDS
    n = floats[section + at.REVISION_EVALUATIONS] + 1.0
    is_leaf = ints[node + at.NODE_KIND] == at.LEAF
    best, own = ranking.NO_SPLIT, 0.0
    if plan[at.PLAN_QUIRKS] & quirks.MERIT_OF_NULL != 0:
        best = int(out[ranking.BEST_ATTRIBUTE])
        null = moa_null(plan, floats, node, section, ints[at.MODEL_CLASSES]) / n
        decision[CURRENT] = null
        if not is_leaf:
            mine = ints[node + at.NODE_ATTRIBUTE]
            decision[CURRENT] = (floats[sums + mine] + (merit[mine] if test[mine] != at.LEAF else 0.0)) / n
        decision[AVERAGE] = null if best < 0 else (floats[sums + best] + merit[best]) / n
        decision[MERIT] = out[ranking.BEST_MERIT]
    else:
        decision[CURRENT] = 0.0
        if not is_leaf:
            own = own_merit(plan, params, ints, floats, t, node, leaf)
            decision[CURRENT] = (floats[section + at.REVISION_OWN] + own) / n
        decision[AVERAGE] = 0.0
        for a in range(plan[at.PLAN_ATTRIBUTES]):
            if test[a] != at.LEAF and (floats[sums + a] + merit[a]) / n > decision[AVERAGE]:
                best, decision[AVERAGE] = a, (floats[sums + a] + merit[a]) / n
        decision[MERIT] = merit[best] if best >= 0 else 0.0
    decision[ATTRIBUTE] = best
    decision[TEST] = test[best] if best >= 0 else at.LEAF
    decision[VALUE] = value[best] if best >= 0 else 0.0
    return own


@kernel
def moa_null(plan, floats, node: int, section: int, k: int) -> float:
    """Return MOA's sum of merits of not splitting, never below 0."""
    return max(0.0, floats[section + at.REVISION_NULL] + ranking.moa_merits(plan, floats, node, k)[1])


@kernel
def own_merit(plan, params, ints, floats, t: int, node: int, leaf: int) -> float:
    """Return the merit of an inner node's test on all its observations; 0 if a branch is too small."""
    attribute, test = ints[node + at.NODE_ATTRIBUTE], ints[node + at.NODE_KIND]
    k, branches = ints[at.MODEL_CLASSES], branches_of(plan, ints, attribute, test)
    masses = np.empty((branches, k))
    divide_leaf(plan, params, ints, floats, t, leaf, attribute, test, floats[node + at.NODE_VALUE], masses)
    # Columns: the branches, then their sum.
    columns = np.zeros((k, branches + 1))
    for c in range(k):
        for b in range(branches):
            columns[c, b] = max(masses[b, c], 0.0)
            columns[c, branches] += columns[c, b]
    mixed, weight = np.empty(branches + 1), np.empty(branches + 1)
    impurity(plan[at.PLAN_CRITERION], columns, k, branches + 1, mixed, weight)
    total, remaining, large = weight[branches], 0.0, 0
    share = params[plan[at.PLAN_CRITERION + 1]]
    for b in range(branches):
        remaining += mixed[b]
        if weight[b] / total > share:
            large += 1
    if total <= 0.0 or (share > 0.0 and large < 2):
        return 0.0
    return (mixed[branches] - remaining) / total


@kernel
def count_evaluation(
    plan, params, ints, floats, t: int, node: int, leaf: int, own: float, merit, test, value, out
) -> None:
    """Count an evaluation and add its merits; an inner node is due again after another period."""
    floats[leaf + plan[at.PLAN_REVISION] + at.REVISION_DUE] = 0.0
    if out[ranking.CLASSES] >= 2:
        count_attempt(ints, t, leaf)
        section = leaf + plan[at.PLAN_REVISION]
        floats[section + at.REVISION_EVALUATIONS] += 1.0
        floats[section + at.REVISION_OWN] += own
        if plan[at.PLAN_QUIRKS] & quirks.MERIT_OF_NULL != 0:
            null = moa_null(plan, floats, node, section, ints[at.MODEL_CLASSES])
            floats[section + at.REVISION_NULL] = null
        for a in range(plan[at.PLAN_ATTRIBUTES]):
            if test[a] != at.LEAF:
                floats[section + at.REVISION_FIELDS + a] += merit[a]
    if ints[node + at.NODE_KIND] != at.LEAF:
        floats[leaf + at.LEAF_NEXT] = later(floats[leaf + at.LEAF_OBSERVED], params[at.PLAN_REVISIT])
        floats[leaf + at.LEAF_EVALUATED] = floats[leaf + at.LEAF_OBSERVED]
        if plan[at.PLAN_QUIRKS] & quirks.PERIOD_OF_TREE != 0:
            floats[leaf + at.LEAF_EVALUATED] = ints[t + at.TREE_LABELS]


@kernel
def decide_node(plan, params, ints, floats, node: int, leaf: int, suggestions: int, decision) -> None:
    """Write the outcome and ε: the bound's decision on the lead over the present state of the node.

    A tie makes an inner node change its test only for a lead of more than τ/2. MOA neither prunes nor moves a
    threshold, and a leaf that could not be split at all starts again (ONLY).
    """
    decision[OUTCOME] = OPEN
    if decision[CLASSES] < 2:
        return
    case = np.empty(bounds.CASE_WORDS)
    describe(plan, params, ints, floats, node, leaf, case)
    kind, first, tau = plan[at.PLAN_BOUND], plan[at.PLAN_BOUND + 1], params[at.PLAN_TAU]
    lead, best = decision[AVERAGE] - decision[CURRENT], int(decision[ATTRIBUTE])
    null_has_merit = plan[at.PLAN_QUIRKS] & quirks.MERIT_OF_NULL != 0
    decision[EPSILON] = half_width(plan, params, case)
    decision[EVIDENCE] = case[bounds.CASE_WEIGHT]
    outcome = decision_of(kind, params, first, lead, decision[EPSILON], tau)
    if ints[node + at.NODE_KIND] == at.LEAF:
        if null_has_merit and suggestions == 1:
            outcome = ONLY
        elif decision[MERIT] < MIN_GAIN or (best < 0 and not null_has_merit):
            outcome = OPEN
    elif outcome == TIE and not lead > tau / 2.0:
        outcome = OPEN
    elif plan[at.PLAN_QUIRKS] & quirks.REPLACES_ONLY != 0:
        if best < 0 or best == ints[node + at.NODE_ATTRIBUTE]:
            outcome = OPEN
    elif best >= 0:
        same = best == ints[node + at.NODE_ATTRIBUTE] and int(decision[TEST]) == ints[node + at.NODE_KIND]
        if decision[MERIT] < MIN_GAIN or (same and decision[VALUE] == floats[node + at.NODE_VALUE]):
            outcome = OPEN
    decision[OUTCOME] = outcome
