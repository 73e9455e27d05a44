"""IMAC's candidates at an inner node: they show when another test may replace the node's test.

Candidate 0 is the node's present test, with any merit; the rest are the best tests of the best further
attributes. A node is due when the gain of one of them exceeds the gain of the present test. The evaluation
compares averages as always (core/learners/hoeffding/reevaluation.py), so that it may change nothing; it is
not repeated before the next check. Another threshold of the node's attribute is searched for only at checks
([D39], the switch "both").

At a leaf an attempt brings back the illegal attributes. At an inner node with the right test no attempt may
ever come. So no gap makes an attribute illegal there: it is illegal after it has lost at a check, and only
until all attributes have had their turn. Every check considers at least a tenth of the attributes.
"""

from __future__ import annotations

import math
from typing import Any, Final

from core.kernels.jit import kernel, outlined
from core.layout.learning import Row
from core.layout.plan import PlanRecord
from core.layout.tree import LEAF, Leaf, Node, Tree
from core.learners.hoeffding.ranking import Ranking, new_ranking, untested
from core.learners.hoeffding.schedules._imac import exchange as sets
from core.learners.hoeffding.schedules._imac.candidates import count_in, evaluate_here, load_here
from core.learners.hoeffding.schedules._imac.rivals import known_range, quiet_weight
from core.learners.hoeffding.schedules._imac.state import (
    CANDIDATE,
    ILLEGAL,
    POTENTIAL,
    attribute_state,
    columns_of,
    put,
    state_of,
)
from core.tree.statistics import evidence, own_evidence

ROUND: Final = 10
"""Number of checks in which every attribute has its turn."""


@kernel
def lead(plan: PlanRecord, leaf: Leaf, other: float) -> float:
    """Return by how much the gain of the best rival exceeds the gain of the node's test.

    other: gain of another test of the node's attribute, -inf: none is known.
    """
    merit = columns_of(plan, leaf).merit
    best = other
    for q in range(1, state_of(plan, leaf).count):
        best = max(best, merit[q])
    return best - merit[0]


@kernel
def needed_lead(plan: PlanRecord, tree: Tree, node: Node, leaf: Leaf) -> float:
    """Return the lead that is enough: ε; if ε is below τ, the smaller of ε and τ/2.

    NaN: ε has no closed form.
    """
    classes = tree.model.classes
    n = evidence(plan, node, leaf, classes)
    square = known_range(plan, node, leaf, classes)
    epsilon = math.sqrt(plan.gap * square / n)
    return min(epsilon, 0.5 * plan.tau) if n > plan.tie * square else epsilon


@kernel("boolean(PlanRecord, Tree, Node, Leaf, Row, float64)", alone=True)
def compete(plan: PlanRecord, tree: Tree, node: Node, leaf: Leaf, row: Row, period: float) -> bool:
    """Count a record at an inner node, check its candidates if it is time; return whether it is due.

    period: observed weight from one check to the next.
    """
    state, classes = state_of(plan, leaf), tree.model.classes
    observed = leaf.observed
    count_in(plan, leaf, row)
    known_range(plan, node, leaf, classes)
    is_check = observed - state.checked >= period
    if observed < state.quiet and not is_check:
        return False
    ratio = evaluate_here(plan, tree, leaf)
    gap, needed = lead(plan, leaf, -math.inf), needed_lead(plan, tree, node, leaf)
    quiet = quiet_weight(plan, gap, needed, own_evidence(leaf), ratio, 0.0)
    until_tie = plan.tie * state.square - evidence(plan, node, leaf, classes)
    state.quiet = observed + (min(quiet, until_tie) if until_tie >= 0.0 else quiet)
    due = gap > needed
    if is_check and not due:
        due = look_over_here(plan, tree, node, leaf, needed)
    return due and observed >= leaf.next


compete_here: Any = outlined(compete)


@kernel("boolean(PlanRecord, Tree, Node, Leaf, float64)", alone=True)
def look_over(plan: PlanRecord, tree: Tree, node: Node, leaf: Leaf, needed: float) -> bool:
    """Renew thresholds and let further attributes compete; return whether a rival's lead is enough now."""
    state = state_of(plan, leaf)
    state.checked = leaf.observed
    state.quiet = 0.0
    if not needed >= 0.0:  # a bound without a closed form: only an attempt can decide
        return True
    usable = untested(plan, tree, node)
    ranking = new_ranking(plan)
    sets.refresh(plan, tree, leaf, 1, usable, ranking)
    tested, kind, threshold = node.attribute, node.kind, node.value
    load_here(plan, tree, leaf, 0, tested, kind, threshold)
    sets.suggest_here(plan, tree, leaf, usable, tested, ranking)
    test = ranking.test[tested]
    is_other = test != LEAF and (test != kind or ranking.value[tested] != threshold)
    if lead(plan, leaf, ranking.merit[tested] if is_other else -math.inf) > needed:
        return True
    take_turns(plan, tree, leaf, sets.room_for(plan, ranking.out), usable, ranking)
    return False


look_over_here: Any = outlined(look_over)


@kernel
def take_turns(plan: PlanRecord, tree: Tree, leaf: Leaf, limit: int, usable, ranking: Ranking) -> None:
    """Let the potential attributes whose turn it is challenge the worst candidate except the node's test."""
    columns, state = columns_of(plan, leaf), state_of(plan, leaf)
    merit, test, value = ranking.merit, ranking.test, ranking.value
    for _ in range((plan.attributes + ROUND - 1) // ROUND):
        a = next_in_turn(plan, leaf, usable)
        if a == sets.NO_ATTRIBUTE:
            return
        sets.suggest_here(plan, tree, leaf, usable, a, ranking)
        has_test, count = test[a] != LEAF, state.count
        new = merit[a] if has_test else -math.inf
        q = count
        if has_test and count < limit:
            state.count = count + 1
        else:
            q = sets.worst_candidate(plan, leaf, 1)
            if q == sets.NO_ATTRIBUTE or not new > columns.merit[q]:
                put(plan, leaf, a, ILLEGAL, new)
                continue
            put(plan, leaf, columns.attribute[q], ILLEGAL, columns.merit[q])
        load_here(plan, tree, leaf, q, a, test[a], value[a])
        put(plan, leaf, a, CANDIDATE, new)


@kernel
def next_in_turn(plan: PlanRecord, leaf: Leaf, usable) -> int:
    """Return the best potential attribute; after all had their turn, all that have lost get another one."""
    best = sets.best_potential(plan, leaf)
    if best != sets.NO_ATTRIBUTE:
        return best
    for a in range(plan.attributes):
        attribute = attribute_state(plan, leaf, a)
        if attribute.standing == ILLEGAL and usable[a]:
            attribute.standing = POTENTIAL
    return sets.best_potential(plan, leaf)
