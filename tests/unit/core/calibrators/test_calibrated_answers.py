"""Calibrated answers of a model: which labels teach the calibrators, and what few labels may change."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from core.events import Drift
from core.layout.published import RAW
from core.model.model import Model
from core.model_table import ANSWER_ONLY, LABELLED, NO_LABEL, ModelTable
from core.publishing.published_answers import SHARES_COUNT
from core.schema.schema import Attribute, Schema
from core.spec import Spec
from tests.naive import calibration as naive

TWINS: dict[str, Any] = {"platt": naive.Platt, "isotonic": naive.Isotonic}


class Calibrated:
    """A table with one model of two classes on one attribute."""

    def __init__(self, calibration, **parts):
        spec = Spec.parse({"learner": "naive-bayes", "calibration": calibration} | parts)
        self.table = ModelTable()
        self.table.add(Model.create(spec, Schema.of([Attribute("x")], ("a", "b"))))

    @property
    def model(self):
        return self.table.model(0)

    def answer(self, x, y=None, mode=LABELLED):
        n = len(x)
        labels = np.full(n, NO_LABEL, np.int32) if y is None else y
        return self.table.answer(np.zeros(n, np.int64), x, labels, np.ones(n), mode)

    def learn(self, x, y, then):
        """Learn late labels of the answers ``then``."""
        n = len(y)
        drawn = then.asked[:n], then.sampled[:n], then.importance[:n]
        kept = then.probability[:n], then.report[:n]
        self.table.learn(np.zeros(n, np.int64), x, y, np.ones(n), then.prediction[:n], *drawn, *kept)

    def teach_the_tree(self, x, y):
        """Learn labels without answers: they teach no calibrator."""
        n = len(y)
        none = np.full(n, -1, np.int32), np.zeros(n, np.bool_)
        self.table.learn(np.zeros(n, np.int64), x, y, np.ones(n), *none)

    def shares(self, x):
        """Return raw shares and probabilities of records that are not counted."""
        answers = self.answer(x, mode=ANSWER_ONLY)
        return answers.report[:, RAW:], answers.probability, answers.prediction


def records(n, seed=1, turned=False):
    """Return values and labels; turned: the other concept, with the classes exchanged."""
    draw = np.random.default_rng(seed)
    y = draw.integers(0, 2, n).astype(np.int32)
    x = (y + draw.normal(0, 0.3, n))[:, np.newaxis]
    return x, 1 - y if turned else y


@pytest.mark.parametrize("reaction", ["reset", "rebuild"])
@pytest.mark.parametrize("calibration", TWINS)
def test_late_labels_of_an_earlier_tree_do_not_teach_the_calibrators_of_the_new_tree(calibration, reaction):
    one = Calibrated(calibration, conformal={}, drift={"name": "hddm-a", "reaction": reaction})
    one.answer(*records(500))
    late_x, late_y = records(200, seed=2)
    then = one.answer(late_x)
    x, y = records(400, seed=3, turned=True)
    for row in range(len(y)):
        events = one.answer(x[row : row + 1], y[row : row + 1]).events
        if any(isinstance(event, Drift) and event.level == "drift" for event in events):
            break
    assert one.model.summary().rebuilds == 1
    judged = one.model.coverage().labels
    one.learn(late_x, late_y, then)
    assert one.model.summary().rebuilds == 1
    raw, probability, _ = one.shares(x)
    assert raw.max() > 0.6
    assert probability.tolist() == raw.tolist()
    assert one.model.coverage().labels == judged + 200, "sets are judged whichever tree answered"
    one.learn(late_x, late_y, one.answer(late_x))
    assert one.model.summary().rebuilds == 1
    raw, probability, _ = one.shares(x)
    assert probability.tolist() != raw.tolist()


@pytest.mark.parametrize("calibration", TWINS)
def test_one_label_decides_no_class(calibration):
    """The likeliest class of the tree stays the class answered after a label against it."""
    one = Calibrated(calibration)
    one.teach_the_tree(*records(300))
    x = np.linspace(-1.0, 2.0, 61)[:, np.newaxis]
    raw, _, before = one.shares(x)
    assert raw.max() > 0.95
    assert set(before.tolist()) == {0, 1}
    sure = np.array([[2.0]])
    one.learn(sure, np.zeros(1, np.int32), one.answer(sure))
    raw, probability, after = one.shares(x)
    doubtful = np.abs(raw[:, 0] - 0.5) < 0.05
    assert (after == raw.argmax(axis=1))[~doubtful].all()
    if calibration == "isotonic":  # the order of platt's values may change at the border of two bins
        assert (np.diff(probability[:, 1]) > 0.0).all(), "other shares lead to other probabilities"
    assert 0.0 < np.abs(probability - raw).max() < 0.05


@pytest.mark.parametrize("memory", [0, 1, 20, 5000])
@pytest.mark.parametrize("calibration", TWINS)
def test_the_curve_counts_as_many_labels_as_it_remembers_and_the_shares_a_constant(calibration, memory):
    one = Calibrated({"name": calibration, "memory": memory})
    one.teach_the_tree(*records(300))
    twins = [TWINS[calibration](memory=memory) for _ in range(2)]
    x, y = records(120, seed=2)
    for number in range(len(y)):
        raw, probability, _ = one.shares(x[number : number + 1])
        labels = min(number, memory) if memory else number
        values = [
            (labels * twin.calibrated(share) + SHARES_COUNT * share) / (labels + SHARES_COUNT)
            for twin, share in zip(twins, raw[0].tolist(), strict=True)
        ]
        assert probability[0].tolist() == pytest.approx([value / sum(values) for value in values], abs=1e-9)
        then = one.answer(x[number : number + 1])
        one.learn(x[number : number + 1], y[number : number + 1], then)
        for c, twin in enumerate(twins):
            twin.learn(float(then.report[0, RAW + c]), float(y[number] == c))
