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

After an alarm of the input detector with ``open_records`` the next labels are requested at random, without a
look at the budget and without the strategy. These requests count as spent like all others, so that the budget
stays closed afterwards until the records have caught up with them.
"""

from __future__ import annotations

from typing import Final

from core.active import scores
from core.active.budgets import base as budgets
from core.active.label_account import NOT_SAMPLED, SAMPLED_BY_STRATEGY, SAMPLED_FOR_EVALUATION
from core.active.queries import base as queries
from core.inputs import base as inputs
from core.kernels.jit import kernel
from core.layout.learning import LEAD, LEAVES
from core.layout.model import ModelHeader
from core.layout.plan import PlanRecord
from core.learners import dispatch as learners
from core.numeric import rng
from core.tree.statistics import known_classes

decide = queries.dispatcher()
decide_at_leaf = queries.leaf_dispatcher()
is_open, spend = budgets.dispatcher()
uncertainty = learners.uncertainty_dispatcher()
leaf_table = learners.leaf_table_dispatcher()

TAKE_OVER: Final = 4.0


@kernel
def sample_for_evaluation(plan: PlanRecord, model: ModelHeader) -> int:
    """Return SAMPLED_FOR_EVALUATION if the current record is sampled from its block, else NOT_SAMPLED."""
    size = plan.slice
    if size == 0:
        return NOT_SAMPLED
    block = (model.records - 1) // size
    place = model.records - 1 - block * size
    return SAMPLED_FOR_EVALUATION if rng.integer(plan.slice_key, block, size) == place else NOT_SAMPLED


@kernel
def ask(
    plan: PlanRecord, model: ModelHeader, place: int, shares, scratch, sampled: int
) -> tuple[int, bool, float]:
    """Return how the current record was sampled, whether its label is requested, and its importance.

    Counts the request, if there is one [D19]. Importance 0: the label is not part of the estimate.
    """
    budget, p, state = plan.budgeting, plan.parameters(plan.budgeting_at), model.section(plan.budget_state)
    reserved = sampled == SAMPLED_FOR_EVALUATION
    asked, importance = reserved, 0.0
    if not reserved:
        answer = queries.NO
        is_lent = plan.input_words != 0 and model.input_state(plan).open > 0
        returned = budgets.returned_requests(plan, model)
        spent = budgets.spent_requests(plan, model, returned, model.records)
        if is_lent:
            answer, importance = draw_after_alarm(plan, model)
        elif is_open(budget, p, state, spent, returned, model.records):
            answer, chance = decide_here(plan, model, place, shares, scratch)
            if plan.slice == 0:
                importance = importance_of(plan, model, answer != queries.NO, chance)
        else:
            model.refused += 1
            if plan.slice == 0:
                model.evaluation(plan).unrepresented += 1.0
        asked = answer != queries.NO
        sampled = SAMPLED_BY_STRATEGY if answer == queries.AT_RANDOM else sampled
    spend(budget, p, state, asked, reserved)
    # Adding 0 is cheaper than a branch that the processor mispredicts.
    model.requests += int(asked)
    model.reserved += int(reserved)
    return sampled, asked, importance


@kernel
def draw_after_alarm(plan: PlanRecord, model: ModelHeader) -> tuple[int, float]:
    """Return whether the current label is requested because of changed inputs, and its importance.

    The label is part of the estimate only if the strategy's own labels are.
    """
    chance = inputs.open_share(plan)
    is_asked = rng.uniform(plan.query_key, model.records << rng.DRAW_BITS) < chance
    answer = queries.AT_RANDOM if is_asked else queries.NO
    if plan.slice != 0 or model.evaluation(plan).represented == 0.0:
        return answer, 0.0
    return answer, importance_of(plan, model, is_asked, chance)


@kernel
def decide_here(plan: PlanRecord, model: ModelHeader, place: int, shares, scratch) -> tuple[int, float]:
    """Return the strategy's decision on the current record, which ended at a place of the first block."""
    strategy, p, state = plan.strategy, plan.parameters(plan.strategy_at), model.section(plan.query_state)
    block, limit = model.block(0), budgets.limits_of(plan).limit
    if plan.columns & LEAVES != 0:
        leaves = leaf_table(plan.learner, plan, block, place)
        return decide_at_leaf(strategy, plan, p, model, state, limit, leaves, model.records)
    doubt = uncertainty_of(plan, model, place, shares, scratch, plan.columns, model.records)
    return decide(strategy, plan, p, model, state, limit, doubt)


@kernel
def uncertainty_of(
    plan: PlanRecord, model: ModelHeader, place: int, shares, scratch, columns: int, number: int
) -> queries.Uncertainty:
    """Return how sure the first block is of a record.

    ``columns`` are those of the learner's ``uncertainty``, ``number`` is the record's. The share follows from
    the answer by the score of the plan. If the plan has none, the learner returns the share.
    """
    known = known_classes(model)
    share, lead, weight = 0.5, 0.0, 0.0
    if columns != 0:
        share, lead, weight = uncertainty(plan.learner, plan, model.block(0), place, shares, scratch, columns)
    if plan.score != scores.NONE:
        share = scores.share_of(plan.score, shares, model.classes, known)
        if columns & LEAD != 0:
            lead = min(lead, scores.certainty_of(share, known))
    return queries.Uncertainty(share, lead, weight, known, number)


@kernel
def importance_of(plan: PlanRecord, model: ModelHeader, asked: bool, chance: float) -> float:
    """Count a record that met an open budget; return the importance of its label, 0 without a request."""
    evaluation = model.evaluation(plan)
    if chance <= queries.UNKNOWN:
        # Neither this record nor a later record of another strategy represents the earlier records.
        evaluation.unrepresented = 0.0
        return 0.0
    # Adding 0 is cheaper than a branch that the processor mispredicts.
    evaluation.chosen += int(asked)
    if evaluation.unrepresented == 0.0:  # as below, with one division
        importance = 1.0 / chance
        evaluation.represented += 1.0
        evaluation.squares += importance
        return importance if asked else 0.0
    taken_over = evaluation.unrepresented / TAKE_OVER
    evaluation.unrepresented -= taken_over
    represented = 1.0 + taken_over
    evaluation.represented += represented
    evaluation.squares += represented * represented / chance
    return represented / chance if asked else 0.0
