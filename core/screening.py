"""Attempts that do not split, concluded without leaving compiled code.

Most attempts at a due leaf find no split. Where the learner's decision is compiled (``Learner.compiled``),
Python hears only of the others, and of those that a tree which has stopped to grow would make. Most of these
fail by far, which a glance shows (``core/glance.py``): this changes the time, never the tree.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from core import ranking, verdict
from core.appraisal import conclude_path_here
from core.bounds import base as bounds
from core.glance import gap_at_most
from core.jit import kernel, outlined, words_at
from core.schedules import base as schedules
from core.tree import layout as at
from core.tree.routing import leaf_at

verdict_of = bounds.dispatcher()[1]
reschedule_leaf = schedules.dispatcher()[1]


@kernel("boolean(int64, int64, int64, int64)")
def conclude(plan_address: int, address: int, t: int, node: int) -> bool:
    """Count and reschedule an attempt that does not split; return False, and change nothing, if it does."""
    plan, knobs = words_at(plan_address)
    ints, floats = words_at(address)
    if plan[at.PLAN_COMPILED] == 0 or ints[t + at.TREE_STOPPED] != 0:
        return False
    if plan[at.PLAN_REVISION] != 0:
        return conclude_path_here(plan_address, address, t, node)
    leaf = leaf_at(ints, t, ints[node + at.NODE_SLOT])
    survey = ranking.new_survey(plan)
    if plan[at.PLAN_SCHEDULE_RANKED] != 0 or not fails_at_a_glance(plan, knobs, ints, floats, t, node, leaf):
        ranking.survey_here(plan, knobs, ints, floats, t, leaf, *survey)
        if verdict.judge(plan, knobs, ints, floats, node, leaf, survey[3]) != verdict.OPEN:
            return False
    ints[t + at.TREE_ATTEMPTS] += 1
    ints[leaf + at.LEAF_ATTEMPTS] += 1
    reschedule_leaf(plan[at.PLAN_SCHEDULE], plan, knobs, ints, floats, t, node, leaf, *survey)
    return True


@kernel
def fails_at_a_glance(plan: Any, knobs: Any, ints: Any, floats: Any, t: int, node: int, leaf: int) -> bool:
    """Return whether a rough ranking shows already that the bound leaves the leaf open.

    No verdict becomes weaker with a larger lead, and no tie depends on it.
    """
    if plan[at.PLAN_GLANCE] == 0:
        return False
    case = np.empty(bounds.CASE_WORDS)
    verdict.describe(plan, knobs, ints, floats, node, leaf, case)
    kind, first, tau = plan[at.PLAN_BOUND], plan[at.PLAN_BOUND + 1], knobs[at.PLAN_TAU]
    epsilon = verdict.half_width(plan, knobs, case)
    if verdict_of(kind, knobs, first, -math.inf, epsilon, tau) != bounds.OPEN:
        return False
    gap = gap_at_most(plan, knobs, ints, floats, t, node, leaf)
    return gap < math.inf and verdict_of(kind, knobs, first, gap, epsilon, tau) == bounds.OPEN


@kernel("void(int64, int64, int64, int64)")
def reschedule(plan_address: int, address: int, t: int, node: int) -> None:
    """Let the schedule plan on after an attempt that the learner itself has judged."""
    plan, knobs = words_at(plan_address)
    ints, floats = words_at(address)
    leaf = leaf_at(ints, t, ints[node + at.NODE_SLOT])
    survey = ranking.new_survey(plan)
    if plan[at.PLAN_SCHEDULE_RANKED] != 0:
        ranking.survey_here(plan, knobs, ints, floats, t, leaf, *survey)
    reschedule_leaf(plan[at.PLAN_SCHEDULE], plan, knobs, ints, floats, t, node, leaf, *survey)


conclude_here: Any = outlined(conclude)
"""``conclude`` for other kernels: a call, not inlined."""
