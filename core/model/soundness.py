"""Soundness of a model's words: the counts, codes, kinds and positions that kernels rely on.

Compiled code works on bare pointers: if one of these words is wrong, the code may read or write outside of
the model, or loop for ever. So all of them are checked before a buffer from outside becomes a model
(core/model/snapshot.py): a snapshot's checksum shows that it is complete, not that its author is trusted.
Numbers that are only used in arithmetic may have any value. Further invariants of a model are checked by
core/model/validate.py.

One kernel goes over the buffer and returns the number of a sentence; a plug-in's words are checked by its
kernel ``problem`` (core/plugin.py). It takes microseconds for a small model, and reads memory that the
model's first records would read.
"""

from __future__ import annotations

import importlib
import math
from typing import Final

import numpy as np

from core import problems
from core.active.budgets import base as budgets
from core.active.queries import base as queries
from core.calibrators import base as calibrators
from core.conformal import conformal_sets
from core.drift import base as drift
from core.errors import SnapshotError
from core.evaluation import largest_class
from core.inputs import base as inputs
from core.kernels import jit
from core.kernels.jit import kernel, tail, words_at
from core.kernels.records import Words, offset
from core.layout.curve import HIT as HIT_WEIGHT
from core.layout.curve import INTERVAL, MOST_INTERVALS, SQUARES, WEIGHT, LearningCurve
from core.layout.measures import LABELS, UNSET, MeasureSums
from core.layout.model import (
    ACTUAL,
    EVALUATION_ROWS,
    HIT,
    PREDICTED,
    WINDOW,
    Block,
    EvaluationCounters,
    Ints,
    ModelHeader,
)
from core.layout.plan import PlanRecord, plan_at
from core.layout.published import Calibration
from core.learners import dispatch as learners
from core.model.buffers import block_places
from core.plan import Plan
from core.problems import MOST, PLUGIN, SOUND, in_block, of_plugin

SENTENCES: Final = (
    "counters must be from 0 to 2**53",
    "classes must be from 0 to the number of classes in the schema",
    "level must be control (0), warning (1) or drift (2)",
    "a background block is stale (1) or not (0)",
    "values seen must be from 0 to the room for values, and all of it unless the attribute is open",
    "evaluation counts must add up to the evaluated predictions",
    "the position in the window must follow from the number of evaluated predictions",
    "window counts must equal the numbers of codes in the window",
    "hits of baselines must follow from the labels in the window, and be at most the compared predictions",
    "sums over sampled records must be numbers of at least 0, and hits at most the sampled records",
    "measures must be finite sums, with a known basis and counts from 0 to 2**53",
    "the learning curve must have finite sums of at least 0, and end its next interval after whole steps",
    "calibration must have a known basis, counts from 0 to 2**53 and finite sums of at least 0",
    "sets must have a finite threshold, a known basis, counts from 0 to 2**53 and finite sums of at least 0",
)
(
    COUNTERS,
    CLASSES,
    LEVEL,
    STALE,
    VALUES,
    JUDGED,
    POSITION,
    IN_WINDOW,
    BASELINES,
    SAMPLED,
    MEASURED,
    CURVE,
    CALIBRATED,
    SETS,
) = range(1, len(SENTENCES) + 1)

FIRST_SUM: Final = offset(MeasureSums, "product")
OCTAVES: Final = offset(MeasureSums, "octaves")
FIRST_COUNTER: Final = offset(ModelHeader, "records")
HEADER_WORDS: Final = ModelHeader.SIZE

DETECTOR: Final = offset(PlanRecord, "drift")
STRATEGY: Final = offset(PlanRecord, "strategy")
BUDGET: Final = offset(PlanRecord, "budgeting")
INPUTS: Final = offset(PlanRecord, "inputs")
CALIBRATOR: Final = offset(PlanRecord, "calibrator")
LEARNER: Final = offset(PlanRecord, "learner")
"""Words of the plan that identify the owners of problems."""

detector_problem = drift.problem_dispatcher()
strategy_problem = queries.problem_dispatcher()
budget_problem = budgets.problem_dispatcher()
inputs_problem = inputs.problem_dispatcher()
calibrator_problem = calibrators.problem_dispatcher()
block_problem = learners.problem_dispatcher()


