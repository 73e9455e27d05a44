"""An episode that was open outside of its model is answered as the model's own."""

import numpy as np
import pytest

from core.learners.ufodt.account import feature_account
from core.learners.ufodt.open_episode import OpenEpisode, answer_next, hand_in
from core.model.model import Model
from core.model_table import ModelTable
from core.schema.schema import Attribute, Schema
from core.spec import Spec


def table_of(**learner):
    attributes = (
        Attribute("a", range=None if "warm_up" in learner else (0.0, 1.0)),
        Attribute("b", thresholds=(0.3, 0.6), cost=2.0),
        Attribute("c", "nominal", ("x", "y", "z")),
    )
    spec = Spec.parse({"learner": {"name": "ufodt", "hypotheses": 9, **learner}})
    table = ModelTable()
    table.add(Model.create(spec, Schema.of(attributes, "pqr")))
    return table


def rows(n):
    draw = np.random.default_rng(4)
    x = np.column_stack((draw.random((n, 2)), draw.integers(0, 3, n)))
    x[draw.random((n, 3)) < 0.1] = np.nan
    return x, ((np.nan_to_num(x[:, 0]) > 0.5) + (x[:, 2] == 1)).astype(np.int32)


def answered(table, x, label):
    answers = table.answer(
        np.zeros(1, np.int64), x[np.newaxis].copy(), np.array([label], np.int32), np.ones(1)
    )
    return answers.prediction.tolist(), answers.probability.tolist()


@pytest.mark.parametrize(
    "learner",
    [
        {},
        {"criterion": "ig", "thresholds": "exhaustive"},
        {"prediction": "region"},
        {"prediction": "bayes", "warm_up": 3},
        {"answer": "sampled"},
        {"feature_selection": True},
    ],
    ids=str,
)
def test_asked_outside_it_is_the_model_that_asked_inside(learner):
    inside, outside = table_of(**learner), table_of(**learner)
    for x, label in zip(*rows(80), strict=True):
        expected = answered(inside, x, int(label))
        model = outside.model(0)
        episode = OpenEpisode.begin(model, np.full(3, np.nan))
        while (feature := episode.next_feature().feature) is not None:
            episode.observe(feature, x[feature])
        packed = OpenEpisode.unpacked(model.plan, episode.packed())
        assert packed is not None
        answer_next(model, packed)
        assert answered(outside, packed.observed(), int(label)) == expected
        assert np.array_equal(outside.model(0).ints, inside.model(0).ints)
    account = feature_account(outside.model(0))
    assert (account.episodes, account.replayed) == (80, 0)
    assert account.unavailable > 0


def test_its_label_is_learned_later_as_it_would_have_been_at_once():
    now, later = table_of(), table_of()
    x, labels = rows(40)
    for row, label in zip(x[:-1], labels[:-1], strict=True):
        answered(now, row, int(label))
        answered(later, row, int(label))
    expected = answered(now, x[-1], int(labels[-1]))
    model = later.model(0)
    episode = OpenEpisode.begin(model, np.full(3, np.nan))
    while (feature := episode.next_feature().feature) is not None:
        episode.observe(feature, x[-1, feature])
    answer_next(model, episode)
    code, shares = answered(later, episode.observed(), -1)
    episode.close()
    assert (code, shares) == expected
    hand_in(model, episode)
    later.learn(
        np.zeros(1, np.int64),
        episode.observed()[np.newaxis],
        labels[-1:],
        np.ones(1),
        np.array(code, np.int32),
        np.zeros(1, np.bool_),
    )
    mine, other = (
        one_table.model(0).plan.blocks.named(one_table.model(0).ints, one_table.model(0).block_places[0])
        for one_table in (later, now)
    )
    for name in ("labels", "nominal", "above", "below", "used", "gains", "weights"):
        assert np.array_equal(mine[name], other[name]), name
    assert feature_account(later.model(0)) == feature_account(now.model(0))
