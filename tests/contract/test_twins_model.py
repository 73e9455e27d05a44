"""Whole models and their obvious twins: drift, strategies, budgets, evaluation, labels that come later."""

from itertools import product
from typing import Any

import numpy as np
import pytest

from core import registry
from core.active.label_account import DECLINED, EXPIRED
from core.active.queries import rate
from core.events import Drift
from core.model.model import Model as CoreModel
from core.model_table import LABELLED, ON_REQUEST, ModelTable
from core.numeric.proportions import wilson
from core.spec import Spec
from tests.naive.compare import (
    ANSWER_SCORES,
    SCORES,
    assert_same_splits,
    assert_same_tree,
    core_answers,
    first_difference,
    naive_answers,
    splits_of,
    twin_of,
)
from tests.naive.rows import Stream, mixed, numeric
from tests.tiers import pairwise
from tests.unit.core.builders import QUERIES

LEARNER = {"name": "h-tree", "grace_period": 40, "delta": 0.01, "tau": 0.1, "leaf_model": "nba"}


def drifting(n=6000, seed=7):
    """The concept of ``numeric`` turned round twice, and noisier for a while without a turn."""
    stream = numeric(n, seed)
    turned = (np.arange(n) // (n // 3)) % 2 == 1
    random = np.random.default_rng(seed)
    noisy = (np.arange(n) > 0.85 * n) & (random.random(n) < 0.15)
    stream.y = (stream.y ^ turned ^ noisy).astype(np.int32)
    return stream


def assert_same_evaluation(model, twin):
    ours = model.evaluation()
    assert ours.records == twin.t
    assert ours.labels == twin.labels
    closed = (ours.answered, ours.declined, ours.expired)
    assert closed == tuple(twin.closed[how] for how in ("answered", "declined", "expired"))
    assert (ours.asked, ours.outstanding) == (twin.requests, twin.requests - sum(closed))
    assert model.summary().refused == twin.refused
    assert ours.drawn_labels == len(twin.judged)
    if twin.judged:
        share, n = twin.unbiased()
        assert ours.accuracy_unbiased == pytest.approx(share, abs=1e-6)
        interval = (ours.accuracy_unbiased_low, ours.accuracy_unbiased_high)
        assert interval == pytest.approx(wilson(share * n, n), abs=1e-6)
    for windowed, suffix in ((False, ""), (True, "_windowed")):
        assert getattr(ours, "accuracy" + suffix) == pytest.approx(
            twin.evaluation.accuracy(windowed), abs=1e-12
        )
        assert getattr(ours, "kappa" + suffix) == pytest.approx(twin.evaluation.kappa(windowed), abs=1e-12)
        if len(twin.evaluation.judged) < 2000:  # else counted anew it takes long
            for measure in ("kappa_m", "kappa_temporal"):
                expected = getattr(twin.evaluation, measure)(windowed)
                assert getattr(ours, measure + suffix) == pytest.approx(expected, abs=1e-12)
        assert getattr(ours, "f1_rarer" + suffix) == pytest.approx(
            twin.evaluation.f1_rarer(windowed), abs=1e-12
        )


@pytest.mark.parametrize("compat", [None, "moa"])
@pytest.mark.parametrize(
    "drift", [{"name": "ddm"}, {"name": "ddm", "warm_up": 10, "warning": 1.5, "min_errors": 3}]
)
def test_drift_detection_and_rebuilding(drift, compat):
    stream = drifting()
    spec = {
        "learner": LEARNER | {"compat": compat, "leaf_model": "mc"},
        "drift": drift,
        "evaluation": {"window": 300},
    }
    twin = twin_of(spec, stream)
    predictions, _, splits = naive_answers(twin, stream)
    model, ours, _, events = core_answers(spec, stream)
    levels = [event.level for _, event in events if isinstance(event, Drift)]
    assert levels.count("drift") == twin.rebuilds == model.summary().rebuilds
    assert twin.rebuilds >= 2
    assert "warning" in levels
    assert_same_splits(splits_of(events), splits)
    assert first_difference(ours, predictions) is None
    assert_same_tree(model, twin.tree)
    assert_same_evaluation(model, twin)


@pytest.mark.parametrize("reaction", ["rebuild", "reset", "alert"])
@pytest.mark.parametrize("name", [name for name in registry.names("drift") if name != "none"])
def test_every_detector_with_every_reaction(name, reaction):
    stream = drifting()
    spec = {"learner": LEARNER | {"leaf_model": "mc"}, "drift": {"name": name, "reaction": reaction}}
    twin = twin_of(spec, stream)
    predictions, _, splits = naive_answers(twin, stream)
    model, ours, _, events = core_answers(spec, stream)
    drifts = [event for _, event in events if isinstance(event, Drift)]
    levels = [event.level for event in drifts]
    assert "drift" in levels
    assert twin.rebuilds == model.summary().rebuilds == (0 if reaction == "alert" else levels.count("drift"))
    actions = {
        "rebuild": {"background tree took over", "new tree"},
        "reset": {"new tree"},
        "alert": {"none"},
    }[reaction]
    assert {event.action for event in drifts if event.level == "drift"} <= actions
    if reaction != "rebuild":
        assert {event.action for event in drifts if event.level != "drift"} == {"none"}
    assert_same_splits(splits_of(events), splits)
    assert first_difference(ours, predictions) is None
    assert_same_tree(model, twin.tree)
    assert_same_evaluation(model, twin)


@pytest.mark.parametrize("limit", [1.0, 0.3, 0.05])
@pytest.mark.parametrize("query", QUERIES)
def test_active_learning(query, limit):
    follow(numeric(3000), {"query": query, "budget": {"name": "count", "limit": limit}})


@pytest.mark.parametrize("query", QUERIES)
def test_active_learning_in_a_window_with_a_reserved_slice_and_drift(query):
    """Of labels asked for, the detector of the split strategies sees those drawn at random alone."""
    spec = {
        "query": query,
        "budget": {"name": "window", "limit": 0.4, "window": 50},
        "evaluation": {"share": 0.03, "window": 200},
        "drift": {"name": "ddm", "warm_up": 10, "warning": 1.5, "min_errors": 3},
    }
    follow(drifting(4000), spec)


@pytest.mark.parametrize("query", QUERIES)
def test_active_learning_with_three_classes(query):
    follow(mixed(2000), {"query": query, "budget": {"limit": 0.4}, "evaluation": {"share": 0.05}})


@pytest.mark.parametrize("score", [*SCORES])
def test_ranks_of_every_score(score):
    """A short window, that is full most of the time; weights, missing values, three classes."""
    query = {"name": "rate", "score": score, "window": 60, "explore": 0.3}
    follow(mixed(2500), {"query": query, "budget": {"limit": 0.2}})


@pytest.mark.parametrize("score", [*ANSWER_SCORES, "leaf_share"])
@pytest.mark.parametrize("query", ["conf_tree", "selective_sampling", "split", "rate", "ask"])
def test_every_score_of_an_answer(query, score):
    """Three classes, weights, missing values; the guards of ``ask`` work for a part of the stream."""
    guards = {"anneal": 100, "dependence": 0.1, "explore": 0.1} if query == "ask" else {}
    follow(mixed(1500), {"query": {"name": query, "score": score, **guards}, "budget": {"limit": 0.4}})


@pytest.mark.parametrize("weights", ["balanced", "sqrt_balanced", {"1": 3.5, "2": 0.25, "none": 7}])
@pytest.mark.parametrize("drift", ["none", "ddm"])
def test_class_weights(weights, drift):
    """Three classes of uneven frequency, weights of records, and with a drift a background tree."""
    stream = mixed(1500)
    spec = {"learner": LEARNER, "class_weights": weights, "drift": drift, "seed": 5}
    twin = twin_of(spec, stream)
    predictions, _, splits = naive_answers(twin, stream)
    model, ours, _, events = core_answers(spec, stream)
    assert_same_splits(splits_of(events), splits)
    assert first_difference(ours, predictions) is None
    assert_same_tree(model, twin.tree)
    plain, _, _, _ = core_answers({k: v for k, v in spec.items() if k != "class_weights"}, stream)
    assert plain.snapshot() != model.snapshot()


def test_every_strategy_with_a_score_has_a_twin():
    assert set(SCORES) == set(rate.scored())


def follow(stream, parts):
    """Compare core and its twin on a stream whose labels come only when they are asked for."""
    spec = {"learner": LEARNER, "seed": 5} | parts
    query = spec["query"]
    twin = twin_of(spec, stream)
    predictions, asked, splits = naive_answers(twin, stream, on_request=True)
    model, ours, ours_asked, events = core_answers(spec, stream, mode=ON_REQUEST)
    assert first_difference(ours_asked, asked) is None
    assert first_difference(ours, predictions) is None
    assert_same_splits(splits_of(events), splits)
    assert_same_evaluation(model, twin)
    assert model.summary().requests == twin.requests == sum(asked)
    assert (sum(asked) == 0) == (query == "never" and not model.spec.evaluation.share)


@pytest.mark.parametrize("query", QUERIES)
def test_labels_for_some_records_only(query):
    """In LABELLED mode records without a label are answered, and their label may be asked for."""
    stream = mixed(3000)
    label = np.where(np.random.default_rng(8).random(3000) < 0.4, stream.y, -1).astype(np.int32)
    spec = {"learner": LEARNER, "query": {"name": query}, "budget": {"name": "count", "limit": 0.2}}
    twin = twin_of(spec, stream)
    predictions, asked, splits = naive_answers(twin, stream, label)
    model, ours, ours_asked, events = core_answers(spec, stream, label, LABELLED)
    assert first_difference(ours_asked, asked) is None
    assert first_difference(ours, predictions) is None
    assert_same_splits(splits_of(events), splits)
    assert_same_tree(model, twin.tree)
    assert_same_evaluation(model, twin)


@pytest.mark.parametrize("compat", [None, "moa"])
def test_labels_that_come_later(compat):
    """Labels arrive 100 records late, are judged by the stored prediction, and one in ten is lost."""
    stream = drifting(3000)
    spec = {"learner": LEARNER | {"compat": compat}, "drift": {"name": "ddm"}, "evaluation": {"window": 200}}
    twin = twin_of(spec, stream)
    table = ModelTable()
    index = table.add(CoreModel.create(Spec.parse(spec), stream.schema()))
    lost = np.random.default_rng(9).random(3000) < 0.1
    delay, ours, theirs = 100, [], []
    for first in range(0, 3000, delay):
        rows = slice(first, first + delay)
        answers = table.answer(
            np.full(delay, index), stream.x[rows], np.full(delay, -1, np.int32), stream.weight[rows], LABELLED
        )
        ours += answers.prediction.tolist()
        theirs += [twin.answer(x)[0] for x in stream.x[rows].tolist()]
        arrived = (
            first - delay + np.flatnonzero(~lost[first - delay : first]) if first else np.empty(0, np.int64)
        )
        table.learn(
            np.full(len(arrived), index),
            stream.x[arrived],
            stream.y[arrived],
            stream.weight[arrived],
            np.array(ours, np.int32)[arrived],
            np.zeros(len(arrived), bool),
        )
        for record in arrived.tolist():
            twin.learn(stream.x[record].tolist(), int(stream.y[record]), 1.0, theirs[record])
    assert first_difference(ours, theirs) is None
    assert twin.tree.splits > 0
    assert_same_tree(table.model(index), twin.tree)
    assert_same_evaluation(table.model(index), twin)


def test_a_label_without_a_prediction_is_learned_but_not_judged():
    stream = numeric(1000)
    spec = {"learner": LEARNER, "drift": {"name": "ddm"}}
    twin = twin_of(spec, stream)
    table = ModelTable()
    index = table.add(CoreModel.create(Spec.parse(spec), stream.schema()))
    unknown = np.full(1000, -1, np.int32)
    table.learn(np.full(1000, index), stream.x, stream.y, stream.weight, unknown, np.zeros(1000, bool))
    for x, y in zip(stream.x.tolist(), stream.y.tolist(), strict=True):
        twin.learn(x, y)
    model = table.model(index)
    assert_same_tree(model, twin.tree)
    assert model.evaluation().accuracy == 0.0
    assert model.summary().records == 0
    assert model.summary().labels == 1000


@pytest.mark.parametrize(
    ("name", "respend", "query", "share"),
    pairwise(product(registry.names("budgets"), (False, True), QUERIES, (0.04, 0.0))),
)
def test_labels_late_lost_and_declined(name, respend, query, share):
    """Requests are answered 40 records later, declined or never answered; what was lost may be spent anew."""
    stream = drifting(1600)
    budget = {"name": name, "limit": 0.3, "respend": respend}
    spec = {"learner": LEARNER, "query": query, "budget": budget, "evaluation": {"share": share}, "seed": 2}
    twin = twin_of(spec, stream)
    table = ModelTable()
    index = table.add(CoreModel.create(Spec.parse(spec), stream.schema()))
    fate = np.random.default_rng(4).choice(["answered", "declined", "expired"], 1600, p=[0.5, 0.25, 0.25])
    size = 40
    before, predictions, sampled, importance = (
        np.empty(0, kind) for kind in (np.int64, np.int32, np.int8, np.float64)
    )
    for first in range(0, 1600, size):
        rows = slice(first, first + size)
        answers = table.answer(
            np.full(size, index), stream.x[rows], np.full(size, -1, np.int32), stream.weight[rows]
        )
        theirs = [twin.answer(x) for x in stream.x[rows].tolist()]
        assert answers.asked.tolist() == [asked for _, asked, _ in theirs]
        assert answers.prediction.tolist() == [prediction for prediction, _, _ in theirs]
        if len(before):
            closing = np.select([fate[before] == "declined", fate[before] == "expired"], [DECLINED, EXPIRED])
            label = np.where(fate[before] == "answered", stream.y[before], closing).astype(np.int32)
            columns: tuple[Any, ...] = (predictions, np.ones(len(before), bool), sampled, importance)
            table.learn(np.full(len(before), index), stream.x[before], label, stream.weight[before], *columns)
            for place, record in enumerate(before.tolist()):
                if fate[record] == "answered":
                    x, y = stream.x[record].tolist(), int(stream.y[record])
                    fates = (twin.sampled[record], twin.importance[record])
                    twin.learn(x, y, 1.0, int(predictions[place]), True, *fates)
                else:
                    twin.close(fate[record])
        asked = np.flatnonzero(answers.asked)
        before, predictions = first + asked, answers.prediction[asked]
        sampled, importance = answers.sampled[asked], answers.importance[asked]
    model = table.model(index)
    assert_same_tree(model, twin.tree)
    assert_same_evaluation(model, twin)
    asks = query != "never" or share > 0.0
    assert (model.evaluation().declined > 0) is asks
    assert (model.evaluation().expired > 0) is asks


@pytest.mark.parametrize("size", [1, 7, 5000])
def test_the_cut_of_runs_changes_nothing(size):
    stream = drifting(1500)
    spec = {"learner": LEARNER, "drift": {"name": "ddm"}, "query": "random", "budget": {"limit": 0.5}}
    whole = core_answers(spec, stream)
    cut = core_answers(spec, stream, size=size)
    assert whole[1:3] == cut[1:3]
    assert splits_of(whole[3]) == splits_of(cut[3])


def test_models_in_one_table_do_not_touch_each_other():
    """Rows of three models, each with its spec, interleaved in one run: as if each were alone."""
    streams = [numeric(1200, 1), numeric(1200, 2), numeric(1200, 3)]
    specs = [{"learner": LEARNER | {"leaf_model": leaf_model}} for leaf_model in ("mc", "nb", "nba")]
    table = ModelTable()
    indices = [
        table.add(CoreModel.create(Spec.parse(spec), stream.schema()))
        for spec, stream in zip(specs, streams, strict=True)
    ]
    together = Stream(
        np.stack([s.x for s in streams], axis=1).reshape(-1, 3),
        np.stack([s.y for s in streams], axis=1).reshape(-1),
        np.ones(3600),
        streams[0].attributes,
        2,
    )
    answers = table.answer(np.tile(indices, 1200), together.x, together.y, together.weight)
    for position, (spec, stream) in enumerate(zip(specs, streams, strict=True)):
        twin = twin_of(spec, stream)
        predictions, _, _ = naive_answers(twin, stream)
        assert first_difference(answers.prediction[position::3].tolist(), predictions) is None
        assert_same_tree(table.model(indices[position]), twin.tree)
