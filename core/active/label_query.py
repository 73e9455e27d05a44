"""Label query: whether the label of an instance is requested, by sampling or by the strategy.

    every record ──> sampled for the evaluation? ── yes ─────────────────────> requested (past the budget)
                                 └ no ──> budget open? ── yes ──> strategy ──> requested, or not
                                                └ no: the strategy is not called [D20]

With ``evaluation.share`` one record in each block of L = 1/share is sampled. Its label is within the budget
too, because the budget leaves room for it: before the strategy's next request it counts S + 1 + (t - 1)/L,
where S is the number of requests that the strategy made. If that is below limit·t, then at any later t', with
that request in S, S + (t' - 1)/L < limit·t', because 1/L is at most the limit; and at most (t' - 1)/L + 1
blocks have begun by t'. So both together keep ``asked < limit·t + 1``.

The *importance* of a label is its inverse-probability weight (Horvitz and Thompson 1952; the accuracy is
Hájek's ratio, core/evaluation.py). A strategy that requests with a known probability c > 0 requests one in
1/c of the records like this one, so the label represents 1/c of the records that met an open budget. Whether
the budget is open depends on earlier records, not on this one. So a record that meets a closed budget is
represented by the next records that meet an open one: each of these takes over 1/TAKE_OVER of the records not
represented yet, whether its own label is requested or not. The importance of a label is therefore
``represented / c``. Where a share of the records is reserved for the evaluation, that sample is used instead.
"""

from __future__ import annotations

from typing import Final

from core.active.budgets import base as budgets
from core.active.label_account import NOT_SAMPLED, SAMPLED_BY_STRATEGY, SAMPLED_FOR_EVALUATION
from core.active.queries import base as queries
from core.kernels.jit import kernel
from core.kernels.records import Words
from core.layout.model import ModelHeader
from core.layout.plan import PlanRecord
from core.learners import protocol as learners
from core.numeric import rng
from core.tree import layout as at
from core.tree.byoffset.statistics import known_classes

decide = queries.dispatcher()
decide_at_leaf = queries.leaf_dispatcher()
is_open, spend = budgets.dispatcher()
uncertainty = learners.uncertainty_dispatcher()
leaf_table = learners.leaf_table_dispatcher()

TAKE_OVER: Final = 4.0


@kernel
def sample_for_evaluation(plan, ints) -> int:
    """Return SAMPLED_FOR_EVALUATION if the current record is sampled from its block, else NOT_SAMPLED."""
    size = plan[at.PLAN_SLICE]
    if size == 0:
        return NOT_SAMPLED
    block = (ints[at.MODEL_RECORDS] - 1) // size
    place = ints[at.MODEL_RECORDS] - 1 - block * size
    return (
        SAMPLED_FOR_EVALUATION if rng.integer(plan[at.PLAN_SLICE_KEY], block, size) == place else NOT_SAMPLED
    )


@kernel
def ask(
    plan, params, ints, floats, t: int, place: int, shares, scratch, sampled: int
) -> tuple[int, bool, float]:
    """Return how the current record was sampled, whether its label is requested, and its importance.

    Counts the request, if there is one [D19]. Importance 0: the label is not part of the estimate.
    """
    budget, budget_at = plan[at.PLAN_BUDGETING], plan[at.PLAN_BUDGETING + 1]
    budget_state = plan[at.PLAN_BUDGET]
    reserved = sampled == SAMPLED_FOR_EVALUATION
    asked, importance = reserved, 0.0
    if not reserved:
        answer = queries.NO
        number = ints[at.MODEL_RECORDS]
        returned = budgets.returned_requests(params, budget_at, ints)
        spent = budgets.spent_requests(plan, ints, returned, number)
        if is_open(
            budget, Words(plan, params, budget_at), Words(ints, floats, budget_state), spent, returned, number
        ):
            answer, chance = decide_here(plan, params, ints, floats, t, place, shares, scratch, number)
            if plan[at.PLAN_SLICE] == 0:
                importance = importance_of(plan, ints, floats, answer != queries.NO, chance)
        else:
            ints[at.MODEL_REFUSED] += 1
            if plan[at.PLAN_SLICE] == 0:
                floats[plan[at.PLAN_EVALUATION] + at.EVALUATION_UNREPRESENTED] += 1.0
        asked = answer != queries.NO
        sampled = SAMPLED_BY_STRATEGY if answer == queries.AT_RANDOM else sampled
    spend(budget, Words(plan, params, budget_at), Words(ints, floats, budget_state), asked, reserved)
    # Adding 0 is cheaper than a branch that the processor mispredicts.
    ints[at.MODEL_REQUESTS] += int(asked)
    ints[at.MODEL_RESERVED] += int(reserved)
    return sampled, asked, importance


@kernel
def decide_here(
    plan, params, ints, floats, t: int, place: int, shares, scratch, number: int
) -> tuple[int, float]:
    """Return the strategy's decision on record ``number``, which ended at ``place`` of block t."""
    strategy, first, state = plan[at.PLAN_STRATEGY], plan[at.PLAN_STRATEGY + 1], plan[at.PLAN_QUERY]
    kind, columns = plan[at.PLAN_LEARNER], plan[at.PLAN_COLUMNS]
    limit = params[plan[at.PLAN_BUDGETING + 1] + budgets.LIMIT]
    record, block, model = PlanRecord(plan, params, 0), Words(ints, floats, t), ModelHeader(ints, floats, 0)
    p, own = Words(plan, params, first), Words(ints, floats, state)
    if columns & at.LEAVES != 0:
        leaves = leaf_table(kind, record, block, place)
        return decide_at_leaf(strategy, record, p, model, own, limit, leaves, number)
    share, lead, weight = 0.5, 0.0, 0.0
    if columns != 0:
        share, lead, weight = uncertainty(kind, record, block, place, shares, scratch, columns)
    seen = queries.Uncertainty(share, lead, weight, known_classes(ints), number)
    return decide(strategy, record, p, model, own, limit, seen)


@kernel
def importance_of(plan, ints, floats, asked: bool, chance: float) -> float:
    """Count a record that met an open budget; return the importance of its label, 0 without a request."""
    section = plan[at.PLAN_EVALUATION]
    if chance <= queries.UNKNOWN:
        # Neither this record nor a later record of another strategy represents the earlier records.
        floats[section + at.EVALUATION_UNREPRESENTED] = 0.0
        return 0.0
    # Adding 0 is cheaper than a branch that the processor mispredicts.
    ints[section + at.EVALUATION_CHOSEN] += int(asked)
    if floats[section + at.EVALUATION_UNREPRESENTED] == 0.0:  # as below, with one division
        importance = 1.0 / chance
        floats[section + at.EVALUATION_REPRESENTED] += 1.0
        floats[section + at.EVALUATION_SQUARES] += importance
        return importance if asked else 0.0
    taken_over = floats[section + at.EVALUATION_UNREPRESENTED] / TAKE_OVER
    floats[section + at.EVALUATION_UNREPRESENTED] -= taken_over
    represented = 1.0 + taken_over
    floats[section + at.EVALUATION_REPRESENTED] += represented
    floats[section + at.EVALUATION_SQUARES] += represented * represented / chance
    return represented / chance if asked else 0.0
