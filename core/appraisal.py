"""What a node of a revising tree (EFDT) makes of its evidence: averages of merits over its evaluations.

A node keeps, in the *revision* section of its leaf record, how often it has been evaluated, the sum of the
merits that the best test of each attribute had then, and the sum of those of the test it has itself. Splits
and revisions compare averages (ALGORITHMS section 17 [D38]; Manapragada, Webb and Salehi 2018).

The average of the node's own test begins as that of its attribute, so that it falls behind its attribute as
soon as another threshold would do better: that is when a threshold moves.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from core import ranking
from core.bounds import base as bounds
from core.branches import branches_of, divide_leaf
from core.criteria import base as criteria
from core.jit import kernel, outlined, words_at
from core.schedules import base as schedules
from core.tree import layout as at
from core.tree.routing import leaf_at, node_at
from core.verdict import MIN_GAIN, ONLY, OPEN, TIE, describe, half_width

# What an appraisal consists of (float64[VERDICT_WORDS])
ATTRIBUTE: Final = 0  # ranking.NOBODY: not to split is best
TEST: Final = 1  # kind of node
VALUE: Final = 2
MERIT: Final = 3  # now
AVERAGE: Final = 4  # of that attribute
STANDING: Final = 5  # average of what is there: of no split at a leaf, of an inner node's test
CLASSES: Final = 6  # classes that have weight; below 2 nothing was appraised
OUTCOME: Final = 7  # OPEN: nothing is to be done; GAP, TIE, ONLY (core/verdict.py)
EPSILON: Final = 8
EVIDENCE: Final = 9  # the weight that the bound reckons with
VERDICT_WORDS: Final = 10

impurity = criteria.dispatcher()
verdict_of = bounds.dispatcher()[1]
reschedule_leaf = schedules.dispatcher()[1]


@kernel
def is_revisited(plan: Any, knobs: Any, ints: Any, floats: Any, t: int, node: int) -> bool:
    """Return whether an inner node is due: every so much weight of its own, for MOA of the whole tree.

    Or when its schedule says so, which has heard of the record before.
    """
    leaf = leaf_at(ints, t, ints[node + at.NODE_SLOT])
    if plan[at.PLAN_WATCHES] != 0:
        return floats[leaf + plan[at.PLAN_REVISION] + at.REVISION_DUE] != 0.0
    if plan[at.PLAN_MOA] == 0:
        return floats[leaf + at.LEAF_OBSERVED] >= floats[leaf + at.LEAF_NEXT]
    learned = ints[t + at.TREE_LABELS]
    period = max(int(knobs[at.PLAN_REVISIT]), 1)
    return (learned - 1) % period == 0 and floats[leaf + at.LEAF_EVALUATED] != learned


@kernel
def highest_due(plan: Any, knobs: Any, ints: Any, floats: Any, t: int, node: int) -> int:
    """Return the record of the highest due node on the path that ends at a node, -1: none is.

    Who is evaluated is not due any more: so the path is gone through from the root down.
    """
    due = -1
    if ints[node + at.NODE_KIND] == at.LEAF:
        leaf = leaf_at(ints, t, ints[node + at.NODE_SLOT])
        if floats[leaf + plan[at.PLAN_REVISION] + at.REVISION_DUE] != 0.0:
            due = node
    elif is_revisited(plan, knobs, ints, floats, t, node):
        due = node
    above = ints[node + at.NODE_PARENT]
    while above >= 0:
        record = node_at(ints, t, above)
        if is_revisited(plan, knobs, ints, floats, t, record):
            due = record
        above = ints[record + at.NODE_PARENT]
    return due


@kernel("int64(int64, int64, int64, int64)")
def next_due(plan_address: int, address: int, t: int, node: int) -> int:
    """Return ``highest_due`` of the path that ends at the node record at word ``node``."""
    plan, knobs = words_at(plan_address)
    ints, floats = words_at(address)
    return highest_due(plan, knobs, ints, floats, t, node)


@kernel("boolean(int64, int64, int64, int64, boolean, float64[::1])")
def appraise(plan_address: int, address: int, t: int, node: int, if_hopeless: bool, verdict: Any) -> bool:
    """Evaluate a node: write the verdict (float64[VERDICT_WORDS]); return whether the node remembers it.

    With ``if_hopeless`` it does so, and the schedule plans on, only if the outcome is OPEN.
    """
    plan, knobs = words_at(plan_address)
    ints, floats = words_at(address)
    leaf = leaf_at(ints, t, ints[node + at.NODE_SLOT])
    survey = ranking.new_survey(plan)
    ranking.survey_here(plan, knobs, ints, floats, t, leaf, *survey)
    own = weigh(plan, knobs, ints, floats, t, node, leaf, *survey, verdict)
    judge(plan, knobs, ints, floats, node, leaf, int(survey[3][ranking.SUGGESTIONS]), verdict)
    if if_hopeless and verdict[OUTCOME] != OPEN:
        return False
    remember(plan, knobs, ints, floats, t, node, leaf, own, *survey)
    if if_hopeless and (ints[node + at.NODE_KIND] == at.LEAF or plan[at.PLAN_WATCHES] != 0):
        reschedule_leaf(plan[at.PLAN_SCHEDULE], plan, knobs, ints, floats, t, node, leaf, *survey)
    return True


appraise_here: Any = outlined(appraise)


@kernel("boolean(int64, int64, int64, int64)")
def conclude_path(plan_address: int, address: int, t: int, node: int) -> bool:
    """Evaluate a path's due nodes from the root down; return False at the first that may change."""
    plan, knobs = words_at(plan_address)
    ints, floats = words_at(address)
    verdict = np.zeros(VERDICT_WORDS)
    due = highest_due(plan, knobs, ints, floats, t, node)
    while due >= 0:
        if not appraise_here(plan_address, address, t, due, True, verdict):
            return False
        due = highest_due(plan, knobs, ints, floats, t, node)
    return True


