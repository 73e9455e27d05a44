"""UFODT's own acquirer: what its words are, and what it leaves alone."""

import numpy as np
import pytest

from core.active.acquirers import utility
from core.active.acquirers.base import Step
from core.errors import ParameterError, SchemaError
from core.learners.ufodt.account import feature_account
from core.learners.ufodt.open_episode import OpenEpisode, answer_next
from core.learners.ufodt.words import Episode
from core.model.model import Model
from core.schema.schema import Attribute, Schema
from core.spec import Spec

UNKNOWN = np.full(3, np.nan)
EVERY = np.ones(3, dtype=np.bool_)


def model_of(**learner):
    attributes = (
        Attribute("age", range=(0.0, 8.0)),
        Attribute("dose", thresholds=(1.5, 3.0), cost=2.0),
        Attribute("smoker", "nominal", ("no", "yes"), open=True),
    )
    spec = Spec.parse({"learner": {"name": "ufodt", "hypotheses": 8, **learner}})
    return Model.create(spec, Schema.of(attributes, ("well", "ill"), classes_open=True))


def opened(model, number=7, frozen=False, x=UNKNOWN, unknown=EVERY):
    return utility.Plugin().open(model, x, unknown, number, frozen)


def test_it_is_what_the_learner_does_unless_the_spec_says_otherwise():
    assert Spec.parse("ufodt").acquirer == utility.Plugin()
    quiet = Spec.parse({"learner": "ufodt", "acquire": "none"})
    assert quiet.acquirer is None
    for spec in (
        Spec.parse("ufodt"),
        quiet,
        Spec.parse({"learner": "ufodt", "acquire": {"batch": 2, "name": "utility"}}),
    ):
        assert Spec.parse(spec.to_json()) == spec
    assert "acquire" not in Spec.parse("h-tree").to_dict()


def test_other_learners_are_refused():
    with pytest.raises(ParameterError, match="must go with the learner 'ufodt', not 'h-tree'; take 'path'"):
        Spec.parse({"learner": "h-tree", "acquire": "utility"})


def test_asked_again_it_says_the_same_and_the_words_of_before_stay_what_they_were():
    model, acquirer = model_of(), utility.Plugin()
    words = opened(model)
    before, ints = words.copy(), model.ints.copy()
    step = acquirer.step(model, words, UNKNOWN, EVERY, np.inf)
    assert np.array_equal(words, before)
    again = acquirer.step(model, step.words, UNKNOWN, EVERY, np.inf)
    assert again.features == step.features
    assert np.array_equal(again.words, step.words)
    told = acquirer.observe(model, step.words, step.features[0], 1.0)
    assert not np.array_equal(told, step.words)
    assert np.array_equal(again.words, step.words)
    assert np.array_equal(model.ints, ints), "questions and values do not touch the model"


def test_an_episode_of_a_frozen_model_hangs_on_the_record_alone():
    model = model_of()
    before = model.ints.copy()
    first, second = opened(model, 7, frozen=True), opened(model, 8, frozen=True)
    assert np.array_equal(first, opened(model, 7, frozen=True))
    assert not np.array_equal(first, second)
    assert np.array_equal(model.ints, before)
    opened(model)
    assert feature_account(model).episodes == 1


def test_what_is_known_without_an_outcome_is_not_asked_for():
    model = model_of()
    words = opened(model, unknown=np.array([True, True, False]))
    episode = OpenEpisode.unpacked(model.plan, words)
    assert episode is not None
    assert [episode.is_unknown(column) for column in range(3)] == [True, True, False]


def test_words_that_are_no_episode_end_it():
    model = model_of()
    unknown_classes = opened(model)
    Episode(unknown_classes, unknown_classes.view(np.float64), 2).classes = 99
    for words in (
        np.zeros(0, dtype=np.int64),
        np.arange(2),
        np.arange(50),
        opened(model)[:-1],
        unknown_classes,
    ):
        assert utility.Plugin().step(model, words, UNKNOWN, EVERY, np.inf) == Step(stop="finish")
        assert utility.Plugin().observe(model, words, 0, 1.0) is words
        before = model.ints.copy()
        utility.Plugin().hand_in(model, words)
        assert np.array_equal(model.ints, before)


def test_an_episode_is_carried_into_a_schema_that_has_grown():
    model, acquirer = model_of(), utility.Plugin()
    words = acquirer.step(model, opened(model), UNKNOWN, EVERY, np.inf).words
    words = acquirer.observe(model, words, 0, 3.0)
    narrow = OpenEpisode.unpacked(model.plan, words)
    model.adopt(model.schema.with_values([(2, f"kind {n}") for n in range(9)]).with_class("dead"))
    assert model.plan.blocks.episode_words + 2 > len(words)
    episode = OpenEpisode.unpacked(model.plan, words)
    assert narrow is not None
    assert episode is not None
    assert np.array_equal(episode.words, narrow.carry(model.plan).words)
    assert episode.observed().tolist()[0] == 3.0
    step = acquirer.step(model, words, UNKNOWN, EVERY, np.inf)
    assert len(step.words) == model.plan.blocks.episode_words + 2


def test_an_episode_is_answered_once():
    model = model_of()
    episode = OpenEpisode.begin(model, UNKNOWN)
    episode.finish(model)
    with pytest.raises(SchemaError, match="must be open to be answered"):
        answer_next(model, episode)
