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
from core.kernels.jit import FLOATS, address_of, kernel, outlined
from core.layout.learning import DECISION_DUE, GREW, LEARNED
from core.layout.plan import PlanRecord
from core.layout.tree import Leaf, Node, Tree
from core.learners.hoeffding import ranking, split_decision
from core.learners.hoeffding.plain_split import split_leaf_here
from core.learners.hoeffding.quick_reject import gap_at_most
from core.learners.hoeffding.reevaluation import finish_failed_path_here
from core.learners.hoeffding.schedules import base as schedules
from core.tree.statistics import count_attempt

decision_of = bounds.dispatcher()[1]
reschedule_leaf = schedules.dispatcher()[1]


@kernel(f"int64(PlanRecord, Tree, Node, {FLOATS})")
def attempt(plan: PlanRecord, tree: Tree, node: Node, out) -> int:
    """Attempt to split a due leaf; return LEARNED (it stays one), GREW, or DECISION_DUE.

    With GREW the split is described in ``out`` (float64[SPLIT_WORDS + class],
    core/learners/hoeffding/plain_split.py); with DECISION_DUE nothing has changed, and Python has to make the
    attempt. A leaf of one class has no tests to rank: it continues to wait, and this is not counted as an
    attempt.
    """
    if plan.compiled == 0 or tree.stopped != 0:
        return DECISION_DUE
    if plan.revision != 0:
        addresses = address_of(plan.ints), address_of(tree.ints)
        is_over = finish_failed_path_here(addresses[0], addresses[1], tree.start, node.start)
        return LEARNED if is_over else DECISION_DUE
    leaf = tree.leaf_of(node)
    survey = ranking.new_survey(plan.ints)
    if is_mixed_leaf(plan, tree, node, leaf):
        if plan.schedule_ranked != 0 or not is_quickly_rejected(plan, tree, node, leaf):
            rank(plan, tree, leaf, survey)
            outcome = split_decision.decide_ranking(
                plan.ints, plan.floats, tree.ints, tree.floats, node.start, leaf.start, survey[3]
            )
            if outcome != split_decision.OPEN:
                if not split_leaf_here(plan, tree, node, survey[3], outcome, out):
                    return DECISION_DUE
                tree.attempts += 1
                return GREW
        count_attempt(tree, leaf)
    schedule_next(plan, tree, node, leaf, survey)
    return LEARNED


@kernel
def rank(plan: PlanRecord, tree: Tree, leaf: Leaf, survey) -> None:
    """Write the ranking of a leaf's tests into a new survey (core/learners/hoeffding/ranking.py)."""
    ranking.survey_here(plan.ints, plan.floats, tree.ints, tree.floats, tree.start, leaf.start, *survey)


@kernel
def schedule_next(plan: PlanRecord, tree: Tree, node: Node, leaf: Leaf, survey) -> None:
    """Let the schedule choose the next attempt after one that has not split the leaf."""
    p = plan.parameters(plan.schedule_at)
    failed = schedules.Ranking(survey[0], survey[1], survey[2], survey[3])
    reschedule_leaf(plan.schedule, plan, p, tree, node, leaf, failed)


@kernel
def is_quickly_rejected(plan: PlanRecord, tree: Tree, node: Node, leaf: Leaf) -> bool:
    """Return whether an approximate ranking already shows that the bound leaves the leaf open.

    A larger lead never weakens a bound's decision, and ties do not depend on the lead.
    """
    if plan.quick_reject == 0:
        return False
    case = np.empty(bounds.CASE_WORDS)
    split_decision.describe(plan.ints, plan.floats, tree.ints, tree.floats, node.start, leaf.start, case)
    kind, first, tau = plan.bound, plan.bound_at, plan.tau
    epsilon = split_decision.half_width(plan.ints, plan.floats, case)
    if decision_of(kind, plan.floats, first, -math.inf, epsilon, tau) != bounds.OPEN:
        return False
    gap = gap_at_most(plan.ints, plan.floats, tree.ints, tree.floats, tree.start, node.start, leaf.start)
    return gap < math.inf and decision_of(kind, plan.floats, first, gap, epsilon, tau) == bounds.OPEN


@kernel("boolean(PlanRecord, Tree, Node, Leaf)")
def is_mixed(plan: PlanRecord, tree: Tree, node: Node, leaf: Leaf) -> bool:
    """Return whether a leaf has records of two classes, so that tests are ranked."""
    return is_mixed_leaf(plan, tree, node, leaf)


@kernel
def is_mixed_leaf(plan: PlanRecord, tree: Tree, node: Node, leaf: Leaf) -> bool:
    """Do ``is_mixed`` for other kernels."""
    classes = tree.model.classes
    return ranking.classes_with_weight(plan.ints, tree.floats, node.start, leaf.start, classes) >= 2


@kernel("void(PlanRecord, Tree, Node)")
def reschedule(plan: PlanRecord, tree: Tree, node: Node) -> None:
    """Let the schedule choose the next attempt after one that the learner decided in Python."""
    leaf = tree.leaf_of(node)
    survey = ranking.new_survey(plan.ints)
    if plan.schedule_ranked != 0:
        rank(plan, tree, leaf, survey)
    schedule_next(plan, tree, node, leaf, survey)


attempt_here: Any = outlined(attempt)
"""``attempt`` for other kernels: a call, not inlined."""
