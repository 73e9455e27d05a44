"""Prequential evaluation: each prediction is scored before its label is learned; all records and a window.

The counts are exact: labels, predictions and hits per class, and for the window the codes, packed into 2·b
bits a record (b = bits of a class code), so that windowed kappa and F1 are exact too.

Two baselines are counted on the same labels: the last label (kappa temporal compares with it; Žliobaitė,
Bifet, Read, Pfahringer and Holmes 2015) and the class with most labels so far, or in the window (kappa M;
Bifet, de Francisci Morales, Read, Holmes and Pfahringer 2015). As in MOA, the label of a record is counted
before the majority class is determined, the last label before the first record is class 0, and each record of
a window keeps the majority class that the window had then.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from operator import mul
from typing import Any, Final, NamedTuple

import numpy as np

from core.active.label_account import SAMPLED_FOR_EVALUATION, Account
from core.events import Event
from core.kernels.jit import called, kernel, tail
from core.kernels.records import offset
from core.layout.measures import MeasureSums
from core.layout.model import (
    ACTUAL,
    EVALUATION_ROWS,
    HIT,
    PREDICTED,
    WINDOW,
    EvaluationCounters,
    Ints,
    ModelHeader,
    window_words,
)
from core.layout.plan import PlanRecord
from core.learning_curve.forecast import CurveThen
from core.measures import class_measures
from core.measures.class_measures import Measures
from core.numeric.proportions import wilson
from core.plan import Plan
from core.publishing.coverage import Coverage


@dataclass(frozen=True, slots=True)
class Evaluation:
    """How well a model predicts; shares are in [0, 1], and 0 before the first label."""

    records: int
    labels: int
    accuracy: float
    accuracy_windowed: float
    kappa: float
    kappa_windowed: float
    kappa_m: float
    """(p - m) / (1 - m): accuracy p, and accuracy m of predicting the most frequent class so far."""
    kappa_m_windowed: float
    kappa_temporal: float
    """As kappa M, against a prediction of the last label."""
    kappa_temporal_windowed: float
    f1_rarer: float
    """F1 of the class with the fewest labels among those that have any."""
    f1_rarer_windowed: float
    label_share: float
    """Labels learned per record answered."""
    asked: int
    """Labels that were requested; the sum of answered, declined, expired and outstanding."""
    answered: int
    """Requested labels that were learned."""
    declined: int
    """Requests that will get no label."""
    expired: int
    """Requests whose label did not come in time."""
    outstanding: int
    """Requests that are still open."""
    drawn_labels: int
    """Number of labels that the unbiased accuracy uses.

    With ``evaluation.share`` these are the labels of reserved records, else requests of a strategy with known
    probabilities.
    """
    accuracy_unbiased: float
    """Estimate of the accuracy over all records; sampled records are weighted with their importance.

    NaN without sampled records, for example if the strategy has no known probabilities.
    """
    accuracy_unbiased_low: float
    """Lower end of the 95 % interval of ``accuracy_unbiased``, NaN without sampled records."""
    accuracy_unbiased_high: float
    growth_stopped: bool
    """The tree that answers reached max_leaves or max_bytes: it learns, but no longer grows [D1]."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class EvaluationDue(Event):
    """Another ``evaluation.every`` labels have been learned."""

    evaluation: Evaluation
    judged: tuple[int, ...]
    """Labels of each class so far, in the order of the schema, up to the last class that has any."""
    sums: MeasuresThen | None = field(default=None, compare=False, repr=False)
    """The sums of the measures per class at that time; None: the model does not keep them."""
    curve: CurveThen | None = field(default=None, compare=False, repr=False)
    """The learning curve at that time; None: the model keeps none."""
    sets: Coverage | None = field(default=None, compare=False, repr=False)
    """The coverage of sets at that time; None: the model has no sets."""