def check(plan: Plan, ints: Ints) -> None:
    """Raise SnapshotError if a buffer of a plan's sizes has words that are unsafe for kernels."""
    sentence = problem(plan, ints)
    if sentence is None and plan.record.open_values:
        sentence = _nameless_value(plan, ints)
    if sentence is not None:
        msg = f"snapshot holds words that no model has: {sentence}"
        raise SnapshotError(msg)


def problem(plan: Plan, ints: Ints) -> str | None:
    """Return a sentence about invalid words of a buffer, None if there are none; its length must be right."""
    jit.register(ints)
    number = inspect(plan.address, ints.ctypes.data, plan.blocks.blank_address)
    if number != SOUND:
        return _sentence(plan, number)
    for block, t in enumerate(block_places(ints)):
        sentence = plan.blocks.problem(ints, t)
        if sentence is not None:
            return f"{plan.blocks.name_of(block)}: {sentence}"
    return None


def _nameless_value(plan: Plan, ints: Ints) -> str | None:
    """Return a sentence if more values were seen than have names: open attributes have room to spare."""
    seen = ModelHeader.over(ints).values_seen(plan.record)[: len(plan.values_index)].tolist()
    for attribute, n in zip(plan.values_index, seen, strict=True):
        if n > len(plan.schema.attributes[attribute].values):
            return SENTENCES[VALUES - 1]
    return None


def _sentence(plan: Plan, number: int) -> str:
    where = problems.read(number)
    if where.plugin == 0:
        return SENTENCES[where.sentence - 1]
    learner = plan.spec.learner
    block = plan.blocks.name_of(where.block)
    place = f"{block}: {plan.blocks.place_name} {where.place}: " if where.place >= 0 else ""
    if where.plugin == LEARNER:
        sentence = learners.kernels_of(learner).PROBLEMS[where.sentence - 1]
        return f"{place or f'{block}: '}{sentence}"
    plugin = {
        DETECTOR: plan.spec.drift,
        STRATEGY: plan.spec.query,
        BUDGET: plan.spec.budget,
        INPUTS: plan.spec.inputs,
        CALIBRATOR: plan.spec.calibration,
        **dict(learner.plugins()),
    }[where.plugin]
    sentences = importlib.import_module(type(plugin).__module__).PROBLEMS
    return f"{place}{plugin.name}: {sentences[where.sentence - 1]}"


@kernel("int64(int64, int64, int64)")
def inspect(plan_address: int, address: int, blank_address: int) -> int:
    """Return a problem of a buffer, or SOUND; blank_address: BlockLayout.blank_address."""
    plan = plan_at(plan_address)
    ints, floats = words_at(address)
    model = ModelHeader(ints, floats, 0)
    problem = header_problem(plan, model)
    if problem == SOUND:
        problem = evaluation_problem(plan, model)
    if problem == SOUND and plan.measure_words != 0:
        problem = measures_problem(plan, MeasureSums(ints, floats, plan.measures))
    if problem == SOUND and plan.curve_words != 0:
        problem = curve_problem(model, LearningCurve(ints, floats, plan.curve))
    if problem == SOUND and plan.publishes != 0:
        problem = publishing_problem(plan, model)
    if problem == SOUND:
        problem = section_problem(plan, model)
    block, number = Block(ints, floats, model.first), 0
    while problem == SOUND and block.start < model.words:
        words = Words(ints, floats, block.start)
        problem = block_problem(plan.learner, plan, words, blank_address)
        if problem != SOUND and problem & PLUGIN == 0:
            problem = of_plugin(LEARNER, problem)
        problem = in_block(number, problem)
        block = Block(ints, floats, block.start + block.words)
        number += 1
    return problem


@kernel
def header_problem(plan: PlanRecord, model: ModelHeader) -> int:
    """Return a problem of the model's header or of the values it has seen, or SOUND."""
    for position in range(FIRST_COUNTER, HEADER_WORDS):
        if not 0 <= model.ints[position] <= MOST:
            return COUNTERS
    if model.classes > plan.classes:
        return CLASSES
    if model.level > drift.DRIFT:
        return LEVEL
    if model.background_stale > 1:
        return STALE
    seen = model.values_seen(plan)
    for j in range(plan.nominal):
        room = plan.nominal_column(j).room
        if not 0 <= seen[j] <= room or (plan.open_values == 0 and seen[j] != room):
            return VALUES
    return SOUND


