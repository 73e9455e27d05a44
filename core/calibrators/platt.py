"""Platt: a logistic curve, learned by online Newton steps, and its mean errors by bin (calibeating)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

from core.calibrators.base import Calibrator, kept
from core.kernels.jit import kernel
from core.kernels.records import Record, word, words_after
from core.numeric.special import LN2, exp, log2
from core.plugin import number

BINS: Final = 10
"""Bins of equal width of the curve's value, as in the experiments of the paper."""

LEAST_SHARE: Final = 1e-6
"""Shares are kept so far from 0 and 1: those of naive Bayes are products of many factors."""

MOST: Final = 100.0
"""Largest size of slope and intercept, as in the code of the paper."""

STEEPEST: Final = 30.0
"""Largest exponent of the curve: the value stays below 1 by 1e-13."""

PROBLEMS: Final = (
    f"slope and intercept must be from -{MOST:.0f} to {MOST:.0f}",
    "the matrix of squares must be finite, with a diagonal above 0",
    "weights of bins must be finite and at least 0, and errors at most the weight",
)


class PlattState(Record):
    """The curve 1 / (1 + exp(-slope·ln(s / (1 - s)) - intercept)), and the bins of its values."""

    slope: float = word("slope of the curve")
    intercept: float = word("intercept of the curve")
    slopes: float = word("sum of the squared gradients of the slope, with the first step's size")
    both: float = word("sum of the products of both gradients")
    intercepts: float = word("sum of the squared gradients of the intercept, with the first step's size")
    bins: Any = words_after(float, "by bin: weight of labels [BINS], then weighted sum of label less value")


CURVE_WORDS: Final = PlattState.SIZE


@dataclass(frozen=True, slots=True)
class Plugin(Calibrator):
    """Online Platt scaling with calibeating: ``{"name": "platt", "beta": 0.1, "prior": 10.0}``.

    OPS (Gupta and Ramdas 2023) begins as the identity, where the code of the paper begins with a slope of 0.
    Calibeating (Foster and Hart 2023) adds the mean error of the labels in the bin of the curve's value, with
    ``prior`` labels without error. The paper answers the mean label of a bin instead: that has the same
    calibration by bin, but makes all answers of a bin equal. 200 bytes by class.
    """

    beta: float = number(0.1, at_least=1e-6, at_most=1.0)
    """Newton steps are gradients divided by ``beta`` and the sum of squares; 0.1 is the paper's."""
    prior: float = number(10.0, at_least=0.0, at_most=1e9)
    """Labels without error that each bin begins with."""

    def initial(self) -> tuple[float, ...]:
        first = 1.0 / (self.beta * self.beta)
        return (1.0, 0.0, first, 0.0, first, *(0.0,) * (2 * BINS))


@kernel
def logit(share: float) -> float:
    """Return ln(s / (1 - s)) of a share from 0 to 1, which is kept away from both."""
    bounded = min(max(share, LEAST_SHARE), 1.0 - LEAST_SHARE)
    return (log2(bounded) - log2(1.0 - bounded)) * LN2


@kernel
def curve(state: PlattState, x: float) -> float:
    """Return the value of the curve."""
    y = state.slope * x + state.intercept
    return 1.0 / (1.0 + exp(-min(max(y, -STEEPEST), STEEPEST)))


@kernel
def bin_of(value: float) -> int:
    """Return the bin of a value of the curve, the first for NaN."""
    return min(int(value * BINS), BINS - 1) if value >= 0.0 else 0


@kernel
def calibrated(p, state: PlattState, share: float) -> float:
    """Return the value of the curve, corrected by the mean error in its bin."""
    value = curve(state, logit(share))
    place = bin_of(value)
    weight = state.bins[place] + p.prior
    error = state.bins[BINS + place] / weight if weight > 0.0 else 0.0
    return min(max(value + error, 0.0), 1.0)


@kernel
def learn(p, state: PlattState, share: float, is_class: float, weight: float) -> int:
    """Take in a label: its bin first, by the curve that answered it now, then the curve."""
    x = logit(share)
    value = curve(state, x)
    factor = kept(p.memory)
    for position in range(2 * BINS):
        state.bins[position] *= factor
    place = bin_of(value)
    state.bins[place] += weight
    error = value - is_class
    state.bins[BINS + place] -= weight * error
    of_slope, of_intercept = error * x, error
    first = (1.0 - factor) / (p.beta * p.beta)
    state.slopes = factor * state.slopes + first + weight * of_slope * of_slope
    state.both = factor * state.both + weight * of_slope * of_intercept
    state.intercepts = factor * state.intercepts + first + weight * of_intercept * of_intercept
    scale = weight / (p.beta * (state.slopes * state.intercepts - state.both * state.both))
    slope = state.slope - scale * (state.intercepts * of_slope - state.both * of_intercept)
    intercept = state.intercept - scale * (state.slopes * of_intercept - state.both * of_slope)
    state.slope = min(max(slope, -MOST), MOST)
    state.intercept = min(max(intercept, -MOST), MOST)
    return 0


@kernel
def problem(p, state: PlattState) -> int:
    """Check all words: an answer must not be NaN."""
    if not (abs(state.slope) <= MOST and abs(state.intercept) <= MOST):
        return 1
    if not (0.0 < state.slopes < math.inf and 0.0 < state.intercepts < math.inf):
        return 2
    if not state.both * state.both < state.slopes * state.intercepts:
        return 2
    for place in range(BINS):
        weight = state.bins[place]
        if not (abs(state.bins[BINS + place]) <= weight < math.inf and weight >= 0.0):
            return 3
    return 0