class MeasuresThen(NamedTuple):
    """A copy of the measures section: figures are made of it only if somebody reads them."""

    words: Ints
    room: int
    """Classes that the section has room for."""
    classes: int
    """Classes that the model knew."""
    counters: Ints
    """A copy of the EvaluationCounters."""
    is_slice: bool
    """A share of the records is reserved."""

    @staticmethod
    def of(plan: Plan, ints: Ints) -> MeasuresThen | None:
        """Return the sums of a model's buffer; quickly, for an evaluation is due after a thousand labels."""
        record = plan.record
        start, size = int(record.measures), int(record.measure_words)
        if size == 0:
            return None
        evaluation = int(record.evaluation)
        counters = ints[evaluation : evaluation + EvaluationCounters.SIZE].copy()
        words = ints[start : start + size].copy()
        is_slice = bool(record.slice)
        return MeasuresThen(words, plan.schema.n_classes, ints.item(CLASSES_AT), counters, is_slice)

    def read(self) -> Measures:
        """Return the figures."""
        section, per_weight = EvaluationCounters.read(self.counters), 1.0
        unchosen = MeasureSums.read(self.words).given
        if not self.is_slice and section.importance + unchosen > 0.0:
            per_weight = _rests_on(section, unchosen) / (section.importance + unchosen)
        return class_measures.read(self.words.view(np.float64), self.room, self.classes, per_weight)


CLASSES_AT: Final = offset(ModelHeader, "classes")


def labels_of_classes(plan: Plan, ints: Ints) -> tuple[int, ...]:
    """Return how many labels of each class the evaluation of a model has counted, in the order of its schema.

    The tuple ends with the last class that has any: the number of classes after it depends on where runs are
    cut.
    """
    k = plan.schema.n_classes
    judged = ints[plan.record.evaluation + EvaluationCounters.SIZE + ACTUAL * k :][:k]
    return tuple(judged[: int(np.flatnonzero(judged).max(initial=-1)) + 1].tolist())


def section_of(plan: Plan, ints: Ints) -> EvaluationCounters:
    """Return the evaluation section of a model's buffer."""
    return EvaluationCounters(ints, ints.view(np.float64), plan.record.evaluation)


def read(plan: Plan, ints: Ints) -> Evaluation:
    """Return the evaluation of a model's buffer."""
    model, start = ModelHeader.read(ints), int(plan.record.evaluation)
    section = EvaluationCounters.read(ints, start)
    classes = plan.schema.n_classes
    counts = ints[start + EvaluationCounters.SIZE :][: EVALUATION_ROWS * classes].tolist()
    rows = [counts[row * classes : (row + 1) * classes] for row in range(EVALUATION_ROWS)]
    accuracy, kappa, f1 = _measures(*rows[:WINDOW])
    accuracy_windowed, kappa_windowed, f1_windowed = _measures(*rows[WINDOW:])
    n, right = section.count - section.uncompared, sum(rows[HIT]) - section.uncompared_hit
    right_in_window, labels_in_window = sum(rows[WINDOW + HIT]), sum(rows[WINDOW + ACTUAL])
    unbiased, low, high = _unbiased(plan, section)
    account = Account.in_header(model)
    return Evaluation(
        records=model.records,
        labels=model.labels,
        accuracy=accuracy,
        accuracy_windowed=accuracy_windowed,
        kappa=kappa,
        kappa_windowed=kappa_windowed,
        kappa_m=_against(right, section.majority_hit, n),
        kappa_m_windowed=_against(right_in_window, section.window_majority_hit, labels_in_window),
        kappa_temporal=_against(right, section.last_hit, n),
        kappa_temporal_windowed=_against(right_in_window, section.window_last_hit, labels_in_window),
        f1_rarer=f1,
        f1_rarer_windowed=f1_windowed,
        label_share=model.labels / model.records if model.records else 0.0,
        asked=account.asked,
        answered=account.answered,
        declined=account.declined,
        expired=account.expired,
        outstanding=account.outstanding,
        drawn_labels=section.sampled,
        accuracy_unbiased=unbiased,
        accuracy_unbiased_low=low,
        accuracy_unbiased_high=high,
        growth_stopped=plan.blocks.has_stopped(ints, model.first),
    )