@kernel
def evaluation_problem(plan: PlanRecord, model: ModelHeader) -> int:
    """Return a problem of the evaluation, or SOUND."""
    evaluation, k, window = model.evaluation(plan), plan.classes, plan.window
    judged = evaluation.count
    if not 0 <= judged <= MOST:
        return JUDGED
    if evaluation.next != judged % window:
        return POSITION
    in_window = min(judged, window)
    window_counts = np.zeros((WINDOW, k), dtype=np.int64)
    for position in range(in_window):
        actual, predicted = pair_at(plan, evaluation, position)
        if actual >= k or predicted >= k:
            return IN_WINDOW
        window_counts[ACTUAL, actual] += 1
        window_counts[PREDICTED, predicted] += 1
        if actual == predicted:
            window_counts[HIT, actual] += 1
    labels, predictions, counts = 0, 0, evaluation.counts
    for c in range(k):
        for row in range(WINDOW):
            if not window_counts[row, c] <= counts[row * k + c] <= judged:
                return JUDGED
            if counts[(WINDOW + row) * k + c] != window_counts[row, c]:
                return IN_WINDOW
        actual, predicted = counts[ACTUAL * k + c], counts[PREDICTED * k + c]
        if counts[HIT * k + c] > min(actual, predicted):
            return JUDGED
        labels += actual
        predictions += predicted
    if labels != judged or predictions != judged:
        return JUDGED
    problem = baselines_problem(plan, evaluation, in_window)
    if problem != SOUND:
        return problem
    return sample_problem(evaluation)


@kernel
def pair_at(plan: PlanRecord, evaluation: EvaluationCounters, position: int) -> tuple[int, int]:
    """Return label and prediction at a position of the window."""
    bits = plan.code_bits
    per_word, mask = 32 // bits, (1 << bits) - 1
    codes = tail(evaluation.counts, EVALUATION_ROWS * plan.classes)
    number = position // per_word
    pair = codes[number] >> (2 * bits * (position - number * per_word))
    return pair & mask, (pair >> bits) & mask


@kernel
def sample_problem(evaluation: EvaluationCounters) -> int:
    """Return a problem of the sums over sampled records, or SOUND."""
    if not 0 <= evaluation.sampled_hit <= evaluation.sampled <= MOST or not 0 <= evaluation.chosen <= MOST:
        return SAMPLED
    is_legal = 0.0 <= evaluation.importance < math.inf
    is_legal = is_legal and 0.0 <= evaluation.importance_hit < math.inf
    is_legal = is_legal and 0.0 <= evaluation.represented < math.inf
    is_legal = is_legal and 0.0 <= evaluation.squares < math.inf
    is_legal = is_legal and 0.0 <= evaluation.unrepresented < math.inf
    return SOUND if is_legal else SAMPLED


@kernel
def measures_problem(plan: PlanRecord, sums: MeasureSums) -> int:
    """Return a problem of the sums of the measures, or SOUND."""
    is_legal = UNSET <= sums.basis <= LABELS and 0 <= sums.overflow <= 1
    is_legal = is_legal and 0 <= sums.answered <= MOST and 0 <= sums.given <= MOST
    is_legal = is_legal and -MOST <= sums.octaves <= 0 and sums.product >= 0.0
    cells = tail(sums.floats, sums.start)
    for position in range(FIRST_SUM, plan.measure_words):
        is_legal = is_legal and (position == OCTAVES or abs(cells[position]) < math.inf)
    return SOUND if is_legal else MEASURED


@kernel
def curve_problem(model: ModelHeader, curve: LearningCurve) -> int:
    """Return a problem of the learning curve, or SOUND; the header was checked."""
    is_legal = 0 <= curve.began <= MOST and 0 <= curve.step <= MOST and 0 <= curve.restarts <= MOST
    is_legal = is_legal and 0 <= curve.intervals < MOST_INTERVALS
    if curve.step > 0:
        end = curve.began + (curve.intervals + 1) * curve.step
        is_legal = is_legal and curve.began <= model.labels and model.interval_end == end
    for number in range(MOST_INTERVALS):
        interval = tail(curve.cells, number * INTERVAL)
        is_legal = is_legal and 0.0 <= interval[HIT_WEIGHT] <= interval[WEIGHT] < math.inf
        is_legal = is_legal and 0.0 <= interval[SQUARES] < math.inf
    return SOUND if is_legal else CURVE


