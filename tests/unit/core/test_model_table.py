import re
from itertools import pairwise

import numpy as np
import pytest

from core.errors import RowError, SchemaError
from core.evaluation import EvaluationDue
from core.events import Split
from core.model import validate
from core.model.model import Model
from core.model_table import ANSWER_ONLY, ON_REQUEST, Answers, JoinedTables, ModelTable
from core.schema.schema import Schema
from core.spec import Spec
from tests.unit.core.builders import answer, halves, schema_of, spec_of, table_of

TWO = schema_of(None, None)


def test_indices_are_given_again():
    table = ModelTable()
    models = [Model.create(spec_of(), TWO) for _ in range(40)]
    assert [table.add(model) for model in models] == list(range(40))
    table.remove(7)
    assert len(table) == 39
    with pytest.raises(IndexError, match="model=7 must be the index of a model"):
        table.model(7)
    assert table.add(models[0]) == 7
    assert table.model(7) is models[0]
    with pytest.raises(IndexError, match="model=-1"):
        table.model(-1)


def test_a_vacant_place_is_kept_and_its_rows_are_refused():
    table = table_of(TWO, models=3)
    model = table.vacate(1)
    with pytest.raises(IndexError, match="model=1 must be .*vacant"):
        table.model(1)
    with pytest.raises(IndexError, match="model=1 must be .*vacant"):
        table.answer(np.array([1]), np.zeros((1, 2)), np.array([-1], dtype=np.int32), np.ones(1))
    assert table.add(Model.create(spec_of(), TWO)) == 3
    assert len(table) == 4
    table.occupy(1, Model(model.plan, model.ints.copy()))
    table.answer(np.array([1]), np.zeros((1, 2)), np.array([0], dtype=np.int32), np.ones(1))
    assert table.model(1).summary().labels == 1
    with pytest.raises(IndexError, match="model=1 must be vacant"):
        table.occupy(1, model)
    table.vacate(2)
    table.remove(2)
    assert table.add(model) == 2
    assert len(table) == 4


def test_models_do_not_touch_each_other():
    x, label = halves(600, columns=2)
    together = table_of(TWO, models=3)
    model = np.arange(600) % 3
    together.answer(model, x, label, np.ones(600))
    for index in range(3):
        alone = table_of(TWO)
        answer(alone, x[model == index], label[model == index])
        assert alone.model(0).snapshot() == together.model(index).snapshot()


def test_answers_before_the_first_label():
    table = table_of(TWO)
    answers = answer(table, np.ones((2, 2)))
    assert answers.prediction.tolist() == [0, 0]
    assert answers.probability.tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert answers.asked.tolist() == [True, True]
    assert answers.version.tolist() == [0, 0]


def test_a_model_without_classes_predicts_none():
    table = table_of(Schema.infer(["x"], ["numeric"]))
    assert answer(table, [[1.0]]).prediction.tolist() == [-1]


def test_version_counts_labels_before_the_answer():
    table = table_of(TWO)
    assert answer(table, np.ones((4, 2)), [0, -1, 1, 0]).version.tolist() == [0, 1, 1, 2]
    assert table.model(0).summary().version == 3


def test_test_then_train():
    """The label of a row is learned after its own answer and before the next."""
    table = table_of(TWO)
    answers = answer(table, np.ones((3, 2)), [1, 1, 1])
    assert answers.prediction.tolist() == [0, 1, 1]
    assert answers.probability.tolist() == [[0.0, 0.0], [0.0, 1.0], [0.0, 1.0]]
    assert table.model(0).evaluation().accuracy == pytest.approx(2 / 3)


def test_labels_are_asked_for_only_where_there_is_none():
    table = table_of(TWO)
    assert answer(table, np.ones((4, 2)), [0, -1, 1, -1]).asked.tolist() == [False, True, False, True]
    assert table.model(0).summary().requests == 2


def test_on_request_a_label_is_used_only_if_asked_for():
    table = table_of(TWO, spec_of(budget={"name": "count", "limit": 0.5}))
    answers = answer(table, np.ones((6, 2)), [0, 1, 0, 1, 0, 1], mode=ON_REQUEST)
    assert answers.asked.tolist() == [True, False, True, False, True, False]
    summary = table.model(0).summary()
    assert (summary.labels, summary.requests, summary.records) == (3, 3, 6)
    assert table.model(0).evaluation().label_share == 0.5


def test_answer_only_changes_nothing():
    table = table_of(TWO, spec_of("nba"))
    x, label = halves(500, columns=2)
    answer(table, x, label)
    before = table.model(0).snapshot()
    answers = answer(table, x, label, mode=ANSWER_ONLY)
    assert table.model(0).snapshot() == before
    assert (answers.prediction == label).mean() > 0.9


