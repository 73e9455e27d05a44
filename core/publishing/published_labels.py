"""Labels of published answers: calibrators learn them, and thresholds of sets follow them."""

from __future__ import annotations

import math
from typing import Any

from core.calibrators.base import learn_dispatcher
from core.conformal.conformal_sets import is_in_set, moved, parameters_of, state_of
from core.kernels.jit import kernel, tail
from core.layout.measures import LABELS
from core.layout.model import ModelHeader
from core.layout.plan import PlanRecord
from core.layout.published import KNOWN, RAW, REBUILDS, THRESHOLD, Calibration
from core.numeric.special import LN2, exp, log2
from core.publishing.label_weights import Draw, following_basis, label_weight, relative_weight
from core.publishing.published_answers import report_of

learn_share = learn_dispatcher()


@kernel
def learn_label(run: Any, plan: PlanRecord, model: ModelHeader, row: int, came_along: bool) -> None:
    """Let the calibrators learn a label with its answer, and judge the answer's set.

    An answer of a tree that has been replaced after a drift teaches no calibrator; its set is judged.
    """
    report, label = report_of(run, row), int(run.label[row])
    if run.prediction[row] < 0 or not report[KNOWN] >= 1.0:  # NaN: the answer was not reported
        return
    draw = Draw(int(run.sampled[row]), run.importance[row], came_along)
    is_of_this_tree = report[REBUILDS] == float(model.rebuilds)
    if plan.calibration_words != 0 and report[RAW] >= 0.0 and is_of_this_tree:
        learn_shares(plan, model, tail(report, RAW), int(report[KNOWN]), label, draw)
    if plan.conformal_words != 0 and report[THRESHOLD] == report[THRESHOLD]:
        shares = tail(run.probability, row * run.classes)
        learn_set(plan, model, shares, report, label, draw)


@kernel
def learn_shares(plan: PlanRecord, model: ModelHeader, raw, classes: int, label: int, draw: Draw) -> None:
    """Let calibrators learn a label; raw: float64[class], shares of its answer; classes: known to it."""
    section = Calibration(model.ints, model.floats, plan.calibration)
    basis = following_basis(plan, section.basis, draw)
    if basis != section.basis and section.basis == LABELS:
        section.labels, section.weight = 0, 0.0
    section.basis = basis
    weight = label_weight(plan, basis, draw)
    if weight == 0.0:
        return
    section.labels += 1
    section.weight += weight
    relative = relative_weight(weight, section.labels, section.weight)
    p = plan.parameters(plan.calibrator_at)
    for c in range(min(classes, model.classes)):
        state = section.state_of(c, plan.calibrator_words)
        learn_share(plan.calibrator, p, state, raw[c], 1.0 if c == label else 0.0, relative)


@kernel
def learn_set(plan: PlanRecord, model: ModelHeader, shares, report, label: int, draw: Draw) -> None:
    """Judge the set of a label's record, and move the threshold; shares, report: of its answer."""
    p, state = parameters_of(plan), state_of(plan, model)
    basis = following_basis(plan, state.basis, draw)
    if basis != state.basis and state.basis == LABELS:
        state.labels, state.weight, state.squares, state.covered = 0, 0.0, 0.0, 0.0
    state.basis = basis
    weight = label_weight(plan, basis, draw)
    if weight == 0.0:
        return
    share = shares[label] if label < report[KNOWN] else -math.inf
    state.labels += 1
    state.weight += weight
    state.squares += weight * weight
    state.covered += weight if is_in_set(share, report[THRESHOLD]) else 0.0
    state.steps += 1
    step = p.step * exp(-p.decay * LN2 * log2(float(state.steps)))
    relative = relative_weight(weight, state.labels, state.weight)
    state.threshold = moved(state.threshold, share, step, relative, p.alpha)
