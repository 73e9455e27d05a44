"""The learners that are no trees and their obvious twins, record by record."""

import numpy as np
import pytest

from core import registry
from core.events import Drift
from core.model import validate
from core.model_table import ON_REQUEST
from tests.contract.test_twins_model import assert_same_evaluation, drifting
from tests.naive.baselines import BASELINES
from tests.naive.compare import core_answers, first_difference, naive_answers, twin_of
from tests.naive.rows import STREAMS, mixed
from tests.unit.core.builders import FORESTS, QUERIES, TREES

LEARNERS = [{"name": name} for name in BASELINES] + [{"name": "naive-bayes", "compat": "moa"}]
NAMES = [learner["name"] + ("-moa" if "compat" in learner else "") for learner in LEARNERS]


def test_every_learner_that_is_no_tree_has_a_twin():
    names = {name.replace("_", "-") for name in registry.names("learners") if name not in TREES}
    # the others have test_twins_boct.py, test_twins_sgbt.py and so on; of forests one member is judged by its
    # tree, which has a twin (tests/unit/core/learners/forest)
    others = {"boct", "sgbt", "ufft", "ufodt"}
    assert names - {name.replace("_", "-") for name in FORESTS} == {*BASELINES} | others


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("learner", LEARNERS, ids=NAMES)
def test_the_learner_and_its_twin(learner, stream):
    rows = STREAMS[stream]()
    twin = twin_of({"learner": learner}, rows)
    predictions, _, _ = naive_answers(twin, rows)
    model, ours, _, _ = core_answers({"learner": learner}, rows)
    assert first_difference(ours, predictions) is None
    assert_same_evaluation(model, twin)
    validate.check(model)


@pytest.mark.parametrize("reaction", ["rebuild", "reset", "alert"])
@pytest.mark.parametrize("learner", LEARNERS, ids=NAMES)
def test_drifts(learner, reaction):
    """A block of its own learns from the warning on and takes over; what it has learned is the twin's."""
    rows = drifting()
    spec = {"learner": learner, "drift": {"name": "ddm", "reaction": reaction}, "evaluation": {"window": 200}}
    twin = twin_of(spec, rows)
    predictions, _, _ = naive_answers(twin, rows)
    model, ours, _, events = core_answers(spec, rows)
    assert first_difference(ours, predictions) is None
    assert twin.rebuilds == model.summary().rebuilds
    assert_same_evaluation(model, twin)
    if learner["name"] == "naive-bayes":
        levels = [event.level for _, event in events if isinstance(event, Drift)]
        assert {"warning", "drift"} <= set(levels)


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("learner", LEARNERS, ids=NAMES)
def test_active_learning(learner, query):
    rows = mixed(1500)
    spec = {
        "learner": learner,
        "query": query,
        "budget": {"limit": 0.3},
        "evaluation": {"share": 0.05 if query == "split" else 0.0},
        "seed": 5,
    }
    twin = twin_of(spec, rows)
    predictions, asked, _ = naive_answers(twin, rows, on_request=True)
    model, ours, ours_asked, _ = core_answers(spec, rows, mode=ON_REQUEST)
    assert first_difference(ours_asked, asked) is None
    assert first_difference(ours, predictions) is None
    assert_same_evaluation(model, twin)


def test_the_shares_of_naive_bayes():
    """They are the posterior, whatever the number of attributes: logarithms do not underflow."""
    rows = mixed(400)
    model, _, _, _ = core_answers({"learner": "naive-bayes"}, rows)
    twin = twin_of({"learner": "naive-bayes"}, rows)
    naive_answers(twin, rows)
    for x in rows.x[:20]:
        votes = np.exp(np.array(twin.tree.votes(x.tolist())) - max(twin.tree.votes(x.tolist())))
        record = [
            None if np.isnan(value) or (kind is not None and value < 0) else value
            for value, kind in zip(x.tolist(), rows.attributes, strict=True)
        ]
        prediction = model.predict(record)
        assert list(prediction.probabilities.values()) == pytest.approx(
            (votes / votes.sum()).tolist(), abs=1e-9
        )