def _unbiased(plan: Plan, section: EvaluationCounters) -> tuple[float, float, float]:
    """Return an estimate of the accuracy over all records from the sampled records, and its 95 % interval.

    Reserved records are sampled evenly: the share of hits among them is the estimate. Records that a strategy
    chose are weighted with their importance and divided by its sum (Hájek 1971). The variance is as for a
    share of n = (Σ represented)² / Σ represented²/probability labels. These sums cover all records that the
    strategy has scored, not only the chosen records: if only likely records were chosen, the sample does not
    show how much of the stream is missing in it, but the probabilities do. Labels that are late or lost make
    n smaller.
    """
    sampled, hits = section.sampled, section.sampled_hit
    if sampled == 0:
        return math.nan, math.nan, math.nan
    if plan.spec.evaluation.slice:
        return hits / sampled, *wilson(hits, sampled)
    if not (section.importance > 0.0 and section.squares > 0.0):
        return math.nan, math.nan, math.nan  # all sampled records come from a share that was reserved earlier
    share = min(section.importance_hit / section.importance, 1.0)
    n = _rests_on(section, 0)
    return share, *wilson(share * n, n)


def _rests_on(section: EvaluationCounters, given: int) -> float:
    """Return the number of labels that an estimate over all records rests on.

    given: labels that came with their records, each of which represents this record alone.
    """
    represented, squares = section.represented + given, section.squares + given
    sampled, chosen = section.sampled + given, section.chosen + given
    if not squares > 0.0:
        return 0.0
    return float(represented * represented / squares * sampled / max(chosen, sampled))


def _measures(actual: list[int], predicted: list[int], hit: list[int]) -> tuple[float, float, float]:
    """Return accuracy, kappa and F1 of the rarer class from counts per class."""
    n = sum(actual)
    if n == 0:
        return 0.0, 0.0, 0.0
    right = sum(hit)
    # Integers as long as possible: (p0 - pe)/(1 - pe) with p0 = right/n, pe = Σ actual·predicted / n².
    chance = sum(map(mul, actual, predicted))
    kappa = (right * n - chance) / (n * n - chance) if n * n > chance else 0.0
    rarer = actual.index(min(filter(None, actual)))
    f1 = 2 * hit[rarer] / (actual[rarer] + predicted[rarer])
    return right / n, kappa, f1


def _against(right: int, baseline: int, n: int) -> float:
    """Return (p - b) / (1 - b) with the shares p = right / n and b = baseline / n; 0 if b is 1."""
    return (right - baseline) / (n - baseline) if n > baseline else 0.0


@called
def count_predictions(
    run: Any, plan: PlanRecord, model: ModelHeader, first: int, end: int, all_labels: bool
) -> None:
    """Count the predictions of rows ``first`` to ``end - 1`` of a model (core/run.py) with a known label.

    all_labels: every label is used, whether it was requested or not.
    """
    evaluation, classes = model.evaluation(plan), plan.classes
    counts, window = evaluation.counts, tail(evaluation.counts, WINDOW * classes)
    codes, majorities = tail(evaluation.counts, EVALUATION_ROWS * classes), tail(model.ints, plan.window_bits)
    # In registers: other words of the model would make the compiler store and load them again in each row.
    n, position, last, before = evaluation.count, evaluation.next, evaluation.last, evaluation.before
    last_hit, window_last_hit = evaluation.last_hit, evaluation.window_last_hit
    majority, majority_hit = evaluation.majority, evaluation.majority_hit
    recent, recent_hit = evaluation.window_majority, evaluation.window_majority_hit
    # All sizes are powers of two: 32 // bits records a word, 2·bits each, without a division.
    bits, log = plan.code_bits, plan.code_shift
    mask, pair = (1 << bits) - 1, (1 << 2 * bits) - 1
    for row in range(first, end):
        label, prediction = int(run.label[row]), int(run.prediction[row])
        if label < 0 or prediction < 0 or not (all_labels or run.asked[row] != 0):
            continue
        count_sample(plan, evaluation, label == prediction, run.sampled[row], run.importance[row])
        number = position >> (5 - log)
        shift = (position & ((1 << (5 - log)) - 1)) << (log + 1)
        old, oldest = codes[number] >> shift, -1
        if n >= plan.window:
            oldest = old & mask
            _count(window, classes, oldest, (old >> bits) & mask, -1)
            window_last_hit -= 1 if before == oldest else 0
            before = oldest
        codes[number] ^= ((old ^ (label | (prediction << bits))) & pair) << shift
        _count(window, classes, label, prediction, 1)
        _count(counts, classes, label, prediction, 1)
        repeats = 1 if last == label else 0
        last, last_hit, window_last_hit = label, last_hit + repeats, window_last_hit + repeats
        majority = larger_class(counts, majority, label)
        majority_hit += 1 if majority == label else 0
        if oldest == recent and oldest != label:  # the majority may now be another class
            recent = largest_class(window, classes)
        else:
            recent = larger_class(window, recent, label)
        number, shift = position >> 6, position & 63
        bit_before, bit = (majorities[number] >> shift) & 1, 1 if recent == label else 0
        recent_hit += bit - bit_before
        majorities[number] ^= (bit_before ^ bit) << shift
        n += 1
        position = position + 1 if position + 1 < plan.window else 0
    evaluation.count, evaluation.next, evaluation.last, evaluation.before = n, position, last, before
    evaluation.last_hit, evaluation.window_last_hit = last_hit, window_last_hit
    evaluation.majority, evaluation.majority_hit = majority, majority_hit
    evaluation.window_majority, evaluation.window_majority_hit = recent, recent_hit


