"""IMAC's choice of candidates: made at an attempt, revised at every check."""

from __future__ import annotations

import math
from typing import Any, Final

from core.kernels.jit import kernel, outlined
from core.layout.plan import PlanRecord
from core.layout.tree import LEAF, NUMERIC, Leaf, Node, Tree
from core.learners.hoeffding.branch_masses import is_numeric, nominal_number, numeric_number
from core.learners.hoeffding.ranking import (
    SUGGESTIONS,
    Ranking,
    beats,
    new_ranking,
    suggest_nominal_here,
    suggest_numeric_here,
    untested,
)
from core.learners.hoeffding.schedules._imac.candidates import evaluate_here, load_here
from core.learners.hoeffding.schedules._imac.rivals import leaders, rivals
from core.learners.hoeffding.schedules._imac.state import (
    AWAY,
    CANDIDATE,
    ILLEGAL,
    POTENTIAL,
    ROWS,
    attribute_state,
    columns_of,
    counts_of,
    put,
    rows_at,
    state_of,
)
from core.tree import quirks

NO_ATTRIBUTE: Final = -1


@kernel("void(PlanRecord, Tree, Leaf, boolean[::1], int64, Ranking)", alone=True)
def suggest(plan: PlanRecord, tree: Tree, leaf: Leaf, usable, attribute: int, ranking: Ranking) -> None:
    """Write the best test of one attribute of a leaf, as a ranking would find it now."""
    ranking.test[attribute] = LEAF
    before = math.nan
    if plan.has(quirks.FOLLOWED_IMPURITY):
        before = 1.0 if plan.null_merit != 0 else 0.0
    if is_numeric(plan, attribute):
        number = numeric_number(plan, attribute)
        suggest_numeric_here(plan, tree, leaf, before, usable, number, number + 1, ranking)
        return
    number = nominal_number(plan, attribute)
    suggest_nominal_here(plan, tree, leaf, before, usable, number, number + 1, ranking)


suggest_here: Any = outlined(suggest)


