"""Intervals of the learning curve: a kernel ends one after each so many labels.

The weights are those of ``accuracy_unbiased`` (core/evaluation.py). With a reserved share its labels count
once. Otherwise labels with a known chance count with their importance. If no label of the interval was
requested, each judged label counts once: all labels came without a choice of the model. Labels that a
strategy without known chances has chosen do not show the accuracy over all records: their interval is empty.
"""

from __future__ import annotations

from core.kernels.jit import called, kernel
from core.layout.curve import (
    FIRST_STEP,
    HIT,
    INTERVAL,
    MOST_INTERVALS,
    NEVER,
    SQUARES,
    WEIGHT,
    LearningCurve,
)
from core.layout.model import HIT as HIT_ROW
from core.layout.model import ModelHeader
from core.layout.plan import PlanRecord


@called
def end_interval(plan: PlanRecord, model: ModelHeader) -> None:
    """End the interval at ``model.interval_end``, or begin the curve."""
    if plan.curve_words == 0:
        model.interval_end = NEVER
        return
    curve = LearningCurve(model.ints, model.floats, plan.curve)
    if curve.step == 0:
        begin(plan, model, curve, model.labels - 1)
        return
    evaluation, hits = model.evaluation(plan), hits_of(plan, model)
    sampled, judged = float(evaluation.sampled - curve.sampled), float(evaluation.count - curve.judged)
    importance = evaluation.importance - curve.importance
    weight, hit, n = 0.0, 0.0, 0.0
    if plan.slice != 0:
        weight, hit, n = sampled, float(evaluation.sampled_hit - curve.sampled_hit), sampled
    elif importance > 0.0:
        weight, hit = importance, evaluation.importance_hit - curve.importance_hit
        chosen = float(evaluation.chosen - curve.chosen)
        represented, squares = evaluation.represented - curve.represented, evaluation.squares - curve.squares
        n = sampled  # if labels are late, there may be no record that was scored in this interval
        if squares > 0.0:
            n = min(n, represented * represented / squares * sampled / max(chosen, sampled))
    elif model.replies == curve.replies:
        weight, hit, n = judged, float(hits - curve.hits), judged
    if n > 0.0:
        at = curve.intervals * INTERVAL
        curve.cells[at + WEIGHT] = weight
        curve.cells[at + HIT] = min(max(hit, 0.0), weight)
        curve.cells[at + SQUARES] = weight * weight / n
    curve.intervals += 1
    if curve.intervals == MOST_INTERVALS:
        join(curve)
    note(plan, model, curve, hits)


@kernel
def begin(plan: PlanRecord, model: ModelHeader, curve: LearningCurve, labels: int) -> None:
    """Begin the curve after a number of labels; earlier intervals are forgotten."""
    for position in range(MOST_INTERVALS * INTERVAL):
        curve.cells[position] = 0.0
    curve.began, curve.step, curve.intervals = labels, FIRST_STEP, 0
    note(plan, model, curve, hits_of(plan, model))


@kernel
def join(curve: LearningCurve) -> None:
    """Join each two neighbours to one interval."""
    half = MOST_INTERVALS // 2 * INTERVAL
    for position in range(half):
        pair, place = position // INTERVAL, position % INTERVAL
        first = 2 * pair * INTERVAL + place
        curve.cells[position] = curve.cells[first] + curve.cells[first + INTERVAL]
    for position in range(half, 2 * half):
        curve.cells[position] = 0.0
    curve.intervals = MOST_INTERVALS // 2
    curve.step *= 2


@kernel
def note(plan: PlanRecord, model: ModelHeader, curve: LearningCurve, hits: int) -> None:
    """Keep the counters at the beginning of the next interval, and determine its end."""
    evaluation = model.evaluation(plan)
    curve.judged, curve.hits, curve.replies = evaluation.count, hits, model.replies
    curve.sampled, curve.sampled_hit = evaluation.sampled, evaluation.sampled_hit
    curve.chosen = evaluation.chosen
    curve.importance, curve.importance_hit = evaluation.importance, evaluation.importance_hit
    curve.represented, curve.squares = evaluation.represented, evaluation.squares
    model.interval_end = curve.began + (curve.intervals + 1) * curve.step


@kernel
def hits_of(plan: PlanRecord, model: ModelHeader) -> int:
    """Return the hits among all predictions evaluated."""
    hits, counts = 0, model.evaluation(plan).counts
    for c in range(plan.classes):
        hits += counts[HIT_ROW * plan.classes + c]
    return hits


def begin_after_drift(plan: PlanRecord, model: ModelHeader) -> None:
    """Let the next label begin the curve again: older accuracies show nothing of the time after a drift."""
    if plan.curve_words == 0:
        return
    curve = LearningCurve(model.ints, model.floats, int(plan.curve))
    curve.step = 0
    curve.restarts += 1
    model.interval_end = 0
