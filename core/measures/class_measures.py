"""Measures: figures per class and of class shares, made of the sums of a model, each with a 95 % interval.

Weighted sums are divided by sums of weights (Hájek 1971). Intervals take (Σ weight)² / Σ weight² for the
number of labels (Kish 1965), among the labels on which the figure rests:

- precision, recall: Wilson's interval. F1: the same with n / (2 - F1) labels, of labels and predictions
  together, which has the variance of the delta method (Takahashi and others 2022);
- balanced accuracy: the intervals of the recalls combined (MOVER; Zou and Donner 2008);
- kappa: the interval of the accuracy, with the agreement by chance taken as known (Cohen 1960);
- log-loss, Brier score: the normal interval of a weighted mean;
- calibration error (Guo, Pleiss, Sun and Weinberger 2017): the normal interval of the sum of gaps. The
  estimate is biased upwards: with few labels a calibrated model has gaps, too;
- AUC: of a histogram, in which pairs within a bin count one half. The interval is that of DeLong, DeLong and
  Clarke-Pearson (1988). The share of such pairs, halved, bounds the error by the bins (``auc_error``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from core.layout.measures import (
    ACTUAL,
    HIT,
    LABELS,
    MOST_CLASSES,
    PREDICTED,
    SQUARED,
    MeasureSums,
    MeasureTables,
)
from core.layout.model import Floats
from core.measures import powered
from core.measures.estimate import UNKNOWN, Estimate
from core.measures.figures import (
    AUC,
    AUC_ERROR,
    BALANCED,
    CHOSEN,
    CLASS_AUC,
    CLASS_FIGURES,
    F1,
    KAPPA,
    MODEL_FIGURES,
    PRECISION,
    RECALL,
    WEIGHT,
    write_aucs,
    write_figures,
)
from core.measures.powered import Powered
from core.numeric.proportions import NORMAL_95

LN_2: Final = 0.6931471805599453


@dataclass(frozen=True, slots=True)
class ClassMeasures:
    """The figures of one class."""

    labels: float
    """Sum of the weights of the judged labels of the class."""
    predictions: float
    """Sum of the weights of the judged predictions of the class."""
    precision: Estimate
    recall: Estimate
    f1: Estimate
    auc: Estimate
    """Of the share of the class, against all other classes."""
    auc_error: float
    """Largest error of the AUC by its bins: half the share of pairs that are in the same bin."""


@dataclass(frozen=True, slots=True)
class Measures:
    """The figures of a model."""

    basis: Literal["records", "labels"]
    """records: they represent all records; labels: the judged labels, which may be a biased choice."""
    accuracy: Powered
    """Prediction-powered; not defined if the basis is labels."""
    kappa: Estimate
    balanced_accuracy: Estimate
    log_loss: Estimate
    """In nats; a share below 2.2e-16 counts as 2.2e-16."""
    brier: Estimate
    """With up to two classes from 0 to 1, of the second class; else summed over all classes, from 0 to 2."""
    auc: Estimate
    """Mean of the classes that have labels, all against the others; of two classes, the AUC of either."""
    calibration_error: Estimate
    """Expected calibration error of the share of the class answered, in 15 bins."""
    classes: tuple[ClassMeasures, ...]
    """By class code."""
    confusion: Floats | None
    """Sums of weights, float64[label, prediction]; None: a class is beyond the 32 of the matrix."""


def read(words: Floats, room: int, classes: int, per_weight: float = 1.0) -> Measures:
    """Return the measures of a section: float64 words with room for a number of classes.

    classes: known; per_weight: number of labels, per sum of weights, that the accuracy rests on. There may be
    records whose label was unlikely to be requested, and the labels do not show them.
    """
    sums, tables = MeasureSums.read(words.view(np.int64)), MeasureTables.of(words, room)
    is_whole, side = sums.overflow == 0, len(tables.matrix)
    rows = tables.rows.copy()
    for row, counts in (
        (HIT, tables.matrix.diagonal()),
        (ACTUAL, tables.matrix.sum(1)),
        (PREDICTED, tables.matrix.sum(0)),
    ):
        rows[row, :side] += counts
        rows[SQUARED + row, :side] += counts
    out = np.full(MODEL_FIGURES + classes * CLASS_FIGURES, math.nan)
    write_figures(rows, classes, out)
    scored = float(tables.histograms[0].sum()) if room else 0.0
    if is_whole and scored > 0.0:
        histograms = tables.histograms
        if room == 2:
            histograms = np.concatenate((histograms, histograms[:, ::-1, ::-1]))
        write_aucs(rows, histograms, classes, scored, out)
    figures = out.tolist()
    judged = float(rows[ACTUAL].sum())
    accuracy = powered.NOTHING
    if sums.basis != LABELS and judged > 0.0:
        share = float(rows[HIT].sum()) / judged
        accuracy = powered.powered(sums, float(tables.gaps.sum()), scored, share, judged * per_weight)
    squares = scored - sums.weight + sums.squares
    log_loss = _mean(
        _log_loss(sums) + sums.weighted_log_loss,
        _log_loss(sums) + sums.square_log_loss,
        sums.log_loss_squares + sums.square_log_loss_squares,
        scored,
        squares,
    )
    brier = _mean(
        sums.brier + sums.weighted_brier,
        sums.brier + sums.square_brier,
        sums.brier_squares + sums.square_brier_squares,
        scored,
        squares,
    )
    of_class = (
        figures[start : start + CLASS_FIGURES] for start in range(MODEL_FIGURES, len(figures), CLASS_FIGURES)
    )
    return Measures(
        basis="labels" if sums.basis == LABELS else "records",
        accuracy=accuracy,
        kappa=Estimate(*figures[KAPPA : KAPPA + 3]),
        balanced_accuracy=Estimate(*figures[BALANCED : BALANCED + 3]),
        log_loss=log_loss if is_whole else UNKNOWN,
        brier=Estimate(*(part / (2.0 if classes <= 2 else 1.0) for part in brier)) if is_whole else UNKNOWN,
        auc=Estimate(*figures[AUC : AUC + 3]),
        calibration_error=_calibration_error(sums, tables.gaps, scored) if is_whole else UNKNOWN,
        classes=tuple(map(_of_class, of_class)),
        confusion=(tables.matrix + tables.weighted_matrix)[:classes, :classes]
        if is_whole and classes <= MOST_CLASSES
        else None,
    )


def _of_class(figures: list[float]) -> ClassMeasures:
    return ClassMeasures(
        figures[WEIGHT],
        figures[CHOSEN],
        Estimate(*figures[PRECISION : PRECISION + 3]),
        Estimate(*figures[RECALL : RECALL + 3]),
        Estimate(*figures[F1 : F1 + 3]),
        Estimate(*figures[CLASS_AUC : CLASS_AUC + 3]),
        figures[AUC_ERROR],
    )


def _log_loss(sums: MeasureSums) -> float:
    """Return the sum of the log-losses of labels of weight 1."""
    return -(math.log(sums.product) + sums.octaves * LN_2) if sums.product > 0.0 else 0.0


def _mean(once: float, square_once: float, square_twice: float, weight: float, squares: float) -> Estimate:
    """Return a weighted mean; square_…: sums of values and of squared values with squared weights."""
    if not weight > 0.0:
        return UNKNOWN
    mean, n = once / weight, weight * weight / squares
    if not n > 1.0:
        return Estimate(mean, math.nan, math.nan)
    spread = max(square_twice - 2.0 * mean * square_once + mean * mean * squares, 0.0) * n / (n - 1.0)
    half = NORMAL_95 * math.sqrt(spread) / weight
    return Estimate(mean, max(mean - half, 0.0), mean + half)


def _calibration_error(sums: MeasureSums, gaps: Floats, scored: float) -> Estimate:
    if not scored > 0.0:
        return UNKNOWN
    error = float(np.abs(gaps).sum()) / scored
    hits = float(gaps.sum()) + sums.claims + sums.weighted_claims - sums.weighted_hits
    squares = (hits - 2.0 * sums.hit_claims + sums.claim_squares) + (
        sums.square_hits - 2.0 * sums.square_hit_claims + sums.square_claim_squares
    )
    half = NORMAL_95 * math.sqrt(max(squares, 0.0)) / scored
    return Estimate(error, max(error - half, 0.0), min(error + half, 1.0))
