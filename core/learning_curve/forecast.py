"""Forecast: what more labels buy, with a band of 90 %, and advice whether to go on asking for labels.

- ``stop``: the upper end of the gain by MORE more labels is below ``evaluation.worth``.
- ``ask again after drift``: the detector reported a drift less than MORE labels ago, or the accuracy of the
  newest interval is far below what the earlier intervals let expect. In the second case there is no forecast.
- ``go on``: neither; also while there are too few labels for a forecast.

There is no advice if no label shows the accuracy over all records (core/learning_curve/intervals.py).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np

from core.kernels.records import offset
from core.layout.curve import HIT, INTERVAL, MOST_INTERVALS, SQUARES, WEIGHT, LearningCurve
from core.layout.model import Floats, Ints, ModelHeader
from core.learning_curve import fit
from core.learning_curve.fit import EXPECTED, EXPECTED_SPREAD, GAIN, GAIN_SPREAD, MEAN, MORE, SPREAD
from core.measures.estimate import UNKNOWN, Estimate
from core.plan import Plan

Advice = Literal["stop", "go on", "ask again after drift"]

NORMAL_90: Final = 1.6448536269514722
"""Two-sided quantile of the standard normal distribution at 90 %."""
FAR_BELOW: Final = 3.0
"""Standard deviations below the expected accuracy at which an interval counts as a change of the stream."""
LEAST_INTERVALS: Final = 4
LEAST_LABELS: Final = 50.0
"""Labels that the accuracies of the curve rest on, below which there is no forecast."""

LABELS_AT: Final = offset(ModelHeader, "labels")


@dataclass(frozen=True, slots=True)
class Interval:
    """A part of the curve."""

    first: int
    """Labels that the model had learned before it."""
    last: int
    """Labels that it had learned at its end."""
    accuracy: Estimate
    """Accuracy over all records in it, with a band of 90 %."""
    n: float
    """Number of labels that this rests on."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """The learning curve of a model, the accuracy to expect after MORE more labels, and the advice."""

    intervals: tuple[Interval, ...]
    """The intervals in which any label shows the accuracy, the oldest first."""
    accuracy: Estimate
    gain: Estimate
    """The part of the difference that is due to the labels: at least 0."""
    advice: Advice | None

    def to_dict(self) -> dict[str, Any]:
        """Return the members of an evaluation."""
        return {
            "advice": self.advice,
            **_with_ends("accuracy_forecast", self.accuracy),
            **_with_ends("gain_forecast", self.gain),
            "learning_curve": {
                "labels": [[interval.first, interval.last] for interval in self.intervals],
                "accuracy": [list(interval.accuracy) for interval in self.intervals],
            },
        }


@dataclass(frozen=True, slots=True)
class CurveThen:
    """A copy of the learning curve of a model: a forecast is made of it only if somebody reads it."""

    words: Ints
    """The section."""
    labels: int
    """Labels that the model had learned."""
    worth: float

    @staticmethod
    def of(plan: Plan, ints: Ints) -> CurveThen | None:
        """Return the curve in a model's buffer; None: the spec's ``evaluation.worth`` is 0."""
        start, size = int(plan.record.curve), int(plan.record.curve_words)
        if size == 0:
            return None
        return CurveThen(ints[start : start + size].copy(), ints.item(LABELS_AT), plan.spec.evaluation.worth)

    def read(self) -> Forecast:
        """Return the curve, the forecast and the advice."""
        curve = LearningCurve.read(self.words)
        rows = rows_of(self.words, curve)
        intervals = tuple(
            Interval(curve.began + int(first), curve.began + int(last), _band(share, n), n)
            for first, last, share, n in rows.tolist()
        )
        since = self.labels - curve.began
        has_drifted = curve.restarts > 0 and (curve.step == 0 or since < MORE)
        if curve.intervals >= LEAST_INTERVALS and not len(rows) and not has_drifted:
            return Forecast((), UNKNOWN, UNKNOWN, None)
        if len(rows) < LEAST_INTERVALS or rows[:, 3].sum() < LEAST_LABELS:
            return Forecast(intervals, UNKNOWN, UNKNOWN, "ask again after drift" if has_drifted else "go on")
        figures = figures_of(rows, float(since))
        newest, expected, spread = rows.item(-1, 2), figures[EXPECTED], figures[EXPECTED_SPREAD]
        if newest < expected - FAR_BELOW * spread:
            return Forecast(intervals, UNKNOWN, UNKNOWN, "ask again after drift")
        accuracy = _normal(figures[MEAN], figures[SPREAD])
        gain = _normal(figures[GAIN], figures[GAIN_SPREAD])
        if has_drifted:
            return Forecast(intervals, accuracy, gain, "ask again after drift")
        return Forecast(intervals, accuracy, gain, "stop" if gain.high < self.worth else "go on")


def rows_of(words: Ints, curve: LearningCurve) -> Floats:
    """Return the intervals that have weight, float64[m, 4], as ``write_forecast`` takes them."""
    cells = words[LearningCurve.SIZE :].view(np.float64).reshape(MOST_INTERVALS, INTERVAL)
    weight, hit, squares = (cells[: curve.intervals, column] for column in (WEIGHT, HIT, SQUARES))
    used = np.flatnonzero((weight > 0.0) & (squares > 0.0))
    first = used * float(curve.step)
    rows = (first, first + curve.step, hit[used] / weight[used], weight[used] ** 2 / squares[used])
    return np.ascontiguousarray(np.stack(rows, axis=1))


def figures_of(rows: Floats, labels: float) -> list[float]:
    """Return the result of ``write_forecast``."""
    out = np.empty(fit.RESULTS)
    fit.write_forecast(rows, labels, *fit.workspace(len(rows)), out)
    figures: list[float] = out.tolist()
    return figures


def _band(share: float, n: float) -> Estimate:
    """Return a share with Wilson's interval of 90 % (Wilson 1927)."""
    z2 = NORMAL_90 * NORMAL_90
    centre, half = share + z2 / (2 * n), NORMAL_90 * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    low, high = (centre - half) / (1 + z2 / n), (centre + half) / (1 + z2 / n)
    return Estimate(share, min(max(low, 0.0), share), max(min(high, 1.0), share))


def _normal(mean: float, spread: float) -> Estimate:
    """Return the interval of 90 % of a normal variate that is from 0 to 1."""
    ends = (mean, mean - NORMAL_90 * spread, mean + NORMAL_90 * spread)
    return Estimate(*(min(max(end, 0.0), 1.0) for end in ends))


def _with_ends(name: str, estimate: Estimate) -> dict[str, float]:
    return {name: estimate.value, f"{name}_low": estimate.low, f"{name}_high": estimate.high}