@kernel
def publishing_problem(plan: PlanRecord, model: ModelHeader) -> int:
    """Return a problem of calibrators and sets, or SOUND."""
    if plan.calibration_words != 0:
        section = Calibration(model.ints, model.floats, plan.calibration)
        is_legal = UNSET <= section.basis <= LABELS and 0 <= section.labels <= MOST
        if not (is_legal and 0.0 <= section.weight < math.inf):
            return CALIBRATED
        for c in range(plan.classes):
            state = section.state_of(c, plan.calibrator_words)
            number = calibrator_problem(plan.calibrator, plan.parameters(plan.calibrator_at), state)
            if number != SOUND:
                return of_plugin(CALIBRATOR, number)
    if plan.conformal_words != 0:
        sets = conformal_sets.state_of(plan, model)
        is_legal = (
            UNSET <= sets.basis <= LABELS
            and conformal_sets.LOWEST <= sets.threshold <= conformal_sets.HIGHEST
        )
        is_legal = is_legal and 0 <= sets.steps <= MOST and 0 <= sets.labels <= MOST
        is_legal = is_legal and 0 <= sets.sets <= MOST and 0 <= sets.classes <= MOST
        is_legal = is_legal and 0 <= sets.single <= sets.sets and 0 <= sets.size <= plan.classes
        is_legal = is_legal and 0.0 <= sets.weight < math.inf and 0.0 <= sets.squares < math.inf
        if not (is_legal and 0.0 <= sets.covered < math.inf):
            return SETS
    return SOUND


@kernel
def baselines_problem(plan: PlanRecord, evaluation: EvaluationCounters, in_window: int) -> int:
    """Return a problem of the counts of the baselines, or SOUND; codes and counts of labels were checked."""
    k, size, judged, counts = plan.classes, plan.window, evaluation.count, evaluation.counts
    last, right = evaluation.before, 0
    if not 0 <= last < max(k, 1) or not 0 <= evaluation.last < max(k, 1):
        return BASELINES
    repeats, majority = 0, 0
    first = evaluation.next if in_window == size else 0
    for i in range(in_window):
        position = first + i if first + i < size else first + i - size
        label, _ = pair_at(plan, evaluation, position)
        repeats += 1 if label == last else 0
        last = label
    window_bits = tail(evaluation.ints, plan.window_bits)
    for number in range((size + 63) // 64):
        bits = window_bits[number]
        for bit in range(64):
            if (bits >> bit) & 1 != 0:
                majority += 1
                if number * 64 + bit >= in_window:
                    return BASELINES
    for c in range(k):
        right += counts[HIT * k + c]
    uncompared = evaluation.uncompared
    fits = 0 <= uncompared <= judged - in_window
    fits = fits and 0 <= evaluation.uncompared_hit <= min(uncompared, right)
    fits = fits and (in_window == 0 or last == evaluation.last)
    fits = fits and evaluation.window_last_hit == repeats
    fits = fits and evaluation.window_majority_hit == majority
    fits = fits and repeats <= evaluation.last_hit <= judged - uncompared
    fits = fits and 0 <= evaluation.majority_hit <= judged - uncompared
    fits = fits and evaluation.majority == largest_class(counts, k)
    fits = fits and evaluation.window_majority == largest_class(tail(counts, WINDOW * k), k)
    return SOUND if fits else BASELINES


@kernel
def section_problem(plan: PlanRecord, model: ModelHeader) -> int:
    """Return a problem of the states of plug-ins that a model has once, or SOUND."""
    number = detector_problem(plan.drift, plan.parameters(plan.drift_at), model.section(plan.detector_state))
    if number != SOUND:
        return of_plugin(DETECTOR, number)
    number = strategy_problem(
        plan.strategy, plan.parameters(plan.strategy_at), model.section(plan.query_state)
    )
    if number != SOUND:
        return of_plugin(STRATEGY, number)
    number = budget_problem(
        plan.budgeting, plan.parameters(plan.budgeting_at), model.section(plan.budget_state)
    )
    if number != SOUND:
        return of_plugin(BUDGET, number)
    if plan.input_words != 0:
        number = inputs_problem(plan.inputs, plan, plan.parameters(plan.inputs_at), model.input_state(plan))
        if number != SOUND:
            return of_plugin(INPUTS, number)
    return SOUND
