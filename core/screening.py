"""Attempts that cannot succeed, concluded without leaving compiled code.

Most attempts at a due leaf find no split. A learner whose decision is a comparison of the gap between two
merits with a known function of the weight says so (``Learner.screen``); then the ranking is compared right
here, and Python hears only of attempts that may succeed, which it judges anew: this changes the time, never
the tree.
"""

from __future__ import annotations

from typing import Any, Final

from core import ranking
from core.criteria import base as criteria
from core.glance import gap_at_most
from core.jit import kernel, outlined, words_at
from core.schedules import base as schedules
from core.tree import layout as at
from core.tree.routing import leaf_at

GAP: Final = 0
TIE: Final = 1
GAIN: Final = 2

# Both sides of a comparison are rounded: what comes this near is left to the learner.
_SURE: Final = 1.0 - 1e-6

reach = criteria.range_dispatcher()
reschedule_leaf = schedules.dispatcher()[1]


@kernel("boolean(int64, int64, int64, int64)")
def conclude(plan_address: int, address: int, t: int, node: int) -> bool:
    """Count and reschedule an attempt that cannot succeed; return False, and change nothing, if it may."""
    plan, knobs = words_at(plan_address)
    ints, floats = words_at(address)
    screen = plan[at.PLAN_SCREEN]
    if screen == 0 or ints[t + at.TREE_STOPPED] != 0:
        return False
    leaf = leaf_at(ints, t, ints[node + at.NODE_SLOT])
    survey = ranking.new_survey(plan)
    n = floats[leaf + at.LEAF_OBSERVED]
    if plan[at.PLAN_SCHEDULE_RANKED] != 0 or not is_hopeless_at_a_glance(
        plan, knobs, ints, floats, leaf, n, screen
    ):
        ranking.survey_leaf(plan, knobs, ints, floats, t, leaf, *survey)
        if not is_hopeless(plan, knobs, ints, n, screen, survey[3]):
            return False
    ints[t + at.TREE_ATTEMPTS] += 1
    ints[leaf + at.LEAF_ATTEMPTS] += 1
    reschedule_leaf(plan[at.PLAN_SCHEDULE], plan, knobs, ints, floats, t, node, leaf, *survey)
    return True


@kernel
def is_hopeless_at_a_glance(
    plan: Any, knobs: Any, ints: Any, floats: Any, leaf: int, n: float, screen: int
) -> bool:
    """Return whether a rough ranking shows already that the learner would not split."""
    k = ints[at.MODEL_CLASSES]
    merit_range = reach(plan[at.PLAN_CRITERION], k)
    square = merit_range * merit_range * _SURE
    if plan[at.PLAN_GLANCE] == 0 or n >= knobs[screen + TIE] * square:
        return False
    gap = gap_at_most(plan, knobs, floats, leaf, k)
    return gap * gap * n < knobs[screen + GAP] * square


@kernel("void(int64, int64, int64, int64)")
def reschedule(plan_address: int, address: int, t: int, node: int) -> None:
    """Let the schedule plan on after an attempt that the learner itself has judged."""
    plan, knobs = words_at(plan_address)
    ints, floats = words_at(address)
    leaf = leaf_at(ints, t, ints[node + at.NODE_SLOT])
    survey = ranking.new_survey(plan)
    if plan[at.PLAN_SCHEDULE_RANKED] != 0:
        ranking.survey_leaf(plan, knobs, ints, floats, t, leaf, *survey)
    reschedule_leaf(plan[at.PLAN_SCHEDULE], plan, knobs, ints, floats, t, node, leaf, *survey)


@kernel
def is_hopeless(plan: Any, knobs: Any, ints: Any, n: float, screen: int, out: Any) -> bool:
    """Return whether the learner would certainly not split on a ranking, from weight n."""
    if out[ranking.CLASSES] < 2:
        return True
    if out[ranking.SUGGESTIONS] < 2:
        return False
    if out[ranking.BEST_ATTRIBUTE] == ranking.NOBODY or out[ranking.BEST_MERIT] < knobs[screen + GAIN]:
        return True
    gap = out[ranking.BEST_MERIT] - out[ranking.SECOND_MERIT]
    merit_range = reach(plan[at.PLAN_CRITERION], ints[at.MODEL_CLASSES])
    square = merit_range * merit_range * _SURE
    return gap * gap * n < knobs[screen + GAP] * square and n < knobs[screen + TIE] * square


conclude_here: Any = outlined(conclude)
"""``conclude`` for other kernels: a call, not inlined."""
