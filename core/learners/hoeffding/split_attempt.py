"""Split attempts: concluded without leaving compiled code, whether they fail or split the leaf.

Where the learner's decision is compiled (``Learner.compiled``), Python is called only for splits that are not
plain (``core/learners/hoeffding/plain_split.py``), and for all attempts of a tree that has stopped growing.
Most failed attempts are recognised by an approximate ranking (``core/learners/hoeffding/quick_reject.py``),
which saves time and never changes the tree.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from core.bounds import base as bounds
from core.kernels.jit import FLOATS, kernel, outlined, words_at
from core.kernels.records import Words
from core.layout.plan import PlanRecord
from core.layout.tree import Leaf, Node, Tree
from core.learners.hoeffding import ranking, split_decision
from core.learners.hoeffding.plain_split import split_leaf_here
from core.learners.hoeffding.quick_reject import gap_at_most
from core.learners.hoeffding.reevaluation import finish_failed_path_here
from core.learners.hoeffding.schedules import base as schedules
from core.tree import layout as at
from core.tree.byoffset.routing import leaf_at
from core.tree.byoffset.statistics import count_attempt

decision_of = bounds.dispatcher()[1]
reschedule_leaf = schedules.dispatcher()[1]


@kernel(f"int64(int64, int64, int64, int64, {FLOATS})")
def attempt(plan_address: int, address: int, t: int, node: int, out) -> int:
    """Attempt to split a due leaf; return LEARNED (it stays one), GREW, or DECISION_DUE.

    t and node are the first words of a tree and of the leaf's node record. With GREW the split is described
    in ``out`` (float64[SPLIT_WORDS + class], core/learners/hoeffding/plain_split.py); with DECISION_DUE
    nothing has changed, and Python has to make the attempt. A leaf of one class has no tests to rank: it
    continues to wait, and this is not counted as an attempt.
    """
    plan, params = words_at(plan_address)
    ints, floats = words_at(address)
    if plan[at.PLAN_COMPILED] == 0 or ints[t + at.TREE_STOPPED] != 0:
        return at.DECISION_DUE
    if plan[at.PLAN_REVISION] != 0:
        return at.LEARNED if finish_failed_path_here(plan_address, address, t, node) else at.DECISION_DUE
    leaf = leaf_at(ints, t, ints[node + at.NODE_SLOT])
    survey = ranking.new_survey(plan)
    is_pure = ranking.classes_with_weight(plan, floats, node, leaf, ints[at.MODEL_CLASSES]) < 2
    if not is_pure:
        is_ranked = plan[at.PLAN_SCHEDULE_RANKED] != 0
        if is_ranked or not is_quickly_rejected(plan, params, ints, floats, t, node, leaf):
            ranking.survey_here(plan, params, ints, floats, t, leaf, *survey)
            outcome = split_decision.decide_ranking(plan, params, ints, floats, node, leaf, survey[3])
            if outcome != split_decision.OPEN:
                if not split_leaf_here(plan_address, address, t, node, survey[3], outcome, out):
                    return at.DECISION_DUE
                ints[t + at.TREE_ATTEMPTS] += 1
                return at.GREW
        count_attempt(ints, t, leaf)
    reschedule_leaf(
        plan[at.PLAN_SCHEDULE],
        PlanRecord(plan, params, 0),
        Words(plan, params, plan[at.PLAN_SCHEDULE + 1]),
        Tree(ints, floats, t),
        Node(ints, floats, node),
        Leaf(ints, floats, leaf),
        schedules.Ranking(survey[0], survey[1], survey[2], survey[3]),
    )
    return at.LEARNED


@kernel
def is_quickly_rejected(plan, params, ints, floats, t: int, node: int, leaf: int) -> bool:
    """Return whether an approximate ranking already shows that the bound leaves the leaf open.

    A larger lead never weakens a bound's decision, and ties do not depend on the lead.
    """
    if plan[at.PLAN_QUICK_REJECT] == 0:
        return False
    case = np.empty(bounds.CASE_WORDS)
    split_decision.describe(plan, params, ints, floats, node, leaf, case)
    kind, first, tau = plan[at.PLAN_BOUND], plan[at.PLAN_BOUND + 1], params[at.PLAN_TAU]
    epsilon = split_decision.half_width(plan, params, case)
    if decision_of(kind, params, first, -math.inf, epsilon, tau) != bounds.OPEN:
        return False
    gap = gap_at_most(plan, params, ints, floats, t, node, leaf)
    return gap < math.inf and decision_of(kind, params, first, gap, epsilon, tau) == bounds.OPEN


@kernel("boolean(int64, int64, int64, int64)")
def is_mixed(plan_address: int, address: int, node: int, leaf: int) -> bool:
    """Return whether a leaf (node and leaf record by word) has two classes, so that tests are ranked."""
    plan, _ = words_at(plan_address)
    ints, floats = words_at(address)
    return ranking.classes_with_weight(plan, floats, node, leaf, ints[at.MODEL_CLASSES]) >= 2


@kernel("void(int64, int64, int64, int64)")
def reschedule(plan_address: int, address: int, t: int, node: int) -> None:
    """Let the schedule choose the next attempt after one that the learner decided in Python."""
    plan, params = words_at(plan_address)
    ints, floats = words_at(address)
    leaf = leaf_at(ints, t, ints[node + at.NODE_SLOT])
    survey = ranking.new_survey(plan)
    if plan[at.PLAN_SCHEDULE_RANKED] != 0:
        ranking.survey_here(plan, params, ints, floats, t, leaf, *survey)
    reschedule_leaf(
        plan[at.PLAN_SCHEDULE],
        PlanRecord(plan, params, 0),
        Words(plan, params, plan[at.PLAN_SCHEDULE + 1]),
        Tree(ints, floats, t),
        Node(ints, floats, node),
        Leaf(ints, floats, leaf),
        schedules.Ranking(survey[0], survey[1], survey[2], survey[3]),
    )


attempt_here: Any = outlined(attempt)
"""``attempt`` for other kernels: a call, not inlined."""