def learn(table, x, label, predicted=None, requested=None):
    n = len(label)
    return table.learn(
        np.zeros(n, dtype=np.int64),
        np.asarray(x, dtype=np.float64),
        np.asarray(label, dtype=np.int32),
        np.ones(n),
        np.full(n, -1, dtype=np.int32) if predicted is None else np.asarray(predicted, dtype=np.int32),
        np.zeros(n, dtype=np.bool_) if requested is None else np.asarray(requested),
    )


def test_late_labels_make_the_same_tree():
    """Answered first and learned at once afterwards, or test-then-train: the tree is the same."""
    x, label = halves(1000, columns=2)
    at_once, late = table_of(TWO), table_of(TWO)
    answer(at_once, x, label)
    predictions = answer(late, x).prediction
    splits = learn(late, x, label, predictions, np.ones(1000, dtype=np.bool_))
    assert [type(event) for event in splits] == [Split] * at_once.model(0).summary().splits
    summary = late.model(0).summary()
    assert summary.leaves == at_once.model(0).summary().leaves
    assert (summary.records, summary.labels) == (1000, 1000)
    assert late.model(0).evaluation().accuracy == (predictions == label).mean()


def test_a_label_without_its_prediction_is_not_judged():
    table = table_of(TWO)
    learn(table, np.ones((3, 2)), [0, 1, 1], [-1, 0, 1])
    assert table.model(0).evaluation().labels == 3
    assert table.model(0).evaluation().accuracy == 0.5


@pytest.mark.parametrize("predicted", [2, 50, -2, 2**31 - 1])
def test_a_prediction_that_no_answer_can_have_given_is_refused(predicted):
    """It would be counted in another row of the evaluation, or outside of it."""
    table = table_of(TWO)
    before = table.model(0).snapshot()
    rule = rf"predicted={predicted} of row 1 must be from -1 to the last class code of its model; pass"
    with pytest.raises(SchemaError, match=rule):
        learn(table, np.ones((3, 2)), [0, 1, 1], [-1, predicted, 1])
    assert table.model(0).snapshot() == before
    validate.check(table.model(0))


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        (
            {"sampled": np.array([0, 3], np.int8)},
            "sampled=3 of row 1 must be NOT_SAMPLED or a source of samples",
        ),
        ({"sampled": np.array([-1, 0], np.int8)}, "sampled=-1 of row 0 must be"),
        ({"importance": np.array([1.0, np.nan])}, "importance=nan of row 1 must be finite and at least 0"),
        ({"importance": np.array([np.inf, 0.0])}, "importance=inf of row 0 must be"),
        ({"importance": np.array([0.0, -1.0])}, "importance=-1.0 of row 1 must be"),
    ],
)
def test_what_the_evaluation_weighs_by_is_checked_too(given, rule):
    table = table_of(TWO)
    two = np.zeros(2, np.int64), np.ones((2, 2)), np.zeros(2, np.int32), np.ones(2)
    with pytest.raises(SchemaError, match=re.escape(rule)):
        table.learn(*two, np.zeros(2, np.int32), np.zeros(2, np.bool_), **given)
    assert table.model(0).summary().labels == 0


def test_evaluation_events_come_with_the_state_of_their_row():
    table = table_of(TWO, spec_of(evaluation={"window": 10, "every": 4}))
    events = answer(table, np.ones((9, 2)), [1] * 9).events
    assert [(event.row, event.evaluation.labels) for event in events] == [(3, 4), (7, 8)]
    assert all(isinstance(event, EvaluationDue) for event in events)
    assert events[0].evaluation.accuracy == 0.75


def test_extra_columns_are_ignored_and_missing_ones_refused():
    table = table_of(TWO)
    answer(table, np.ones((1, 5)), [1])
    with pytest.raises(SchemaError, match="x must have at least 2 columns, not 1"):
        answer(table, np.ones((1, 1)), [1])


def test_unknown_classes_are_refused_before_anything_happens():
    table = table_of(TWO)
    with pytest.raises(SchemaError, match="label=2 of row 1 must be below 2; adopt a schema with the class"):
        answer(table, np.ones((3, 2)), [0, 2, 1])
    assert table.model(0).summary().records == 1
    with pytest.raises(SchemaError, match="label=-1 must be a class code, or DECLINED"):
        learn(table, np.ones((1, 2)), [-1])


def test_columns_must_have_one_length():
    table = table_of(TWO)
    with pytest.raises(SchemaError, match="one row for each of 2 rows"):
        table.answer(np.zeros(2, dtype=np.int64), np.ones((1, 2)), np.zeros(2, dtype=np.int32), np.ones(2))


def test_an_empty_run():
    table = table_of(TWO)
    answers = table.answer(np.zeros(0, np.int64), np.zeros((0, 2)), np.zeros(0, np.int32), np.zeros(0))
    assert len(answers.prediction) == 0
    assert answers.events == []


def test_read_only_columns_are_taken():
    table = table_of(TWO)
    x = np.ones((3, 2))
    x.flags.writeable = False
    answer(table, x, [0, 1, 1])
    assert table.model(0).summary().labels == 3


