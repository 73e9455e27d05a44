"""Words of older state versions: what they lacked is counted as far as they know it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import SnapshotError
from core.kernels.records import offset
from core.layout.model import EVALUATION_ROWS, EvaluationCounters, ModelHeader, evaluation_words
from core.model import snapshot, upgrade
from core.model.model import Model
from core.schema.schema import Attribute, Schema
from core.state_version import STATE_VERSION
from tests.naive.evaluation import Evaluation
from tests.unit.core.builders import spec_of, table_of

WINDOW = 70
PLACES = [offset(ModelHeader, name) for name in ("words", "first", "second")]


THREE = Schema.of([Attribute("x")], "abc")
UNLABELLED = Schema.of([Attribute("x")], (), classes_open=True)


def judged(pairs, drift="none", schema=THREE, worth=0.0):
    """Return a model that has been told of these labels and predictions."""
    table = table_of(schema, spec_of(evaluation={"window": WINDOW, "every": 0, "worth": worth}, drift=drift))
    label, predicted = np.array(pairs, dtype=np.int32).reshape(-1, 2).T
    n = len(label)
    x = np.zeros((n, 1))
    table.learn(np.zeros(n, dtype=np.int64), x, label, np.ones(n), predicted, np.zeros(n, dtype=np.bool_))
    return table.model(0)


def of_version_5(model):
    """Return the words of a model as version 5 had them: without baselines, and without measures."""
    plan, words = model.plan.record, snapshot.trim(model.plan, model.ints)
    section, bits = int(plan.evaluation), int(plan.window_bits)
    end = section + evaluation_words(model.schema.n_classes, WINDOW)
    counts = section + EvaluationCounters.SIZE
    kept = [words[: section + upgrade.FIELDS_OF_5], words[counts:bits], words[end : int(plan.measures)]]
    kept.append(words[int(plan.shared) :])
    old = np.concatenate(kept)
    for word in PLACES:
        old[word] -= (len(words) - len(old)) if old[word] else 0
    return old


def drawn(n, seed=3):
    draw = np.random.default_rng(seed)
    label = np.repeat(draw.integers(0, 3, n), draw.integers(1, 4, n))[:n]
    return list(zip(label.tolist(), draw.integers(0, 3, n).tolist(), strict=True))


OLD = [(THREE, drawn(90)), (THREE, drawn(5)), (UNLABELLED, [])]


@pytest.mark.parametrize("n", [1, 30, WINDOW])
def test_a_model_whose_window_holds_all_is_that_of_today(n):
    model = judged(drawn(n))
    found = upgrade.upgraded(model.plan, of_version_5(model), 5)
    now, plan = snapshot.trim(model.plan, model.ints).copy(), model.plan.record
    now[plan.measures : plan.shared] = 0  # measures begin with the upgrade
    assert np.array_equal(found, now)


@pytest.mark.parametrize("n", [WINDOW + 1, 400])
def test_what_was_before_the_window_is_left_out(n):
    """Last labels are those of the window; the majority over all is known, and counts are exact."""
    pairs = drawn(n)
    model = judged(pairs, drift="ddm")
    words = upgrade.upgraded(model.plan, of_version_5(model), 5)
    snapshot.check_words(model.plan, words)
    found = Model(model.plan, words).evaluation()
    inside, labels = pairs[-WINDOW:], [label for label, _ in pairs]
    twin = Evaluation(WINDOW)
    for pair in inside:
        twin.judge(*pair)
    assert found.kappa_temporal == pytest.approx(twin.kappa_temporal(), abs=1e-12)
    assert found.kappa_temporal_windowed == pytest.approx(twin.kappa_temporal(), abs=1e-12)
    hits = sum(np.bincount(labels[: i + 1], minlength=3).argmax() == labels[i] for i in range(n - WINDOW, n))
    accuracy = sum(label == said for label, said in inside) / WINDOW
    assert found.kappa_m == pytest.approx((accuracy - hits / WINDOW) / (1 - hits / WINDOW), abs=1e-12)
    assert (found.accuracy, found.kappa) == (model.evaluation().accuracy, model.evaluation().kappa)


def test_it_goes_on_counting():
    """Two thirds before, one third after: the window is that of a model that was never upgraded."""
    pairs = drawn(3 * WINDOW)
    model = judged(pairs[: 2 * WINDOW])
    old = Model(model.plan, upgrade.upgraded(model.plan, of_version_5(model), 5))
    found = []
    for one in (model, old):
        table = table_of(model.schema, model.spec, models=0)
        table.add(one)
        label, predicted = np.array(pairs[2 * WINDOW :], dtype=np.int32).T
        n = len(label)
        zeros = np.zeros(n, dtype=np.int64)
        table.learn(zeros, np.zeros((n, 1)), label, np.ones(n), predicted, np.zeros(n, dtype=np.bool_))
        found.append(table.model(0).evaluation())
    assert found[0].kappa_temporal_windowed == found[1].kappa_temporal_windowed
    assert found[0].kappa_m_windowed == found[1].kappa_m_windowed


@pytest.mark.parametrize("cut", [0, 5, 20, -1])
def test_words_that_are_too_few_are_refused_as_ever(cut):
    model = judged(drawn(90))
    with pytest.raises(SnapshotError):
        snapshot.check_words(model.plan, upgrade.upgraded(model.plan, of_version_5(model)[:cut], 5))


HARD = st.sampled_from([-1, 0, 1, 2, 3, WINDOW, 1 << 40, (1 << 63) - 1, -(1 << 63)])


@given(st.data())
def test_words_that_nobody_wrote_are_refused_or_are_a_model(data):
    """A file may say that an older release wrote it: what is made of its words is checked like today's."""
    schema, pairs = data.draw(st.sampled_from(OLD))
    model = judged(pairs, schema=schema)
    old, section = of_version_5(model), int(model.plan.record.evaluation)
    rows = section + upgrade.FIELDS_OF_5 + EVALUATION_ROWS * schema.n_classes
    places = st.one_of(
        st.sampled_from(PLACES),
        st.integers(section, max(section, rows - 1)),
        st.integers(0, len(old) - 1),
    )
    for place, value in data.draw(st.lists(st.tuples(places, HARD), min_size=1, max_size=4)):
        old[place] = value
    words = upgrade.upgraded(model.plan, old, 5)
    try:
        snapshot.check_words(model.plan, words)
    except SnapshotError:
        return
    assert 0.0 <= Model(model.plan, words).evaluation().accuracy <= 1.0


