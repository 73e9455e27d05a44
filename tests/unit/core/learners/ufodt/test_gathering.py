"""Numbers whose schema declares no thresholds: they come from the first values, and stay."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

from core.errors import SnapshotError
from core.events import ThresholdsSet
from core.kernels.records import offset
from core.layout.plan import PlanRecord
from core.learners.ufodt.account import feature_account, thresholds_of
from core.learners.ufodt.open_episode import OpenEpisode
from core.learners.ufodt.shared import ACCOUNT_WORDS, FirstValues
from core.model import validate
from core.model.model import Model
from core.model_table import ANSWER_ONLY, ON_REQUEST, ModelTable
from core.numeric.digamma import digamma
from core.schema.schema import Attribute, Schema
from core.spec import Spec
from tests.unit.core.builders import answer, table_of

WARM_UP, CUTS = 20, 4
reference = importlib.import_module("scipy.special").digamma


def spec_of(**learner: Any) -> Spec:
    body = {"name": "ufodt", "warm_up": WARM_UP, "n_thresholds": CUTS, "hypotheses": 9, **learner}
    return Spec.parse({"learner": body, "evaluation": {"every": 0}})


def rows(n: int) -> tuple[Any, Any]:
    """Return a number that decides the class, one that is 0 or 1, one that never changes, and labels."""
    draw = np.random.default_rng(3)
    x = np.column_stack((draw.normal(50.0, 9.0, n), draw.integers(0, 2, n), np.full(n, 7.0)))
    return x, (x[:, 0] > 48.0).astype(np.int32)


def inferred() -> Schema:
    """Return the schema of a record of three numbers, once both classes are known."""
    return Schema.infer(("a", "b", "c"), ("numeric",) * 3).with_class("no").with_class("yes")


def quantiles(values: Any) -> list[float]:
    ordered, n = np.sort(values), len(values)
    ends = [j * n // (CUTS + 1) for j in range(1, CUTS + 1)]
    return [float((ordered[i - 1] + ordered[i]) / 2) for i in ends]


def test_thresholds_are_the_quantiles_of_the_first_values_and_it_is_said_once() -> None:
    table = table_of(inferred(), spec_of())
    x, y = rows(120)
    events = answer(table, x, y).events
    assert events == [ThresholdsSet(WARM_UP - 1, 0, attributes=3, left=0)]
    thresholds = thresholds_of(table.model(0))
    assert thresholds["a"] == pytest.approx(quantiles(x[:WARM_UP, 0]))
    assert thresholds["b"] == (0.0,)
    assert thresholds["c"] == (7.0,), "a value that never changes is at most its threshold"
    validate.check(table.model(0))
    by_mean = ModelTable.answer(table, np.zeros(120, np.int64), x, y, np.ones(120), ANSWER_ONLY)
    assert (by_mean.prediction == y).mean() > 0.85
    assert feature_account(table.model(0)).by_feature["a"] > WARM_UP


def test_declared_thresholds_and_ranges_stay_as_they_are() -> None:
    attributes = [Attribute("a", thresholds=(40.0, 48.0)), Attribute("b", range=(0.0, 1.0)), Attribute("c")]
    table = table_of(Schema.of(attributes, ("no", "yes")), spec_of())
    x, y = rows(60)
    events = answer(table, x, y).events
    assert [(type(event), event.row) for event in events] == [(ThresholdsSet, WARM_UP - 1)]
    thresholds = thresholds_of(table.model(0))
    assert (thresholds["a"], thresholds["b"]) == ((40.0, 48.0), (0.2, 0.4, 0.6, 0.8))
    assert thresholds["c"] == (7.0,)


def test_without_thresholds_it_answers_the_class_with_most_labels_and_buys_what_it_has_to_see() -> None:
    table = table_of(inferred(), spec_of(record_budget=2.0))
    x, _ = rows(10)
    labels = np.array([1, 0, 0, 0, 0, 0, 0, 0, 0, 1], np.int32)
    answers = answer(table, x, labels)
    assert answers.prediction[3:].tolist() == [0] * 7
    asked = answer(table, x[:1], np.array([-1]), mode=ANSWER_ONLY)
    assert asked.prediction.tolist() == [0]
    assert asked.probability[0] == pytest.approx([9 / 12, 3 / 12])
    assert feature_account(table.model(0)).by_feature == {"a": 10, "b": 10, "c": 0}
    episode = OpenEpisode.begin(table.model(0), np.array([np.nan, 1.0, np.nan]))
    question = episode.next_feature()
    assert (question.feature, question.utilities) == (0, (0.0, -1.0, 0.0))


def test_values_of_records_that_are_not_learned_and_missing_ones_are_no_first_values() -> None:
    table = table_of(inferred(), spec_of(warm_up=3))
    x = np.array([[1.0, 1.0, 1.0], [np.nan, 2.0, 2.0], [3.0, np.inf, 3.0], [4.0, 4.0, 4.0], [9.0, 5.0, 5.0]])
    labels = np.array([0, 1, 0, -1, 1], np.int32)
    events = answer(table, x, labels).events
    assert events == [ThresholdsSet(2, 0, attributes=1, left=2), ThresholdsSet(4, 0, attributes=2, left=0)]
    thresholds = thresholds_of(table.model(0))
    assert thresholds["a"] == (2.0, 6.0)
    assert thresholds["b"] == (1.5, 3.5)
    assert thresholds["c"] == (1.5, 2.5)


def test_they_are_state_of_the_model_at_every_moment() -> None:
    """A model that was saved, or whose place was given up, goes on as the one that was not."""
    x, y = rows(60)
    whole = table_of(inferred(), spec_of(feature_selection=True))
    answer(whole, x, y)
    for cut in (1, WARM_UP - 1, WARM_UP, 41):
        first = table_of(inferred(), spec_of(feature_selection=True))
        answer(first, x[:cut], y[:cut])
        copy = Model.restore(first.vacate(0).snapshot())
        validate.check(copy)
        first.occupy(0, copy)
        answer(first, x[cut:], y[cut:])
        assert first.model(0).snapshot() == whole.model(0).snapshot()


def test_an_episode_that_began_without_thresholds_ends_without_them() -> None:
    """Its values came too late to be first values, and without thresholds they decide nothing."""
    table = table_of(inferred(), spec_of(prediction="bayes"))
    x, y = rows(WARM_UP)
    episode = OpenEpisode.begin(table.model(0), x[0])
    answer(table, x, y)
    before = thresholds_of(table.model(0))
    carried = OpenEpisode.unpacked(table.model(0).plan, episode.packed())
    assert carried is not None
    shares = carried.finish(table.model(0))[1]
    assert shares[0] == shares[1] or shares.sum() == 0.0
    assert thresholds_of(table.model(0)) == before


@pytest.mark.parametrize(
    ("word", "value", "complaint"),
    [
        (offset(FirstValues, "seen"), WARM_UP + 1.0, "first values of attribute 0"),
        (offset(FirstValues, "seen"), 0.5, "first values of attribute 0"),
        (offset(FirstValues, "made"), CUTS + 1.0, "thresholds of attribute 0 must be a whole number"),
        (offset(FirstValues, "made"), np.nan, "thresholds of attribute 0 must be a whole number"),
        (FirstValues.SIZE, np.inf, "finite numbers in ascending order"),
        (FirstValues.SIZE, 1e9, "finite numbers in ascending order"),
        (offset(FirstValues, "greatest"), -1e9, "must be below the greatest"),
    ],
)
def test_words_that_no_model_has_are_refused(word: int, value: float, complaint: str) -> None:
    table = table_of(inferred(), spec_of())
    answer(table, *rows(30))
    model = table.model(0)
    first = int(PlanRecord.over(model.plan.ints).shared) + ACCOUNT_WORDS + 3
    model.floats[first + word] = value
    with pytest.raises(SnapshotError, match=complaint):
        Model.restore(model.snapshot())


def test_a_label_that_is_asked_for_and_one_that_is_late_are_first_values_once() -> None:
    table = table_of(inferred(), Spec.parse({"learner": spec_of().learner.to_dict(), "query": "always"}))
    x, y = rows(WARM_UP + 5)
    table.answer(np.zeros(len(y), np.int64), x, np.full(len(y), -1, np.int32), np.ones(len(y)), ON_REQUEST)
    assert thresholds_of(table.model(0)) == {"a": (), "b": (), "c": ()}
    one = np.zeros(len(y), np.int64)
    events = table.learn(one, x, y, np.ones(len(y)), np.full(len(y), -1, np.int32), np.ones(len(y), bool))
    assert events == [ThresholdsSet(WARM_UP - 1, 0, attributes=3, left=0)]


@pytest.mark.parametrize("x", [1e-3, 0.5, 1.0, 1.5, 9.999, 10.0, 123.4, 1e9])
def test_digamma(x: float) -> None:
    assert digamma(x) == pytest.approx(reference(x), rel=1e-13, abs=1e-13)
