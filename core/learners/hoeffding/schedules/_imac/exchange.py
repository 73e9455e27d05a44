"""IMAC's choice of candidates: made at an attempt, revised at every check."""

from __future__ import annotations

import math
from typing import Any, Final

from core.kernels.jit import WORDS, kernel, outlined
from core.layout.plan import PlanRecord
from core.layout.tree import Leaf, Node, Tree
from core.learners.hoeffding import ranking
from core.learners.hoeffding.branch_masses import is_numeric, nominal_number, numeric_number
from core.learners.hoeffding.ranking import (
    Ranking,
    beats,
    new_ranking,
    suggest_nominal_here,
    suggest_numeric_here,
    untested,
)
from core.learners.hoeffding.schedules._imac import candidates
from core.tree import layout as at
from core.tree import quirks

NO_ATTRIBUTE: Final = -1


@kernel
def put(plan, ints, floats, leaf: int, attribute: int, where: int, merit: float) -> None:
    word = candidates.attributes_at(plan, leaf) + 2 * attribute
    ints[word] = where
    floats[word + 1] = merit


@kernel(
    f"void({WORDS}, int64, int64, boolean[::1], int64, float64[::1], int64[::1], float64[::1])", alone=True
)
def suggest(
    plan, params, ints, floats, t: int, leaf: int, usable, attribute: int, merit, test, value
) -> None:
    """Write the best test of one attribute of a leaf, as a ranking would find it now."""
    test[attribute] = at.LEAF
    record, tree, ranked = (
        PlanRecord(plan, params, 0),
        Tree(ints, floats, t),
        Ranking(merit, test, value, value),
    )
    before = math.nan
    if plan[at.PLAN_QUIRKS] & quirks.FOLLOWED_IMPURITY != 0:
        before = 1.0 if plan[at.PLAN_NULL_MERIT] != 0 else 0.0
    if is_numeric(record, attribute):
        number = numeric_number(record, attribute)
        suggest_numeric_here(
            record, tree, Leaf(ints, floats, leaf), before, usable, number, number + 1, ranked
        )
        return
    number = nominal_number(record, attribute)
    suggest_nominal_here(record, tree, Leaf(ints, floats, leaf), before, usable, number, number + 1, ranked)


suggest_here: Any = outlined(suggest)


