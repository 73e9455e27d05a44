"""Answers before the first label: with declared classes they have shares of 0, which claim nothing."""

import numpy as np
import pytest

from core.layout.published import RAW
from core.model.model import Model
from core.model_table import ANSWER_ONLY, LABELLED, NO_LABEL, ModelTable
from core.schema.schema import Attribute, Schema
from core.spec import Spec

N = 400


def table_of(**parts):
    spec = Spec.parse({"learner": "naive-bayes", "conformal": {"alpha": 0.2}} | parts)
    table = ModelTable()
    table.add(Model.create(spec, Schema.of([Attribute("x")], ("a", "b"))))
    return table


def records(seed=1):
    draw = np.random.default_rng(seed)
    y = draw.integers(0, 2, N).astype(np.int32)
    return (y + draw.normal(0, 1.0, N))[:, np.newaxis], y


def learn(table, x, y, then):
    table.learn(
        np.zeros(len(y), np.int64),
        x,
        y,
        np.ones(len(y)),
        then.prediction,
        then.asked,
        then.sampled,
        then.importance,
        then.probability,
        then.report,
    )


@pytest.mark.parametrize("calibration", ["platt", "isotonic"])
def test_late_labels_of_answers_without_shares_teach_no_calibrator(calibration):
    """All labels come after all answers: probabilities stay those of the tree."""
    table, (x, y) = table_of(calibration=calibration), records()
    one, none, ones = np.zeros(N, np.int64), np.full(N, NO_LABEL, np.int32), np.ones(N)
    then = table.answer(one, x, none, ones, LABELLED)
    assert not then.probability.any()
    learn(table, x, y, then)
    later = table.answer(one, x, none, ones, ANSWER_ONLY)
    assert later.probability.tolist() == later.report[:, RAW:].tolist()
    assert later.probability.max() > 0.8


def test_late_labels_of_answers_without_shares_leave_threshold_and_coverage():
    table, (x, y) = table_of(), records()
    one, none, ones = np.zeros(N, np.int64), np.full(N, NO_LABEL, np.int32), np.ones(N)
    then = table.answer(one, x, none, ones, LABELLED)
    learn(table, x, y, then)
    state = table.model(0).coverage()
    assert (state.labels, state.threshold) == (0, 1.0)