@kernel
def count_sample(
    plan: PlanRecord, evaluation: EvaluationCounters, is_hit: bool, sampled: int, importance: float
) -> None:
    """Count a prediction whose record was sampled at random; sampled, importance: of the record."""
    # A reserved share is sampled evenly. Requests of a strategy count only if no share is reserved.
    if sampled == SAMPLED_FOR_EVALUATION or (importance > 0.0 and plan.slice == 0):
        right = 1 if is_hit else 0
        evaluation.sampled += 1
        evaluation.sampled_hit += right
        evaluation.importance += importance
        evaluation.importance_hit += right * importance


@kernel
def larger_class(counts, label: int, other: int) -> int:
    """Return the class with the larger count (int64[class]), the lower code if they are equal."""
    count, other_count = counts[label], counts[other]
    return other if other_count > count or (other_count == count and other < label) else label


@kernel
def largest_class(counts, classes: int) -> int:
    """Return the class with the largest count (int64[class]), the lowest code of equal counts."""
    best, largest = 0, counts[0]
    for c in range(1, classes):
        if counts[c] > largest:
            best, largest = c, counts[c]
    return best


@kernel
def _count(rows, classes: int, label: int, prediction: int, step: int) -> None:
    """Add ``step`` to the counts of a label, a prediction and, if they are equal, a hit.

    rows: int64[3·class], the rows ACTUAL, PREDICTED and HIT.
    """
    rows[ACTUAL * classes + label] += step
    rows[PREDICTED * classes + prediction] += step
    # No branch predictor foresees hits, so the sum adds 0 instead of branching.
    rows[HIT * classes + label] += step if label == prediction else 0


def repack(old_plan: Plan, old: Ints, new_plan: Plan, new: Ints) -> None:
    """Copy the evaluation section of a model to the layout of a schema with more classes."""
    source, target = section_of(old_plan, old), section_of(new_plan, new)
    new[target.start :][: EvaluationCounters.SIZE] = old[source.start :][: EvaluationCounters.SIZE]
    k, grown = old_plan.schema.n_classes, new_plan.schema.n_classes
    old_rows = source.counts[: EVALUATION_ROWS * k].reshape(EVALUATION_ROWS, k)
    new_rows = target.counts[: EVALUATION_ROWS * grown].reshape(EVALUATION_ROWS, grown)
    new_rows[:, :k] = old_rows
    window = int(old_plan.record.window)
    n = -(-window // 64)
    new[new_plan.record.window_bits :][:n] = old[old_plan.record.window_bits :][:n]
    codes, new_codes = _codes(old_plan, old), _codes(new_plan, new)
    bits, new_bits = int(old_plan.record.code_bits), int(new_plan.record.code_bits)
    if bits == new_bits:
        new_codes[:] = codes
        return
    position = np.arange(window)
    pairs = codes[position // (32 // bits)] >> (2 * bits * (position % (32 // bits)))
    mask = (1 << bits) - 1
    pairs = (pairs & mask) | (((pairs >> bits) & mask) << new_bits)
    np.bitwise_or.at(
        new_codes, position // (32 // new_bits), pairs << (2 * new_bits * (position % (32 // new_bits)))
    )


def _codes(plan: Plan, ints: Ints) -> Ints:
    """Return the packed codes of the window."""
    n = window_words(int(plan.record.window), int(plan.record.code_bits))
    codes: Ints = section_of(plan, ints).counts[EVALUATION_ROWS * plan.schema.n_classes :][:n]
    return codes