def test_labels_of_a_model_that_knows_no_class_are_refused():
    model = judged([], schema=UNLABELLED)
    old = of_version_5(model)
    ModelHeader.over(old).evaluation(model.plan.record).count = 3
    with pytest.raises(SnapshotError, match="evaluated predictions"):
        snapshot.check_words(model.plan, upgrade.upgraded(model.plan, old, 5))


def test_words_of_today_are_not_touched():
    model = judged(drawn(5))
    assert upgrade.upgraded(model.plan, model.ints, STATE_VERSION) is model.ints


@pytest.mark.parametrize("drift", ["none", "ddm"])
def test_a_model_of_version_8_begins_to_measure(drift):
    model = judged(drawn(200), drift=drift, worth=0.005)
    plan, words = model.plan.record, snapshot.trim(model.plan, model.ints)
    old = np.concatenate([words[: plan.measures], words[plan.shared :]])
    for word in PLACES:
        old[word] -= plan.shared - plan.measures if old[word] else 0
    found = upgrade.upgraded(model.plan, old, 8)
    snapshot.check_words(model.plan, found)
    resumed = Model(model.plan, found)
    assert resumed.evaluation() == model.evaluation()
    before, after = model.measures(), resumed.measures()
    assert before is not None
    assert after is not None
    assert before.confusion is not None
    assert after.confusion is not None
    assert before.confusion.sum() == 200
    assert after.confusion.sum() == 0


def test_a_model_of_version_9_without_a_curve_begins_one():
    model = judged(drawn(200), worth=0.005)
    plan, words = model.plan.record, snapshot.trim(model.plan, model.ints)
    old = np.concatenate([words[: plan.curve], words[plan.shared :]])
    for word in PLACES:
        old[word] -= plan.curve_words if old[word] else 0
    ModelHeader.over(old).interval_end = 0
    found = upgrade.upgraded(model.plan, old, 9)
    snapshot.check_words(model.plan, found)
    resumed = Model(model.plan, found)
    assert repr(resumed.measures()) == repr(model.measures())
    curve, resumed_curve = model.learning_curve(), resumed.learning_curve()
    assert curve is not None and len(curve.intervals) > 4
    assert resumed_curve is not None and resumed_curve.intervals == ()
    table = table_of(model.schema, model.spec, models=0)
    table.add(resumed)
    label, predicted = np.array(drawn(40), dtype=np.int32).T
    zeros = np.zeros(40, dtype=np.int64)
    table.learn(zeros, np.zeros((40, 1)), label, np.ones(40), predicted, np.zeros(40, dtype=np.bool_))
    (interval,) = table.model(0).learning_curve().intervals
    assert (interval.first, interval.last) == (200, 232)
