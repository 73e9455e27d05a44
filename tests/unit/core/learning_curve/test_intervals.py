"""Intervals of the learning curve: whose labels they count, with which weight, and when the curve begins."""

import numpy as np
import pytest

from core.errors import ParameterError
from core.layout.curve import CURVE_WORDS, FIRST_STEP, MOST_INTERVALS, LearningCurve
from core.model.model import Model
from core.model_table import LABELLED, ON_REQUEST
from core.spec import Spec
from tests.unit.core.builders import answer, halves, schema_of, spec_of, table_of

SCHEMA = schema_of(None, None, None)
KEPT = {"every": 0, "worth": 0.005}


def curve_of(model):
    return LearningCurve.over(model.ints[model.plan.record.curve :])


def played(n, mode=ON_REQUEST, flip=None, seed=0, **spec):
    """Return a table whose model has answered n records, and the answers; flip: the classes change there."""
    x, label = halves(n, seed)
    draw = np.random.default_rng(seed + 1)
    label = np.where(draw.random(n) < 0.1, 1 - label, label)
    if flip is not None:
        label[flip:] = 1 - label[flip:]
    table = table_of(SCHEMA, spec_of(**{"evaluation": KEPT} | spec))
    return table, answer(table, x, label, mode=mode), label


def by_interval(answers, label, weight, used):
    """Return the accuracy of each interval of FIRST_STEP labels; the first answer has no class."""
    hit = (answers.prediction == label)[used]
    known, weight = (answers.prediction >= 0)[used], np.asarray(weight, dtype=float)[used]
    known[0] = False
    shares = []
    for first in range(0, len(hit) - FIRST_STEP + 1, FIRST_STEP):
        part = slice(first, first + FIRST_STEP)
        shares.append(np.average(hit[part], weights=weight[part] * known[part]))
    return shares


def test_labels_that_came_with_their_records_count_once():
    table, answers, label = played(300, LABELLED)
    found = table.model(0).learning_curve()
    expected = by_interval(answers, label, np.ones(300), np.arange(300))
    assert [interval.accuracy.value for interval in found.intervals] == pytest.approx(expected)
    assert [interval.n for interval in found.intervals[1:]] == [FIRST_STEP] * (len(expected) - 1)
    assert [(i.first, i.last) for i in found.intervals][:2] == [(0, 32), (32, 64)]


def test_requested_labels_count_with_their_importance():
    table, answers, label = played(4000, query="random", budget={"name": "count", "limit": 0.1})
    found = table.model(0).learning_curve()
    used = np.flatnonzero(answers.asked)
    expected = by_interval(answers, label, answers.importance, used)
    assert len(expected) > 8
    assert [interval.accuracy.value for interval in found.intervals] == pytest.approx(expected)
    assert all(1.0 < interval.n <= FIRST_STEP for interval in found.intervals)


def test_reserved_labels_alone_count_where_a_share_is_reserved():
    budget = {"name": "count", "limit": 0.4}
    table, *_ = played(2000, query="variable_uncertainty", budget=budget, evaluation=KEPT | {"share": 0.1})
    model = table.model(0)
    found, evaluation = model.learning_curve(), model.evaluation()
    curve = curve_of(model)
    counted = sum(interval.n for interval in found.intervals)
    assert counted == pytest.approx(curve.sampled, abs=1)
    assert curve.sampled <= evaluation.drawn_labels
    hits = sum(interval.n * interval.accuracy.value for interval in found.intervals)
    assert hits == pytest.approx(curve.sampled_hit, abs=1)


def test_labels_that_were_chosen_without_known_chances_give_no_advice():
    table, *_ = played(2000, query="variable_uncertainty", budget={"name": "count", "limit": 0.2})
    found = table.model(0).learning_curve()
    assert curve_of(table.model(0)).intervals > 4
    assert found.advice is None
    assert found.intervals == ()


def test_neighbours_are_joined_when_there_are_many():
    table, answers, label = played(FIRST_STEP * MOST_INTERVALS, LABELLED)
    curve, found = curve_of(table.model(0)), table.model(0).learning_curve()
    assert (curve.intervals, curve.step) == (MOST_INTERVALS // 2, 2 * FIRST_STEP)
    pairs = np.reshape(answers.prediction == label, (-1, 2 * FIRST_STEP))[1:].mean(axis=1)
    assert [interval.accuracy.value for interval in found.intervals[1:]] == pytest.approx(pairs)
    assert table.model(0).header.interval_end == 512 + 64


def test_a_drift_begins_the_curve_again():
    table, answers, _ = played(3000, LABELLED, flip=2500, drift="ddm")
    model = table.model(0)
    (at,) = [event.row for event in answers.events if getattr(event, "level", "") == "drift"]
    curve, found = curve_of(model), model.learning_curve()
    assert 2500 < at < 2900
    assert (curve.began, curve.restarts) == (at, 1)
    assert all(interval.first >= at for interval in found.intervals)
    assert found.advice == "ask again after drift"


def test_a_drift_without_a_detector_is_seen_in_the_curve():
    x, label = halves(2000)
    table = table_of(SCHEMA, spec_of(evaluation=KEPT))
    answer(table, x, label)
    before = table.model(0).learning_curve()
    answer(table, x[:200], 1 - label[:200])
    found = table.model(0).learning_curve()
    assert before.advice in ("stop", "go on")
    assert before.accuracy.low > 0.9
    assert found.advice == "ask again after drift"
    assert np.isnan(found.accuracy).all()


def test_where_rows_are_cut_and_a_restore_change_nothing():
    x, label = halves(1500)
    spec = spec_of(drift="ddm", evaluation=KEPT)
    whole, pieces = table_of(SCHEMA, spec), table_of(SCHEMA, spec)
    answer(whole, x, label)
    for first in range(0, 1500, 37):
        answer(pieces, x[first : first + 37], label[first : first + 37])
        if first == 37 * 20:
            restored = Model.restore(pieces.model(0).snapshot())
            pieces = table_of(SCHEMA, spec, models=0)
            pieces.add(restored)
    assert pieces.model(0).snapshot() == whole.model(0).snapshot()
    assert pieces.model(0).learning_curve() == whole.model(0).learning_curve()


def test_by_default_a_curve_is_kept_where_labels_are_scarce():
    scarce = {"name": "count", "limit": 0.5}
    for spec, worth in (
        (spec_of(), 0.0),
        (spec_of(evaluation=KEPT), 0.005),
        (spec_of(budget=scarce), 0.005),
        (spec_of(budget=scarce, evaluation={"worth": 0.0}), 0.0),
    ):
        model = Model.create(spec, SCHEMA)
        assert model.spec.evaluation.worth == worth
        assert model.plan.record.curve_words == (CURVE_WORDS if worth else 0)
        assert (model.learning_curve() is not None) == bool(worth)


def test_a_curve_that_is_switched_on_begins_with_the_next_label():
    table, *_ = played(300, LABELLED, evaluation={"every": 0})
    model = table.model(0)
    model.configure(spec_of(evaluation={"every": 0, "worth": 0.01}))
    table.refresh(0)
    x, label = halves(100, seed=5)
    answer(table, x, label)
    curve = curve_of(table.model(0))
    assert (curve.began, curve.intervals, curve.step) == (300, 3, FIRST_STEP)
    model.configure(spec_of(evaluation={"every": 0, "worth": 0.02}))
    assert curve_of(model).began == 300


@pytest.mark.parametrize("worth", [-0.1, 1.5, "much"])
def test_a_worth_that_is_no_share_is_refused(worth):
    with pytest.raises(ParameterError, match="worth"):
        Spec.parse({"evaluation": {"worth": worth}})