@kernel
def room_for(plan: PlanRecord, out) -> int:
    """Return the number of candidates that an attempt chooses; out: of its ranking.

    IMAC's code takes 2 if the usual number is more than half of all tests.
    """
    d = plan.attributes
    if not plan.has(quirks.EXCHANGES_ONLY):
        return min(d, min(max(d // 10, 5), 10))
    suggestions = int(out[SUGGESTIONS])
    usual = min(max(suggestions // 10, 5), 10)
    return min(d, 2 if usual > suggestions // 2 else usual)


@kernel("void(PlanRecord, Tree, Node, Leaf, Ranking, float64)", alone=True)
def choose_candidates(
    plan: PlanRecord, tree: Tree, node: Node, leaf: Leaf, ranking: Ranking, epsilon: float
) -> None:
    """Make the best attributes of a ranking candidates, and sort the rest by their gap to the best.

    The two best are candidates with any gap. An attribute without a test waits with the lowest merit. At an
    inner node its present test is the first candidate, and no gap is too wide (inner_node.py).
    """
    usable = untested(plan, tree, node)
    merit, test, value = ranking.merit, ranking.test, ranking.value
    d, limit = plan.attributes, room_for(plan, ranking.out)
    for a in range(d):
        put(plan, leaf, a, AWAY if usable[a] else ILLEGAL, -math.inf)
    last_wins = plan.has(quirks.LAST_OF_EQUALS)
    count, best = 0, -math.inf
    if node.kind != LEAF:
        load_here(plan, tree, leaf, 0, node.attribute, node.kind, node.value)
        put(plan, leaf, node.attribute, CANDIDATE, -math.inf)
        count, epsilon = 1, math.inf
    while count < limit:
        next_best = NO_ATTRIBUTE
        for a in range(d):
            if attribute_state(plan, leaf, a).standing != AWAY or test[a] == LEAF:
                continue
            if next_best == NO_ATTRIBUTE or beats(merit[a], merit[next_best], last_wins):
                next_best = a
        if next_best == NO_ATTRIBUTE:
            break
        if count == 0:
            best = merit[next_best]
        if count >= 2 and best - merit[next_best] > epsilon:
            break
        load_here(plan, tree, leaf, count, next_best, test[next_best], value[next_best])
        put(plan, leaf, next_best, CANDIDATE, merit[next_best])
        if math.isnan(merit[next_best]):
            columns_of(plan, leaf).merit[count] = math.nan
        count += 1
    for a in range(d):
        if attribute_state(plan, leaf, a).standing == AWAY:
            has_test = test[a] != LEAF
            is_illegal = has_test and best - merit[a] > epsilon
            put(plan, leaf, a, ILLEGAL if is_illegal else POTENTIAL, merit[a] if has_test else -math.inf)
    state_of(plan, leaf).count = count


choose_candidates_here: Any = outlined(choose_candidates)


@kernel
def best_potential(plan: PlanRecord, leaf: Leaf) -> int:
    """Return the potential attribute with the best last merit, the first of equals; NO_ATTRIBUTE: none.

    MOA: a merit that is not a number is the best.
    """
    best, highest = NO_ATTRIBUTE, -math.inf
    for a in range(plan.attributes):
        attribute = attribute_state(plan, leaf, a)
        if attribute.standing != POTENTIAL:
            continue
        merit = attribute.merit
        if best == NO_ATTRIBUTE or merit > highest or (math.isnan(merit) and not math.isnan(highest)):
            best, highest = a, merit
    return best


@kernel
def worst_candidate(plan: PlanRecord, leaf: Leaf, first: int) -> int:
    """Return the candidate with the lowest merit among number ``first`` and later; the last of equals.

    MOA: no merit is lower than one that is not a number.
    """
    merit = columns_of(plan, leaf).merit
    worst = NO_ATTRIBUTE
    for q in range(first, state_of(plan, leaf).count):
        if worst == NO_ATTRIBUTE or math.isnan(merit[worst]) or merit[q] <= merit[worst]:
            worst = q
    return worst


@kernel
def refresh(plan: PlanRecord, tree: Tree, leaf: Leaf, first: int, usable, ranking: Ranking) -> None:
    """Give numeric candidates, from number ``first`` on, the present best threshold, if there is one."""
    columns = columns_of(plan, leaf)
    merit, test, value = ranking.merit, ranking.test, ranking.value
    for q in range(first, state_of(plan, leaf).count):
        if columns.test[q] == NUMERIC:
            a = columns.attribute[q]
            suggest_here(plan, tree, leaf, usable, a, ranking)
            if test[a] != LEAF:
                load_here(plan, tree, leaf, q, a, test[a], value[a])
                if not merit[a] > -math.inf:  # MOA's branch rule, or no number
                    columns.merit[q] = merit[a]


@kernel
def exchange(
    plan: PlanRecord, tree: Tree, leaf: Leaf, limit: int, usable, ranking: Ranking, epsilon: float
) -> None:
    """Let the best potential attributes replace the worst candidates [D35].

    It ends when a potential attribute loses, when there is none, or when the worst candidate is new. The
    loser is illegal if its gap to the best exceeds ε. While there is room no candidate is replaced.
    """
    state, columns = state_of(plan, leaf), columns_of(plan, leaf)
    merit, test, value = ranking.merit, ranking.test, ranking.value
    newcomer, has_places = NO_ATTRIBUTE, not plan.has(quirks.EXCHANGES_ONLY)
    while True:
        count = state.count
        q, a = worst_candidate(plan, leaf, 0), best_potential(plan, leaf)
        if a == NO_ATTRIBUTE or (q >= 0 and columns.attribute[q] == newcomer):
            return
        suggest_here(plan, tree, leaf, usable, a, ranking)
        new = merit[a] if test[a] != LEAF else -math.inf
        best, _ = leaders(plan, leaf, -math.inf)
        worst = columns.merit[q] if q >= 0 else -math.inf
        has_room = has_places and count < limit
        if test[a] == LEAF or not (has_room or new > worst):
            is_illegal = test[a] != LEAF and best - new > epsilon
            put(plan, leaf, a, ILLEGAL if is_illegal else POTENTIAL, new)
            return
        if has_room:
            if count >= 2 and best - new > epsilon:
                put(plan, leaf, a, ILLEGAL, new)
                continue
            q = count
            state.count = count + 1
        else:
            is_illegal = best - worst > epsilon
            put(plan, leaf, columns.attribute[q], ILLEGAL if is_illegal else POTENTIAL, worst)
            if not has_places and best - new > epsilon:
                put(plan, leaf, a, ILLEGAL, new)
                drop(plan, leaf, q)
                continue
        load_here(plan, tree, leaf, q, a, test[a], value[a])
        put(plan, leaf, a, CANDIDATE, new)
        newcomer = a


@kernel
def drop(plan: PlanRecord, leaf: Leaf, q: int) -> None:
    """Remove candidate q: the last candidate takes its column (IMAC's code leaves the place empty)."""
    state, ints, room = state_of(plan, leaf), leaf.ints, columns_of(plan, leaf).room
    last = state.count - 1
    for row in range(ROWS):
        first = rows_at(plan, leaf) + row * room
        ints[first + q] = ints[first + last]
    target, source = counts_of(plan, leaf, q), counts_of(plan, leaf, last)
    for word in range(2 * plan.classes):
        target[word] = source[word]
    state.count = last


@kernel("boolean(PlanRecord, Tree, Leaf, float64, float64)", alone=True)
def check(plan: PlanRecord, tree: Tree, leaf: Leaf, null: float, epsilon: float) -> bool:
    """Check the candidates; return whether the gap of the best candidate is enough now."""
    state = state_of(plan, leaf)
    state.checked = leaf.observed
    state.quiet = 0.0
    if not epsilon >= 0.0:  # a bound without a closed form: only an attempt can decide
        return True
    usable = untested(plan, tree, tree.node(leaf.node))
    ranking = new_ranking(plan)
    if not plan.has(quirks.FOLLOWED_IMPURITY):
        evaluate_here(plan, tree, leaf)
    refresh(plan, tree, leaf, 0, usable, ranking)
    best, second = rivals(plan, tree, leaf, null)
    if best - second > epsilon:
        return True
    exchange(plan, tree, leaf, room_for(plan, ranking.out), usable, ranking, epsilon)
    return False


check_here: Any = outlined(check)
