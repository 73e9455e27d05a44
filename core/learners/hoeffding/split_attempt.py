"""Split attempts: concluded without leaving compiled code, whether they fail or split the leaf.

Where the learner's decision is compiled (``Learner.compiled``), Python is called only for splits that are not
plain (``core/learners/hoeffding/plain_split.py``), and for all attempts of a tree that has stopped growing.
Most failed attempts are recognised by an approximate ranking (``core/learners/hoeffding/quick_reject.py``),
which saves time and never changes the tree.
"""

from __future__ import annotations

import math
from typing import Any

from core.kernels.jit import FLOATS, kernel, outlined
from core.layout.learning import DECISION_DUE, GREW, LEARNED
from core.layout.plan import PlanRecord
from core.layout.tree import Leaf, Node, Tree
from core.learners.hoeffding import ranking, split_decision
from core.learners.hoeffding.plain_split import split_leaf_here
from core.learners.hoeffding.quick_reject import gap_at_most
from core.learners.hoeffding.reevaluation import finish_failed_path_here
from core.learners.hoeffding.schedules import base as schedules
from core.tree.statistics import count_attempt

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
        return LEARNED if finish_failed_path_here(plan, tree, node) else DECISION_DUE
    leaf = tree.leaf_of(node)
    ranked = ranking.new_ranking(plan)
    if is_mixed_leaf(plan, tree, node, leaf):
        if plan.schedule_ranked != 0 or not is_quickly_rejected(plan, tree, node, leaf):
            ranking.survey_here(plan, tree, leaf, ranked)
            outcome = split_decision.decide_ranking(plan, tree, node, leaf, ranked.out)
            if outcome != split_decision.OPEN:
                if not split_leaf_here(plan, tree, node, ranked.out, outcome, out):
                    return DECISION_DUE
                tree.attempts += 1
                return GREW
        count_attempt(tree, leaf)
    p = plan.parameters(plan.schedule_at)
    reschedule_leaf(plan.schedule, plan, p, tree, node, leaf, ranked)
    return LEARNED


@kernel
def is_quickly_rejected(plan: PlanRecord, tree: Tree, node: Node, leaf: Leaf) -> bool:
    """Return whether an approximate ranking already shows that the bound leaves the leaf open.

    A larger lead never weakens a bound's decision, and ties do not depend on the lead.
    """
    if plan.quick_reject == 0:
        return False
    epsilon = split_decision.half_width(plan, split_decision.case_of(plan, tree, node, leaf))
    if split_decision.decide_lead(plan, -math.inf, epsilon) != split_decision.OPEN:
        return False
    gap = gap_at_most(plan, tree, node, leaf)
    return gap < math.inf and split_decision.decide_lead(plan, gap, epsilon) == split_decision.OPEN


@kernel("boolean(PlanRecord, Tree, Node, Leaf)")
def is_mixed(plan: PlanRecord, tree: Tree, node: Node, leaf: Leaf) -> bool:
    """Return whether a leaf has records of two classes, so that tests are ranked."""
    return is_mixed_leaf(plan, tree, node, leaf)


@kernel
def is_mixed_leaf(plan: PlanRecord, tree: Tree, node: Node, leaf: Leaf) -> bool:
    """Do ``is_mixed`` for other kernels."""
    return ranking.classes_with_weight(plan, node, leaf, tree.model.classes) >= 2


@kernel("void(PlanRecord, Tree, Node)")
def reschedule(plan: PlanRecord, tree: Tree, node: Node) -> None:
    """Let the schedule choose the next attempt after one that the learner decided in Python."""
    leaf = tree.leaf_of(node)
    ranked = ranking.new_ranking(plan)
    if plan.schedule_ranked != 0:
        ranking.survey_here(plan, tree, leaf, ranked)
    p = plan.parameters(plan.schedule_at)
    reschedule_leaf(plan.schedule, plan, p, tree, node, leaf, ranked)


attempt_here: Any = outlined(attempt)
"""``attempt`` for other kernels: a call, not inlined."""