@kernel
def room_for(plan, out) -> int:
    """Return how many candidates an attempt chooses; IMAC's code takes 2 if that is more than half."""
    d = plan[at.PLAN_ATTRIBUTES]
    if plan[at.PLAN_QUIRKS] & quirks.EXCHANGES_ONLY == 0:
        return min(d, min(max(d // 10, 5), 10))
    suggestions = int(out[ranking.SUGGESTIONS])
    wanted = min(max(suggestions // 10, 5), 10)
    return min(d, 2 if wanted > suggestions // 2 else wanted)


@kernel(
    f"void({WORDS}, int64, int64, int64, float64[::1], int64[::1], float64[::1], float64[::1], float64)",
    alone=True,
)
def choose_candidates(
    plan, params, ints, floats, t: int, node: int, leaf: int, merit, test, value, out, epsilon: float
) -> None:
    """Make the best attributes of a ranking candidates, and sort the rest by their gap to the best.

    The two best are candidates with any gap. An attribute without a test waits with the lowest merit. At an
    inner node its present test is the first candidate, and no gap is too wide (inner_node.py).
    """
    usable = untested(PlanRecord(plan, params, 0), Tree(ints, floats, t), Node(ints, floats, node))
    d, limit = plan[at.PLAN_ATTRIBUTES], room_for(plan, out)
    first = candidates.attributes_at(plan, leaf)
    for a in range(d):
        put(plan, ints, floats, leaf, a, candidates.AWAY if usable[a] else candidates.ILLEGAL, -math.inf)
    last_wins = plan[at.PLAN_QUIRKS] & quirks.LAST_OF_EQUALS != 0
    count, best = 0, -math.inf
    if ints[node + at.NODE_KIND] != at.LEAF:
        own, kind = ints[node + at.NODE_ATTRIBUTE], ints[node + at.NODE_KIND]
        candidates.load_here(plan, params, ints, floats, t, leaf, 0, own, kind, floats[node + at.NODE_VALUE])
        put(plan, ints, floats, leaf, own, candidates.CANDIDATE, -math.inf)
        count, epsilon = 1, math.inf
    while count < limit:
        next_best = NO_ATTRIBUTE
        for a in range(d):
            if ints[first + 2 * a] != candidates.AWAY or test[a] == at.LEAF:
                continue
            if next_best == NO_ATTRIBUTE or beats(merit[a], merit[next_best], last_wins):
                next_best = a
        if next_best == NO_ATTRIBUTE:
            break
        if count == 0:
            best = merit[next_best]
        if count >= 2 and best - merit[next_best] > epsilon:
            break
        candidates.load_here(
            plan, params, ints, floats, t, leaf, count, next_best, test[next_best], value[next_best]
        )
        put(plan, ints, floats, leaf, next_best, candidates.CANDIDATE, merit[next_best])
        if math.isnan(merit[next_best]):
            room = candidates.capacity(d)
            floats[candidates.rows_at(plan, leaf) + candidates.MERIT * room + count] = math.nan
        count += 1
    for a in range(d):
        if ints[first + 2 * a] == candidates.AWAY:
            known = test[a] != at.LEAF
            illegal = known and best - merit[a] > epsilon
            where = candidates.ILLEGAL if illegal else candidates.POTENTIAL
            put(plan, ints, floats, leaf, a, where, merit[a] if known else -math.inf)
    ints[leaf + plan[at.PLAN_SCHEDULE_AT] + candidates.COUNT] = count


choose_candidates_here: Any = outlined(choose_candidates)


@kernel
def best_potential(plan, ints, floats, leaf: int) -> int:
    """Return the potential attribute with the best last merit, the first of equals; NO_ATTRIBUTE: none.

    MOA: a merit that is not a number is the best.
    """
    first = candidates.attributes_at(plan, leaf)
    best, most = NO_ATTRIBUTE, -math.inf
    for a in range(plan[at.PLAN_ATTRIBUTES]):
        if ints[first + 2 * a] != candidates.POTENTIAL:
            continue
        merit = floats[first + 2 * a + 1]
        if best == NO_ATTRIBUTE or merit > most or (math.isnan(merit) and not math.isnan(most)):
            best, most = a, merit
    return best


@kernel
def worst_candidate(plan, ints, floats, leaf: int, room: int, first: int) -> int:
    """Return the candidate with the lowest merit among number ``first`` and later; the last of equals.

    MOA: no merit is lower than one that is not a number.
    """
    row = candidates.rows_at(plan, leaf) + candidates.MERIT * room
    worst = NO_ATTRIBUTE
    for q in range(first, ints[leaf + plan[at.PLAN_SCHEDULE_AT] + candidates.COUNT]):
        if worst == NO_ATTRIBUTE or math.isnan(floats[row + worst]) or floats[row + q] <= floats[row + worst]:
            worst = q
    return worst


@kernel
def refresh(
    plan, params, ints, floats, t: int, leaf: int, room: int, first: int, usable, merit, test, value
) -> None:
    """Give numeric candidates, from number ``first`` on, the present best threshold, if there is one."""
    rows = candidates.rows_at(plan, leaf)
    for q in range(first, ints[leaf + plan[at.PLAN_SCHEDULE_AT] + candidates.COUNT]):
        if ints[rows + candidates.TEST * room + q] == at.NUMERIC:
            a = ints[rows + candidates.ATTRIBUTE * room + q]
            suggest_here(plan, params, ints, floats, t, leaf, usable, a, merit, test, value)
            if test[a] != at.LEAF:
                candidates.load_here(plan, params, ints, floats, t, leaf, q, a, test[a], value[a])
                if not merit[a] > -math.inf:  # MOA's branch rule, or no number
                    floats[rows + candidates.MERIT * room + q] = merit[a]


@kernel
def exchange(
    plan,
    params,
    ints,
    floats,
    t: int,
    leaf: int,
    room: int,
    limit: int,
    usable,
    merit,
    test,
    value,
    epsilon: float,
) -> None:
    """Let the best potential attributes replace the worst candidates [D35].

    It ends when a potential attribute loses, when there is none, or when the worst candidate is new. The
    loser is illegal if its gap to the best exceeds ε. While there is room no candidate is replaced.
    """
    state, rows = leaf + plan[at.PLAN_SCHEDULE_AT], candidates.rows_at(plan, leaf)
    newcomer, has_places = NO_ATTRIBUTE, plan[at.PLAN_QUIRKS] & quirks.EXCHANGES_ONLY == 0
    while True:
        count = ints[state + candidates.COUNT]
        q, a = worst_candidate(plan, ints, floats, leaf, room, 0), best_potential(plan, ints, floats, leaf)
        if a == NO_ATTRIBUTE or (q >= 0 and ints[rows + candidates.ATTRIBUTE * room + q] == newcomer):
            return
        suggest_here(plan, params, ints, floats, t, leaf, usable, a, merit, test, value)
        new = merit[a] if test[a] != at.LEAF else -math.inf
        best, _ = candidates.leaders(plan, ints, floats, leaf, room, -math.inf)
        worst = floats[rows + candidates.MERIT * room + q] if q >= 0 else -math.inf
        has_room = has_places and count < limit
        if test[a] == at.LEAF or not (has_room or new > worst):
            illegal = test[a] != at.LEAF and best - new > epsilon
            put(plan, ints, floats, leaf, a, candidates.ILLEGAL if illegal else candidates.POTENTIAL, new)
            return
        if has_room:
            if count >= 2 and best - new > epsilon:
                put(plan, ints, floats, leaf, a, candidates.ILLEGAL, new)
                continue
            q = count
            ints[state + candidates.COUNT] = count + 1
        else:
            old = ints[rows + candidates.ATTRIBUTE * room + q]
            illegal = best - worst > epsilon
            put(plan, ints, floats, leaf, old, candidates.ILLEGAL if illegal else candidates.POTENTIAL, worst)
            if not has_places and best - new > epsilon:
                put(plan, ints, floats, leaf, a, candidates.ILLEGAL, new)
                drop(plan, ints, floats, leaf, room, q)
                continue
        candidates.load_here(plan, params, ints, floats, t, leaf, q, a, test[a], value[a])
        put(plan, ints, floats, leaf, a, candidates.CANDIDATE, new)
        newcomer = a


@kernel
def drop(plan, ints, floats, leaf: int, room: int, q: int) -> None:
    """Remove candidate q: the last candidate takes its column (IMAC's code leaves the place empty)."""
    state = leaf + plan[at.PLAN_SCHEDULE_AT]
    last = ints[state + candidates.COUNT] - 1
    rows, words = candidates.rows_at(plan, leaf), 2 * plan[at.PLAN_CLASSES]
    for row in range(candidates.ROWS):
        ints[rows + row * room + q] = ints[rows + row * room + last]
    target = candidates.counts_at(plan, leaf, room, q)
    source = candidates.counts_at(plan, leaf, room, last)
    for word in range(words):
        ints[target + word] = ints[source + word]
    ints[state + candidates.COUNT] = last


@kernel(f"boolean({WORDS}, int64, int64, float64, float64)", alone=True)
def check(plan, params, ints, floats, t: int, leaf: int, null: float, epsilon: float) -> bool:
    """Check the candidates; return whether the gap of the best candidate is enough now."""
    room = candidates.capacity(plan[at.PLAN_ATTRIBUTES])
    state = leaf + plan[at.PLAN_SCHEDULE_AT]
    floats[state + candidates.CHECKED] = floats[leaf + at.LEAF_OBSERVED]
    floats[state + candidates.QUIET] = 0.0
    if not epsilon >= 0.0:  # a bound without a closed form: only an attempt can decide
        return True
    usable = untested(
        PlanRecord(plan, params, 0),
        Tree(ints, floats, t),
        Tree(ints, floats, t).node(ints[leaf + at.LEAF_NODE]),
    )
    merit, test, value, out = new_ranking(PlanRecord(plan, params, 0))
    if plan[at.PLAN_QUIRKS] & quirks.FOLLOWED_IMPURITY == 0:
        candidates.evaluate_here(plan, params, ints, floats, t, leaf, room)
    refresh(plan, params, ints, floats, t, leaf, room, 0, usable, merit, test, value)
    best, second = candidates.rivals(plan, ints, floats, leaf, room, null)
    if best - second > epsilon:
        return True
    limit = room_for(plan, out)
    exchange(plan, params, ints, floats, t, leaf, room, limit, usable, merit, test, value, epsilon)
    return False


check_here: Any = outlined(check)
