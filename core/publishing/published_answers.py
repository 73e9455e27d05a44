"""Publishing: the learner's class shares become the probabilities of an answer.

    learner ──> shares ──> calibrator of each class ──> divided by their sum ──> probabilities ──> set
                  │                                                                    │
                  └── raw, kept with the answer                                        └── class answered

The class answered is the one with the largest probability, the learner's own if it is one of these. Query
strategies get the raw shares. The hits of answers are those of this class; drift detectors and the guards of
the strategy ``ask`` see these, so that calibration may change which labels are requested through them alone.

Calibrators take over as labels come: beside the labels that they remember, the raw share counts SHARES_COUNT
labels. So a few labels cannot decide the class answered, and records with different raw shares keep different
probabilities where the curve of a calibrator is constant.

A label teaches the calibrators with the raw shares of the answer to its own record, however late it comes;
answers carry them in a row of *reports* (core/layout/published.py) for this reason. The answer of a tree that
has been replaced after a drift teaches no calibrator: the shares of the new tree mean something else.
"""

from __future__ import annotations

from typing import Any, Final

from core.calibrators.base import CalibratorParameters, calibrated_dispatcher, remembered
from core.conformal.conformal_sets import report_set, state_of
from core.kernels.jit import kernel, tail
from core.layout.model import ModelHeader
from core.layout.plan import PlanRecord
from core.layout.published import KNOWN, RAW, REBUILDS, Calibration

SHARES_COUNT: Final = 30.0
"""Labels that the raw share of a class counts beside the labels that its calibrator remembers [D79]."""

calibrated = calibrated_dispatcher()


@kernel
def report_of(run: Any, row: int) -> Any:
    """Return the row of reports of a row of a run."""
    return tail(run.report, row * (run.classes + RAW))


@kernel
def asked_by(run: Any, plan: PlanRecord, row: int) -> Any:
    """Return the shares by which a strategy decides: the raw ones, float64[class]."""
    shares = tail(run.probability, row * run.classes)
    return tail(report_of(run, row), RAW) if plan.calibration_words != 0 else shares


@kernel
def publish(run: Any, plan: PlanRecord, model: ModelHeader, row: int, best: int, is_counted: bool) -> int:
    """Calibrate the shares of an answer, and find its set; return the class answered.

    best: the class that the learner answers; is_counted: the model may change.
    """
    report = report_of(run, row)
    raw = tail(report, RAW)
    shares = tail(run.probability, row * run.classes)
    if best < 0 or not is_learned(shares, model.classes):
        if plan.calibration_words != 0:
            for c in range(run.classes):
                raw[c] = 0.0
        if plan.conformal_words != 0 and is_counted:
            state_of(plan, model).size = 0
        return best
    report[KNOWN] = float(model.classes)
    if plan.calibration_words != 0:
        report[REBUILDS] = float(model.rebuilds)
        for c in range(run.classes):
            raw[c] = shares[c]
        if Calibration(model.ints, model.floats, plan.calibration).labels > 0:
            calibrate(plan, model, raw, shares)
            best = likeliest(shares, model.classes, best)
    if plan.conformal_words != 0:
        report_set(plan, model, shares, best, report, is_counted)
    return best


@kernel
def is_learned(shares, classes: int) -> bool:
    """Return whether an answer has a share above 0; without a label no class has one, also a declared class.

    The labels of other answers show nothing about shares, so that these have no report.
    """
    is_any = False
    for c in range(classes):
        is_any |= shares[c] > 0.0
    return is_any


@kernel
def calibrate(plan: PlanRecord, model: ModelHeader, raw, shares) -> None:
    """Write the probabilities of raw shares; they stay as they are where calibrators leave nothing of them.

    raw, shares: float64[class].
    """
    section = Calibration(model.ints, model.floats, plan.calibration)
    p, total = plan.parameters(plan.calibrator_at), 0.0
    memory = CalibratorParameters(plan.ints, plan.floats, plan.calibrator_at).memory
    labels = remembered(memory, section.labels)
    part = labels / (labels + SHARES_COUNT)
    for c in range(model.classes):
        value = calibrated(plan.calibrator, p, section.state_of(c, plan.calibrator_words), raw[c])
        if not 0.0 <= value <= 1.0:
            value = raw[c]
        value = (1.0 - part) * raw[c] + part * value
        shares[c] = value
        total += value
    for c in range(model.classes):
        shares[c] = shares[c] / total if total > 0.0 else raw[c]
    if model.classes == 2:
        shares[1] = 1.0 - shares[0]  # exactly: the histograms of the measures mirror the first class


@kernel
def likeliest(shares, classes: int, best: int) -> int:
    """Return the class with the largest probability, ``best`` if no other has a larger one."""
    for c in range(classes):
        if shares[c] > shares[best]:
            best = c
    return best
