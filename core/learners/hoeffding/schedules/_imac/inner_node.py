"""IMAC's candidates at an inner node: they show when another test may replace the node's test.

Candidate 0 is the node's present test, with any merit; the rest are the best tests of the best further
attributes. A node is due when the gain of one of them exceeds the gain of the present test. The evaluation
compares averages as always (core/learners/hoeffding/reevaluation.py), so that it may change nothing; it is
not repeated before the next check. Another threshold of the node's attribute is searched for only at checks
(ALGORITHMS section 17 [D39], the switch "both").

At a leaf an attempt brings back the illegal attributes. At an inner node with the right test no attempt may
ever come. So no gap makes an attribute illegal there: it is illegal after it has lost at a check, and only
until all attributes have had their turn. Every check considers at least a tenth of the attributes.
"""

from __future__ import annotations

import math
from typing import Any, Final

from core.kernels.jit import WORDS, kernel, outlined
from core.layout.plan import PlanRecord
from core.layout.tree import Node, Tree
from core.learners.hoeffding.ranking import new_ranking, untested
from core.learners.hoeffding.schedules._imac import candidates
from core.learners.hoeffding.schedules._imac import exchange as sets
from core.tree import layout as at
from core.tree.byoffset.statistics import evidence, own_evidence

ROUND: Final = 10
"""Number of checks in which every attribute has its turn."""


@kernel
def lead(plan, ints, floats, leaf: int, other: float) -> float:
    """Return by how much the gain of the best rival exceeds the gain of the node's test.

    other: gain of another test of the node's attribute, -inf: none is known.
    """
    merit = candidates.rows_at(plan, leaf) + candidates.MERIT * candidates.capacity(plan[at.PLAN_ATTRIBUTES])
    best = other
    for q in range(1, ints[leaf + plan[at.PLAN_SCHEDULE_AT] + candidates.COUNT]):
        best = max(best, floats[merit + q])
    return best - floats[merit]


@kernel
def needed_lead(plan, params, ints, floats, node: int, leaf: int) -> float:
    """Return the lead that is enough: ε; if ε is below τ, the smaller of ε and τ/2.

    NaN: ε has no closed form.
    """
    n = evidence(plan, ints, floats, node, leaf)
    square = candidates.known_range(plan, ints, floats, node, leaf, ints[at.MODEL_CLASSES])
    epsilon = math.sqrt(params[at.PLAN_GAP] * square / n)
    return min(epsilon, 0.5 * params[at.PLAN_TAU]) if n > params[at.PLAN_TIE] * square else epsilon


@kernel(f"boolean({WORDS}, int64, int64, int64, CPointer(float64), int64, float64, float64)", alone=True)
def compete(
    plan, params, ints, floats, t: int, node: int, leaf: int, x, label: int, weight: float, period: float
) -> bool:
    """Count a record at an inner node, check its candidates if it is time; return whether it is due."""
    state, room = leaf + plan[at.PLAN_SCHEDULE_AT], candidates.capacity(plan[at.PLAN_ATTRIBUTES])
    observed = floats[leaf + at.LEAF_OBSERVED]
    candidates.count_in(plan, ints, floats, leaf, room, x, label, weight)
    candidates.known_range(plan, ints, floats, node, leaf, ints[at.MODEL_CLASSES])
    is_check = observed - floats[state + candidates.CHECKED] >= period
    if observed < floats[state + candidates.QUIET] and not is_check:
        return False
    ratio = candidates.evaluate_here(plan, params, ints, floats, t, leaf, room)
    gap, needed = (
        lead(plan, ints, floats, leaf, -math.inf),
        needed_lead(plan, params, ints, floats, node, leaf),
    )
    quiet = candidates.quiet_weight(plan, gap, needed, own_evidence(floats, leaf), ratio, 0.0)
    n = evidence(plan, ints, floats, node, leaf)
    until_tie = params[at.PLAN_TIE] * floats[state + candidates.SQUARE] - n
    floats[state + candidates.QUIET] = observed + (min(quiet, until_tie) if until_tie >= 0.0 else quiet)
    due = gap > needed
    if is_check and not due:
        due = look_over_here(plan, params, ints, floats, t, node, leaf, needed)
    return due and observed >= floats[leaf + at.LEAF_NEXT]


