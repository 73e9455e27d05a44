"""Conformal sets: the classes that hold the label of a record with a given probability.

The score of a class is 1 less its probability, and the set has the classes whose score is at most a threshold
(Sadinle, Lei and Wasserman 2019). The threshold follows the labels (adaptive conformal inference, Gibbs and
Candès 2021, with the identity as their quantile function):

    threshold += step / n^decay · w · (1 - alpha)   if the score of the label's class is above it
    threshold -= step / n^decay · w · alpha         else

With ``decay`` 0 the steps are constant, and the share of labels outside of their sets comes to alpha for any
sequence of labels. With a decay above 1/2 (Angelopoulos, Barber and Bates 2024) the threshold also settles on
the quantile of the scores if there is one. n is the number of labels since the beginning or the last drift.

Labels are late and chosen. The score is that of the answer to the label's own record; it is compared with the
threshold at the time of the label, so that a delay does not make the threshold overshoot. w is the weight of
the label relative to the mean (core/publishing/label_weights.py): over all records, labels that were
requested with a chance move the threshold as labels of all records would. Whether a label was in its set is
measured with the set that was sent.

Without weights the threshold stays in [-step · alpha, 1 + step · (1 - alpha)] by itself (Gibbs and Candès,
lemma 4.1). Outside of [0, 1] a set has no class, or all of them. A label of a larger weight moves the
threshold out of [0, 1] at most as far as a label of weight 1 would: else sets had all classes for hundreds of
labels. A projection to [0, 1] would cost coverage: where more than a share alpha of the labels has a
probability of 0, some sets must have all classes.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from core.kernels.jit import kernel
from core.layout.model import Floats, Ints, ModelHeader
from core.layout.plan import PlanRecord
from core.layout.published import THRESHOLD, ConformalState
from core.plugin import Parameters, flag, number

FIRST_THRESHOLD: Final = 1.0
"""Threshold before the first label: each set has all known classes."""

ROUNDING: Final = 2.0**-52
"""Added to a threshold that is computed from a probability, so that the class is in the set."""

LOWEST: Final = -1.0
HIGHEST: Final = 2.0
"""Bounds of the threshold: a step of any size and weight 1 ends between them."""


@dataclass(frozen=True, slots=True)
class Conformal(Parameters):
    """The part ``conformal`` of a spec: ``{"alpha": 0.1}``.

    Sets hold the label of a share 1 - ``alpha`` of the records. A set may be empty: no class is likely
    enough. With ``"may_be_empty": false`` it then has the class answered, and more labels are in their sets.
    """

    alpha: float = number(0.1, above=0.0, below=1.0)
    """Share of the records whose label may be outside of the set."""
    step: float = number(1.0, above=0.0, at_most=1.0)
    """First step of the threshold."""
    decay: float = number(0.6, at_least=0.0, at_most=1.0)
    """Power of the number of labels by which a step is divided; 0: constant steps."""
    may_be_empty: bool = flag(True)
    """Whether a set may have no class; false: it has the class answered in any case."""

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters as a spec has them."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}


ConformalParameters: Any = Conformal.record()
"""The record of the parameters."""


def write_initial(floats: Floats, start: int) -> None:
    """Write the section of a new model."""
    ConformalState(floats.view(np.int64), floats, start).threshold = FIRST_THRESHOLD


@kernel
def is_in_set(probability: float, threshold: float) -> bool:
    """Return whether a class is in the set by its probability; the answers' encoders use the same formula."""
    return probability >= 1.0 - threshold


@kernel
def moved(threshold: float, share: float, step: float, weight: float, alpha: float) -> float:
    """Return the threshold after a label; share: probability of its class, -inf: its answer did not have it.

    step: of a label of weight 1.
    """
    if is_in_set(share, threshold):
        return max(threshold - weight * step * alpha, min(threshold, -step * alpha))
    rise = step * (1.0 - alpha)
    return min(threshold + weight * rise, max(threshold, 1.0 + rise))


@kernel
def parameters_of(plan: PlanRecord) -> Any:
    """Return the parameters of the sets."""
    return ConformalParameters(plan.ints, plan.floats, plan.conformal_at)


@kernel
def state_of(plan: PlanRecord, model: ModelHeader) -> ConformalState:
    """Return the section of a model that has sets."""
    return ConformalState(model.ints, model.floats, plan.conformal)


@kernel
def report_set(plan: PlanRecord, model: ModelHeader, shares, best: int, report, is_counted: bool) -> None:
    """Write the threshold of an answer, and count its set.

    shares: float64[class], the probabilities; best: the class answered; report: float64, a row of reports
    (core/layout/published.py); is_counted: the model may change.
    """
    state = state_of(plan, model)
    threshold = state.threshold
    if parameters_of(plan).may_be_empty == 0.0:
        threshold = max(threshold, 1.0 - shares[best] + ROUNDING)
    report[THRESHOLD] = threshold
    if not is_counted:
        return
    size = 0
    for c in range(model.classes):
        size += 1 if is_in_set(shares[c], threshold) else 0
    state.sets += 1
    state.classes += size
    state.single += 1 if size == 1 else 0
    state.size = size


def begin_again(ints: Ints, start: int) -> None:
    """Let steps and coverage begin again, at the present threshold: the parameters are other ones now."""
    section = ints[start : start + ConformalState.SIZE]
    state = ConformalState(section, section.view(np.float64), 0)
    threshold, size = float(state.threshold), int(state.size)
    section[:] = 0
    state.threshold, state.size = threshold, size


def begin_after_drift(plan: PlanRecord, model: ModelHeader) -> None:
    """Let the steps of the threshold begin again: scores are those of another concept now."""
    if plan.conformal_words:
        ConformalState(model.ints, model.floats, int(plan.conformal)).steps = 0
