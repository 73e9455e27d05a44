"""Whether the label of a record is asked for: reserved for the evaluation, or wanted within the budget.

    every record ──> drawn for the evaluation? ── yes ─────────────────────> asked (past the gate)
                               └ no ──> budget open? ── yes ──> strategy ──> asked, or not
                                              └ no: the strategy is not asked [D20]

With ``evaluation.share`` one record in each block of L = 1/share is drawn. Its label is within the budget all
the same, for the gate makes room beforehand: before the strategy's next request it counts S + 1 + (t - 1)/L,
S being those it made. If that is below limit·t, then at any later t', with that request in S,
S + (t' - 1)/L < limit·t', because 1/L is at most the limit; and at most (t' - 1)/L + 1 blocks have begun by
t'. So both together keep ``asked < limit·t + 1``.

What a request stands for. A strategy that knows its chance c > 0 asks for one in 1/c records like the one at
hand: the label stands for 1/c of those that met an open budget. Whether the budget is open does not depend on
what the record looks like, but on what came before. So records that found it closed are taken over by the
next ones that find it open, of which each takes 1/TAKE_OVER of those that wait, asked or not: what is like
them in time stands for them, at any rate of asking. A request stands for ``carried / c`` records. Where a
slice is reserved nobody reckons so: the slice is better.
"""

from __future__ import annotations

from typing import Any, Final

from core import rng
from core.account import DRAWN_BY_STRATEGY, DRAWN_FOR_EVALUATION, NOT_DRAWN
from core.budgets import base as budgets
from core.jit import kernel
from core.queries import base as queries
from core.tree import layout as at
from core.tree.routing import leaf_at

decide = queries.dispatcher()
is_open, spend = budgets.dispatcher()

TAKE_OVER: Final = 4.0


@kernel
def draw(plan: Any, ints: Any) -> int:
    """Return DRAWN_FOR_EVALUATION if the current record is the one of its block, else NOT_DRAWN."""
    size = plan[at.PLAN_SLICE]
    if size == 0:
        return NOT_DRAWN
    block = (ints[at.MODEL_RECORDS] - 1) // size
    place = ints[at.MODEL_RECORDS] - 1 - block * size
    return DRAWN_FOR_EVALUATION if rng.integer(plan[at.PLAN_SLICE_KEY], block, size) == place else NOT_DRAWN


@kernel
def ask(
    plan: Any, knobs: Any, ints: Any, floats: Any, tree: int, node: int, drawn: int
) -> tuple[int, bool, float]:
    """Return how the current record was drawn, whether its label is asked for, and for how many it stands.

    Accounts for it [D19]. 0: its label stands for nobody, not even for itself.
    """
    budget, budget_at = plan[at.PLAN_BUDGETING], plan[at.PLAN_BUDGETING + 1]
    purse = plan[at.PLAN_BUDGET]
    reserved = drawn == DRAWN_FOR_EVALUATION
    asked, stands = reserved, 0.0
    if not reserved:
        answer = queries.NO
        t = ints[at.MODEL_RECORDS]
        returned = returned_requests(knobs, budget_at, ints)
        spent = spent_requests(plan, ints, returned, t)
        if is_open(budget, knobs, budget_at, floats, purse, spent, returned, t):
            is_leaf = ints[node + at.NODE_KIND] == at.LEAF
            answer, chance = decide(
                plan[at.PLAN_STRATEGY],
                plan,
                knobs,
                plan[at.PLAN_STRATEGY + 1],
                ints,
                floats,
                plan[at.PLAN_QUERY],
                knobs[budget_at + budgets.LIMIT],
                node,
                leaf_at(ints, tree, ints[node + at.NODE_SLOT]) if is_leaf else -1,
                t,
            )
            if plan[at.PLAN_SLICE] == 0:
                stands = stand_in(plan, ints, floats, answer != queries.NO, chance)
        else:
            ints[at.MODEL_REFUSED] += 1
            if plan[at.PLAN_SLICE] == 0:
                floats[plan[at.PLAN_EVALUATION] + at.EVALUATION_SHUT] += 1.0
        asked = answer != queries.NO
        drawn = DRAWN_BY_STRATEGY if answer == queries.AT_RANDOM else drawn
    spend(budget, knobs, budget_at, floats, purse, asked, reserved)
    # Also 0 is added: whether a strategy asks is what no processor can guess.
    ints[at.MODEL_REQUESTS] += int(asked)
    ints[at.MODEL_RESERVED] += int(reserved)
    return drawn, asked, stands


@kernel
def stand_in(plan: Any, ints: Any, floats: Any, asked: bool, chance: float) -> float:
    """Account for a record that met an open budget; return how many its label stands for, 0 without one."""
    section = plan[at.PLAN_EVALUATION]
    if chance <= queries.UNKNOWN:
        floats[section + at.EVALUATION_SHUT] = 0.0  # nobody stands in for them, another strategy neither
        return 0.0
    # Also 0 is added: whether a strategy asks is what no processor can guess.
    ints[section + at.EVALUATION_CHOSEN] += int(asked)
    if floats[section + at.EVALUATION_SHUT] == 0.0:  # as below, with one division
        stands = 1.0 / chance
        floats[section + at.EVALUATION_REACHED] += 1.0
        floats[section + at.EVALUATION_SPREAD] += stands
        return stands if asked else 0.0
    taken_over = floats[section + at.EVALUATION_SHUT] / TAKE_OVER
    floats[section + at.EVALUATION_SHUT] -= taken_over
    carried = 1.0 + taken_over
    floats[section + at.EVALUATION_REACHED] += carried
    floats[section + at.EVALUATION_SPREAD] += carried * carried / chance
    return carried / chance if asked else 0.0


@kernel
def returned_requests(knobs: Any, budget_at: int, ints: Any) -> int:
    """Return the requests that the budget takes back: with ``respend`` those declined and expired."""
    if knobs[budget_at + budgets.RESPEND] == 0.0:
        return 0
    return ints[at.MODEL_DECLINED] + ints[at.MODEL_EXPIRED]


@kernel
def spent_requests(plan: Any, ints: Any, returned: int, t: int) -> float:
    """Return the requests the gate counts before record t, those of the evaluation by their rate."""
    spent = float(ints[at.MODEL_REQUESTS] - ints[at.MODEL_RESERVED] - returned)
    if plan[at.PLAN_SLICE] > 0:
        spent += 1.0 + (t - 1) / plan[at.PLAN_SLICE]
    return spent