compete_here: Any = outlined(compete)


@kernel(f"boolean({WORDS}, int64, int64, int64, float64)", alone=True)
def look_over(plan, params, ints, floats, t: int, node: int, leaf: int, needed: float) -> bool:
    """Renew thresholds and let further attributes compete; return whether a rival's lead is enough now."""
    room = candidates.capacity(plan[at.PLAN_ATTRIBUTES])
    state = leaf + plan[at.PLAN_SCHEDULE_AT]
    floats[state + candidates.CHECKED] = floats[leaf + at.LEAF_OBSERVED]
    floats[state + candidates.QUIET] = 0.0
    if not needed >= 0.0:  # a bound without a closed form: only an attempt can decide
        return True
    usable = untested(PlanRecord(plan, params, 0), Tree(ints, floats, t), Node(ints, floats, node))
    merit, test, value, out = new_ranking(PlanRecord(plan, params, 0))
    sets.refresh(plan, params, ints, floats, t, leaf, room, 1, usable, merit, test, value)
    own, kind = ints[node + at.NODE_ATTRIBUTE], ints[node + at.NODE_KIND]
    threshold = floats[node + at.NODE_VALUE]
    candidates.load_here(plan, params, ints, floats, t, leaf, 0, own, kind, threshold)
    sets.suggest_here(plan, params, ints, floats, t, leaf, usable, own, merit, test, value)
    is_other = test[own] != at.LEAF and (test[own] != kind or value[own] != threshold)
    if lead(plan, ints, floats, leaf, merit[own] if is_other else -math.inf) > needed:
        return True
    limit = sets.room_for(plan, out)
    take_turns(plan, params, ints, floats, t, leaf, room, limit, usable, merit, test, value)
    return False


look_over_here: Any = outlined(look_over)


@kernel
def take_turns(
    plan, params, ints, floats, t: int, leaf: int, room: int, limit: int, usable, merit, test, value
) -> None:
    """Let the potential attributes whose turn it is challenge the worst candidate except the node's test."""
    rows, state = candidates.rows_at(plan, leaf), leaf + plan[at.PLAN_SCHEDULE_AT]
    for _ in range((plan[at.PLAN_ATTRIBUTES] + ROUND - 1) // ROUND):
        a = next_in_turn(plan, ints, floats, leaf, usable)
        if a == sets.NO_ATTRIBUTE:
            return
        sets.suggest_here(plan, params, ints, floats, t, leaf, usable, a, merit, test, value)
        has_test, count = test[a] != at.LEAF, ints[state + candidates.COUNT]
        new = merit[a] if has_test else -math.inf
        q = count
        if has_test and count < limit:
            ints[state + candidates.COUNT] = count + 1
        else:
            q = sets.worst_candidate(plan, ints, floats, leaf, room, 1)
            if q == sets.NO_ATTRIBUTE or not new > floats[rows + candidates.MERIT * room + q]:
                sets.put(plan, ints, floats, leaf, a, candidates.ILLEGAL, new)
                continue
            old = ints[rows + candidates.ATTRIBUTE * room + q]
            old_merit = floats[rows + candidates.MERIT * room + q]
            sets.put(plan, ints, floats, leaf, old, candidates.ILLEGAL, old_merit)
        candidates.load_here(plan, params, ints, floats, t, leaf, q, a, test[a], value[a])
        sets.put(plan, ints, floats, leaf, a, candidates.CANDIDATE, new)


@kernel
def next_in_turn(plan, ints, floats, leaf: int, usable) -> int:
    """Return the best potential attribute; after all had their turn, all that have lost get another one."""
    a = sets.best_potential(plan, ints, floats, leaf)
    if a != sets.NO_ATTRIBUTE:
        return a
    first = candidates.attributes_at(plan, leaf)
    for a in range(plan[at.PLAN_ATTRIBUTES]):
        if ints[first + 2 * a] == candidates.ILLEGAL and usable[a]:
            ints[first + 2 * a] = candidates.POTENTIAL
    return sets.best_potential(plan, ints, floats, leaf)