conclude_path_here: Any = outlined(conclude_path)
"""``conclude_path`` for other kernels: a call, not inlined."""


@kernel
def weigh(
    plan: Any,
    knobs: Any,
    ints: Any,
    floats: Any,
    t: int,
    node: int,
    leaf: int,
    merit: Any,
    test: Any,
    value: Any,
    out: Any,
    verdict: Any,
) -> float:
    """Write the verdict on a survey that the node does not remember yet; return the merit of its own test."""
    verdict[CLASSES] = out[ranking.CLASSES]
    if out[ranking.CLASSES] < 2:
        return 0.0
    section = leaf + plan[at.PLAN_REVISION]
    sums = section + at.REVISION_FIELDS
    n = floats[section + at.REVISION_EVALUATIONS] + 1.0
    is_leaf = ints[node + at.NODE_KIND] == at.LEAF
    best, own = ranking.NOBODY, 0.0
    if plan[at.PLAN_MOA] != 0:
        best = int(out[ranking.BEST_ATTRIBUTE])
        null = moa_null(plan, floats, node, section, ints[at.MODEL_CLASSES]) / n
        verdict[STANDING] = null
        if not is_leaf:
            mine = ints[node + at.NODE_ATTRIBUTE]
            verdict[STANDING] = (floats[sums + mine] + (merit[mine] if test[mine] != at.LEAF else 0.0)) / n
        verdict[AVERAGE] = null if best < 0 else (floats[sums + best] + merit[best]) / n
        verdict[MERIT] = out[ranking.BEST_MERIT]
    else:
        verdict[STANDING] = 0.0
        if not is_leaf:
            own = own_merit(plan, knobs, ints, floats, t, node, leaf)
            verdict[STANDING] = (floats[section + at.REVISION_OWN] + own) / n
        verdict[AVERAGE] = 0.0
        for a in range(plan[at.PLAN_ATTRIBUTES]):
            if test[a] != at.LEAF and (floats[sums + a] + merit[a]) / n > verdict[AVERAGE]:
                best, verdict[AVERAGE] = a, (floats[sums + a] + merit[a]) / n
        verdict[MERIT] = merit[best] if best >= 0 else 0.0
    verdict[ATTRIBUTE] = best
    verdict[TEST] = test[best] if best >= 0 else at.LEAF
    verdict[VALUE] = value[best] if best >= 0 else 0.0
    return own


@kernel
def moa_null(plan: Any, floats: Any, node: int, section: int, k: int) -> float:
    """Return MOA's sum of merits of not splitting, never below 0."""
    return max(0.0, floats[section + at.REVISION_NULL] + ranking.moa_merits(plan, floats, node, k)[1])