def test_many_models_of_different_kinds_in_one_run():
    """Models of other specs and schemas share a run and its columns."""
    table = ModelTable()
    table.add(Model.create(spec_of("nb"), schema_of(None, None)))
    table.add(
        Model.create(Spec.parse({"learner": {"criterion": "gini"}}), schema_of(2, None, 3, classes="abc"))
    )
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.integers(0, 2, 400), rng.random(400), rng.integers(0, 3, 400)]).astype(float)
    answers = table.answer(np.arange(400) % 2, x, rng.integers(0, 2, 400).astype(np.int32), np.ones(400))
    assert answers.probability.shape == (400, 3)
    assert (answers.probability[::2, 2] == 0.0).all()
    assert [table.model(i).summary().labels for i in range(2)] == [200, 200]


class Joined:
    """Tables of models that are answered in one call, and equal tables that are answered one by one."""

    def __init__(self, tables: int, models: int, **spec) -> None:
        self.ours, self.theirs = (
            [table_of(TWO, spec_of(**spec), models) for _ in range(tables)] for _ in range(2)
        )
        places = np.arange(tables * models)
        self.joined = JoinedTables(self.ours, places // models, places % models)
        self.models = models

    def answer(self, x, label, counts):
        """Answer rows, so many of each table; compare answers, events and models."""
        n, ends = len(x), np.cumsum([0, *counts])
        own = np.arange(n) % self.models
        model = own + np.repeat(np.arange(len(counts)), counts) * self.models
        answers = Answers.to(n, self.joined.most_classes)
        self.joined.answer_into(answers, model, x, label, np.ones(n))
        assert self.joined.reached == n
        for number, (start, end) in enumerate(pairwise(ends)):
            rows = slice(start, end)
            alone = self.theirs[number].answer(own[rows], x[rows], label[rows], np.ones(end - start))
            assert answers.prediction[rows].tolist() == alone.prediction.tolist()
            assert answers.probability[rows].tolist() == alone.probability.tolist()
            assert answers.version[rows].tolist() == alone.version.tolist()
            assert answers.asked[rows].tolist() == alone.asked.tolist()
            mine = [event for event in answers.events if start <= event.row < end]
            assert [(type(event), event.row - start, self.joined.slot(event.model)) for event in mine] == [
                (type(event), event.row, event.model) for event in alone.events
            ]
            for index in range(self.models):
                ours, theirs = self.ours[number].model(index), self.theirs[number].model(index)
                assert ours.ints.tobytes() == theirs.ints.tobytes()


def test_tables_that_are_joined_answer_as_each_alone():
    both = Joined(3, 2, grace_period=20, evaluation={"every": 50})
    x, label = halves(900, columns=2)
    label[::7] = -1
    for start in range(0, 900, 300):
        rows = slice(start, start + 300)
        both.answer(x[rows], label[rows], [100, 50, 150])
    assert any(both.ours[0].model(index).summary().labels > 100 for index in range(2))


def test_a_model_that_grew_in_a_joined_call_is_found_by_its_table():
    both = Joined(2, 1, grace_period=20)
    x, label = halves(800, columns=2)
    both.answer(x, label, [400, 400])
    for ours, theirs in zip(both.ours, both.theirs, strict=True):
        probe = np.zeros(1, dtype=np.int64), x[:1], np.array([-1], dtype=np.int32), np.ones(1)
        assert ours.answer(*probe).prediction == theirs.answer(*probe).prediction


def test_a_decision_that_fails_names_its_row_and_leaves_earlier_tables_done(monkeypatch):
    both = Joined(3, 1, grace_period=20)
    x, label = halves(600, columns=2)
    failing = both.ours[1].model(0)

    def grow(model, *arguments):
        if model is failing:
            raise ArithmeticError("no")
        return original(model, *arguments)

    original = failing.plan.blocks.grow
    monkeypatch.setattr(type(failing.plan.blocks), "grow", lambda _, *arguments: grow(*arguments))
    answers = Answers.to(600, both.joined.most_classes)
    with pytest.raises(RowError) as raised:
        both.joined.answer_into(answers, np.arange(600) // 200, x, label, np.ones(600))
    assert 200 <= raised.value.row < 400
    assert both.joined.reached == raised.value.row
    assert both.ours[0].model(0).summary().labels == 200
    assert both.ours[2].model(0).summary().labels == 0


def test_rows_that_are_refused_reach_nothing():
    both = Joined(2, 1)
    answers = Answers.to(2, 2)
    both.ours[1].vacate(0)
    both.joined = JoinedTables(both.ours, np.arange(2), np.zeros(2, dtype=np.int64))
    with pytest.raises(IndexError, match="vacant"):
        both.joined.answer_into(answers, np.arange(2), np.zeros((2, 2)), np.zeros(2, np.int32), np.ones(2))
    assert both.joined.reached == 0
    assert both.ours[0].model(0).summary().labels == 0
