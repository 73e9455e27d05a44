"""Calibrators beside scikit-learn's, fitted to the same weighted labels (tests/golden/calibration.py)."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.unit.core.calibrators.test_calibrators import Calibrator

CASES = json.loads((Path(__file__).parents[3] / "golden" / "calibration.json").read_text(encoding="utf-8"))
PARTS = 64


def learned(name, case, least=0.0, passes=1, **parameters):
    """Return a calibrator for each class that has learned the labels of a case in turn, so many times."""
    shares = np.clip(np.array(case["parts"]) / PARTS, least, 1.0 - least)
    calibrators = [Calibrator(name, memory=0, **parameters) for _ in shares[0]]
    for row, label, weight in [*zip(shares.tolist(), case["label"], case["weight"], strict=True)] * passes:
        for c, calibrator in enumerate(calibrators):
            calibrator.learn(row[c], float(label == c), float(weight))
    return calibrators


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_with_a_block_for_each_share_it_is_isotonic_regression(case):
    """Between the blocks too, and beyond the first and the last one."""
    for ours, theirs in zip(
        learned("isotonic", case, blocks=PARTS + 1, prior=0.0), case["isotonic"], strict=True
    ):
        answers = [ours.calibrated(part / PARTS) for part in range(PARTS + 1)]
        assert answers == pytest.approx(theirs, abs=1e-9)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_divided_by_their_sum_they_are_the_calibrated_classifier(case):
    calibrators = learned("isotonic", case, blocks=PARTS + 1, prior=0.0)
    for parts, theirs in zip(case["parts"], case["probabilities"], strict=False):
        values = [ours.calibrated(part / PARTS) for ours, part in zip(calibrators, parts, strict=True)]
        assert np.array(values) / sum(values) == pytest.approx(theirs, abs=1e-9)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_curve_comes_near_to_logistic_regression(case):
    """The optimum over the labels, to which Newton steps come as they see the same labels again and again."""
    least = 0.5 / PARTS
    calibrators = learned("platt", case, least, passes=10)
    shares = np.clip(np.array(case["parts"]) / PARTS, least, 1.0 - least)
    label, weight = np.array(case["label"]), np.array(case["weight"])
    for c, (ours, theirs) in enumerate(zip(calibrators, case["logistic"], strict=True)):
        found = [ours.state.slope, ours.state.intercept]
        assert found == pytest.approx([theirs["slope"], theirs["intercept"]], abs=0.15)
        y = found[0] * np.log(shares[:, c] / (1 - shares[:, c])) + found[1]
        losses = np.logaddexp(0.0, np.where(label == c, -y, y))
        least_loss = theirs["log_loss"]
        assert least_loss <= np.average(losses, weights=weight) + 1e-9
        assert np.average(losses, weights=weight) <= 1.005 * least_loss