@kernel
def own_merit(plan: Any, knobs: Any, ints: Any, floats: Any, t: int, node: int, leaf: int) -> float:
    """Return the merit of an inner node's test on all the node has observed; 0 if a branch is too small."""
    attribute, test = ints[node + at.NODE_ATTRIBUTE], ints[node + at.NODE_KIND]
    k, branches = ints[at.MODEL_CLASSES], branches_of(plan, ints, attribute, test)
    masses = np.empty((branches, k))
    divide_leaf(plan, knobs, ints, floats, t, leaf, attribute, test, floats[node + at.NODE_VALUE], masses)
    # Columns: the branches, and behind them all together.
    columns = np.zeros((k, branches + 1))
    for c in range(k):
        for b in range(branches):
            columns[c, b] = max(masses[b, c], 0.0)
            columns[c, branches] += columns[c, b]
    mixed, weight = np.empty(branches + 1), np.empty(branches + 1)
    impurity(plan[at.PLAN_CRITERION], columns, k, branches + 1, mixed, weight)
    total, remaining, large = weight[branches], 0.0, 0
    share = knobs[plan[at.PLAN_CRITERION + 1]]
    for b in range(branches):
        remaining += mixed[b]
        if weight[b] / total > share:
            large += 1
    if total <= 0.0 or (share > 0.0 and large < 2):
        return 0.0
    return (mixed[branches] - remaining) / total


@kernel
def remember(
    plan: Any,
    knobs: Any,
    ints: Any,
    floats: Any,
    t: int,
    node: int,
    leaf: int,
    own: float,
    merit: Any,
    test: Any,
    value: Any,
    out: Any,
) -> None:
    """Count an evaluation and add the merits it found; an inner node is due again after another period."""
    floats[leaf + plan[at.PLAN_REVISION] + at.REVISION_DUE] = 0.0
    ints[t + at.TREE_ATTEMPTS] += 1
    ints[leaf + at.LEAF_ATTEMPTS] += 1
    if out[ranking.CLASSES] >= 2:
        section = leaf + plan[at.PLAN_REVISION]
        floats[section + at.REVISION_EVALUATIONS] += 1.0
        floats[section + at.REVISION_OWN] += own
        if plan[at.PLAN_MOA] != 0:
            null = moa_null(plan, floats, node, section, ints[at.MODEL_CLASSES])
            floats[section + at.REVISION_NULL] = null
        for a in range(plan[at.PLAN_ATTRIBUTES]):
            if test[a] != at.LEAF:
                floats[section + at.REVISION_FIELDS + a] += merit[a]
    if ints[node + at.NODE_KIND] != at.LEAF:
        floats[leaf + at.LEAF_NEXT] = floats[leaf + at.LEAF_OBSERVED] + knobs[at.PLAN_REVISIT]
        floats[leaf + at.LEAF_EVALUATED] = floats[leaf + at.LEAF_OBSERVED]
        if plan[at.PLAN_MOA] != 0:
            floats[leaf + at.LEAF_EVALUATED] = ints[t + at.TREE_LABELS]


@kernel
def judge(
    plan: Any, knobs: Any, ints: Any, floats: Any, node: int, leaf: int, suggestions: int, verdict: Any
) -> None:
    """Write the outcome of a verdict, and ε: the bound's word on the lead over what is there.

    A tie makes an inner node change its test only for a lead of more than τ/2. MOA neither prunes nor moves
    a threshold, and a leaf that could not be split at all begins anew (ONLY).
    """
    verdict[OUTCOME] = OPEN
    if verdict[CLASSES] < 2:
        return
    case = np.empty(bounds.CASE_WORDS)
    describe(plan, knobs, ints, floats, node, leaf, case)
    kind, first, tau = plan[at.PLAN_BOUND], plan[at.PLAN_BOUND + 1], knobs[at.PLAN_TAU]
    lead, best, is_moa = verdict[AVERAGE] - verdict[STANDING], int(verdict[ATTRIBUTE]), plan[at.PLAN_MOA] != 0
    verdict[EPSILON] = half_width(plan, knobs, case)
    verdict[EVIDENCE] = case[bounds.CASE_WEIGHT]
    outcome = verdict_of(kind, knobs, first, lead, verdict[EPSILON], tau)
    if ints[node + at.NODE_KIND] == at.LEAF:
        if is_moa and suggestions == 1:
            outcome = ONLY
        elif verdict[MERIT] < MIN_GAIN or (best < 0 and not is_moa):
            outcome = OPEN
    elif outcome == TIE and not lead > tau / 2.0:
        outcome = OPEN
    elif is_moa:
        if best < 0 or best == ints[node + at.NODE_ATTRIBUTE]:
            outcome = OPEN
    elif best >= 0:
        same = best == ints[node + at.NODE_ATTRIBUTE] and int(verdict[TEST]) == ints[node + at.NODE_KIND]
        if verdict[MERIT] < MIN_GAIN or (same and verdict[VALUE] == floats[node + at.NODE_VALUE]):
            outcome = OPEN
    verdict[OUTCOME] = outcome
