"""The input detector in a model: alarms beside the twin, cuts of a run, growth, snapshots, false alarms."""

import math

import numpy as np
import pytest

from core.errors import ParameterError, SnapshotError, UnknownPluginError
from core.events import InputsChanged
from core.model.model import Model
from core.model_table import ANSWER_ONLY, LABELLED, ON_REQUEST, ModelTable
from core.schema.schema import Attribute, Schema
from core.spec import Spec
from tests.naive.inputs import Inputs
from tests.unit.core.builders import answer, schema_of, table_of

SMALL = {"name": "input", "window": 60, "reference": 150, "bins": 5}
FIRST = 8 * 5 + 150
"""Records before the first window."""


def spec_of(**parameters):
    return Spec.parse({"drift": SMALL | parameters, "evaluation": {"every": 0}})


def inputs(n=3000, seed=2):
    """Four columns: numbers, numbers with ties and gaps, categories, categories without a code at times.

    The first column moves at 1,000, the third from 2,000 on, and gaps become frequent at 2,500.
    """
    random = np.random.default_rng(seed)
    x = np.stack(
        [
            random.normal(size=n),
            random.poisson(1.0, n).astype(float),
            random.integers(0, 3, n).astype(float),
            random.integers(-1, 4, n).astype(float),
        ],
        axis=1,
    )
    row = np.arange(n)
    x[row > 1000, 0] += 1.0
    x[(row > 2000) & (x[:, 2] == 0), 2] = 2.0
    x[random.random(n) < np.where(row > 2500, 0.5, 0.05), 1] = math.nan
    x[random.random(n) < 0.02, 3] = math.nan
    return x


SCHEMA = (None, None, 3, 4)


def alarms_of(table, x, cut=None, label=None, mode=LABELLED):
    """Return row and moved columns of each alarm, for a run that is cut every so many rows."""
    size = cut or max(len(x), 1)
    alarms = []
    for start in range(0, len(x), size):
        part = slice(start, start + size)
        answers = answer(table, x[part], None if label is None else label[part], mode=mode)
        for event in answers.events:
            if isinstance(event, InputsChanged):
                alarms.append((start + event.row, [moved.attribute for moved in event.moved]))
    return alarms


@pytest.mark.parametrize(
    "given",
    [
        {"features": 100},
        {"features": 2},
        {"features": 100, "distance": "psi", "least": 0.6},
        {"features": 100, "distance": "hellinger", "least": 0.25},
    ],
)
def test_alarms_are_those_of_the_twin(given):
    x = inputs()
    twin = Inputs(range(4), {2, 3}, alpha=0.05, **given, **sizes())
    expected = []
    for row, record in enumerate(x):
        moved = twin.changed()
        if moved:
            expected.append((row, moved))
        twin.take(record)
    table = table_of(schema_of(*SCHEMA), spec_of(alpha=0.05, **given))
    alarms = alarms_of(table, x)
    assert alarms == expected
    assert len(alarms) >= 2
    if "least" not in given:
        assert {column for _, moved in alarms for column in moved} == set(range(min(given["features"], 3)))


def sizes():
    return {name: SMALL[name] for name in ("window", "reference", "bins")}


def test_an_alarm_reports_the_distances_of_the_twin():
    x = inputs()
    twin = Inputs(range(4), {2, 3}, alpha=0.05, features=100, **sizes())
    table = table_of(schema_of(*SCHEMA), spec_of(alpha=0.05))
    reported = []
    for record in x:
        before = list(twin.before), list(twin.now)
        distances = {c: twin.distances(c) for c in range(4)} if len(twin.now) == 60 else {}
        changed = twin.changed()
        twin.take(record)
        events = [e for e in answer(table, record).events if isinstance(e, InputsChanged)]
        assert len(events) == bool(changed)
        for event in events:
            for moved in event.moved:
                assert (moved.ks, moved.psi) == pytest.approx(distances[moved.attribute][:2], abs=1e-12)
                assert moved.hellinger == pytest.approx(distances[moved.attribute][2], abs=1e-7)
                missing = [np.mean([not math.isfinite(r[moved.attribute]) for r in part]) for part in before]
                assert moved.missing == pytest.approx(missing)
                reported.append(moved.attribute)
    assert {0, 1, 2} <= set(reported)


@pytest.mark.parametrize("scores", [False, True])
def test_where_a_run_is_cut_changes_nothing(scores):
    x = inputs(1500)
    label = (x[:, 0] > 0.5).astype(np.int32)
    results = []
    for cut in (1, 7, 1500):
        table = table_of(schema_of(*SCHEMA), spec_of(scores=scores))
        results.append((alarms_of(table, x, cut, label), table.model(0).snapshot()))
    assert results[0] == results[1] == results[2]
    assert results[0][0]


def test_labels_make_no_difference():
    x = inputs(1500)
    label = (x[:, 0] > 0.5).astype(np.int32)
    first, second = (table_of(schema_of(*SCHEMA), spec_of()) for _ in range(2))
    expected = alarms_of(second, x)
    assert alarms_of(first, x, label=label) == expected
    assert expected
    third = table_of(schema_of(*SCHEMA), spec_of())
    assert alarms_of(third, x, label=label, mode=ON_REQUEST) == expected


def test_a_frozen_model_is_not_watched():
    table = table_of(schema_of(*SCHEMA), spec_of())
    answer(table, inputs(500))
    before = table.model(0).snapshot()
    assert alarms_of(table, inputs(3000), mode=ANSWER_ONLY) == []
    assert table.model(0).snapshot() == before


def test_a_restored_model_goes_on_in_every_phase():
    x = inputs(1500)
    whole = table_of(schema_of(*SCHEMA), spec_of())
    alarms = alarms_of(whole, x)
    for cut in (17, 100, FIRST + 30, alarms[0][0] + 5):
        table = table_of(schema_of(*SCHEMA), spec_of())
        first = alarms_of(table, x[:cut])
        restored = Model.restore(table.model(0).snapshot())
        table = ModelTable()
        table.add(restored)
        rest = [(cut + row, moved) for row, moved in alarms_of(table, x[cut:])]
        assert first + rest == alarms
        assert table.model(0).snapshot() == whole.model(0).snapshot()


def test_an_attribute_that_comes_later_was_missing_before():
    """The batch that brings it may add it to the schema long before its first record."""
    x = inputs(900)
    x[:600, 1] = math.nan
    attributes = [Attribute("a"), Attribute("c", "nominal", open=True), Attribute("b")]
    columns = [0, 2, 1]
    grown = Schema.of(attributes[:2], ("a", "b"), open_attributes=True).with_values(
        [(1, value) for value in "012"]
    )
    finals = []
    for at in (0, 300, 600):
        table = table_of(Schema.of(attributes[:2], ("a", "b"), open_attributes=True), spec_of())
        table.model(0).adopt(grown)
        table.refresh(0)
        alarms = alarms_of(table, x[:at][:, columns])
        table.model(0).adopt(grown.with_attributes(attributes[2:]))
        table.refresh(0)
        alarms += [(at + row, moved) for row, moved in alarms_of(table, x[at:][:, columns])]
        finals.append((alarms, table.model(0).snapshot()))
    assert finals[0] == finals[1] == finals[2]
    assert [2] in [moved for _, moved in finals[0][0]]


def test_a_change_of_the_spec_keeps_a_state_that_means_the_same():
    x = inputs(1500)
    table = table_of(schema_of(*SCHEMA), spec_of())
    answer(table, x[:400])
    model = table.model(0)
    counted = model.header.input_state(model.plan.record).records
    model.configure(spec_of(alpha=0.001, open_records=5))
    assert model.header.input_state(model.plan.record).records == counted > 0
    model.configure(spec_of(window=70))
    assert model.header.input_state(model.plan.record).records == 0
    without = Spec.parse({"evaluation": {"every": 0}})
    model.configure(without)
    assert model.plan.record.input_words == 0
    model.configure(spec_of())
    table.refresh(0)
    assert alarms_of(table, x)


@pytest.mark.parametrize(
    ("drift", "error", "words"),
    [
        (["adwin", "ddm"], ParameterError, "'adwin', 'ddm' must name at most one detector of errors"),
        (["input", {"name": "input", "bins": 5}], ParameterError, "at most one input detector"),
        (["imput"], UnknownPluginError, "did you mean 'input'"),
        ([["input"]], ParameterError, "must be a name or an object"),
        ([{"name": "input", "reaction": "reset"}], ParameterError, "is no parameter of 'input'"),
    ],
)
def test_lists_of_detectors_are_checked(drift, error, words):
    with pytest.raises(error, match=words):
        Spec.parse({"drift": drift})


def test_a_spec_without_input_detector_keeps_its_text():
    assert Spec.parse({"drift": ["ddm"]}) == Spec.parse({"drift": "ddm"})
    assert isinstance(Spec.parse({"drift": ["ddm"]}).to_dict()["drift"], dict)
    assert Spec.parse({"drift": []}) == Spec.parse({"drift": "none"})
    assert Spec.parse({"drift": None}) == Spec.parse({"drift": "none"})
    both = Spec.parse({"drift": ["input", "ddm"]})
    assert Spec.parse(both.to_json()) == both == Spec.parse({"drift": ["ddm", "input"]})


@pytest.mark.parametrize(
    ("word", "value"),
    [("phase", 4), ("records", -1), ("records", 61), ("ends", 7), ("open", -1), ("comparisons", 1 << 60)],
)
def test_foreign_words_are_checked(word, value):
    table = table_of(schema_of(*SCHEMA), spec_of())
    answer(table, inputs(FIRST + 30))
    model = table.model(0)
    setattr(model.header.input_state(model.plan.record), word, value)
    with pytest.raises(SnapshotError, match="input: "):
        Model.restore(model.snapshot())


@pytest.mark.parametrize("rows", [20, 100, FIRST + 30])
def test_foreign_counts_are_checked(rows):
    table = table_of(schema_of(*SCHEMA), spec_of())
    answer(table, inputs(rows))
    model = table.model(0)
    model.header.input_state(model.plan.record).rows[0] = 1000  # values in the sample of the first feature
    with pytest.raises(SnapshotError, match="counts of a feature"):
        Model.restore(model.snapshot())


def test_labels_after_an_alarm_are_requested_past_the_budget_and_count_as_spent():
    x = inputs(4000)
    budget = {"query": "always", "budget": {"limit": 0.05}, "evaluation": {"every": 0}}
    plain, lent = (
        table_of(schema_of(*SCHEMA), Spec.parse(budget | {"drift": SMALL | {"open_records": n}}))
        for n in (0, 40)
    )
    asked = [answer(table, x[:1500]).asked for table in (plain, lent)]
    row = alarms_of(table_of(schema_of(*SCHEMA), spec_of()), x[:1500])[0][0]
    assert not asked[0][row : row + 40].all()
    assert asked[1][row : row + 40].all()
    assert np.array_equal(asked[0][:row], asked[1][:row])
    debt = math.ceil(40 / 0.05) - 40
    assert not asked[1][row + 40 : min(row + debt - 40, 1500)].any()
    answer(lent, x[1500:])
    summary = lent.model(0).summary()
    alarms = lent.model(0).header.input_state(lent.model(0).plan.record).alarms
    assert summary.requests <= 0.05 * summary.records + 40 * alarms + 1


def test_the_budget_window_counts_these_labels_too():
    spec = {
        "query": "always",
        "budget": {"name": "window", "limit": 0.05, "window": 200},
        "evaluation": {"every": 0},
    }
    table = table_of(schema_of(*SCHEMA), Spec.parse(spec | {"drift": SMALL | {"open_records": 40}}))
    answers = answer(table, inputs(1500))
    row = next(event.row for event in answers.events if isinstance(event, InputsChanged))
    assert answers.asked[row : row + 40].all()
    assert not answers.asked[row + 40 : row + 240].any()


def test_records_without_any_value_raise_no_alarm():
    table = table_of(schema_of(*SCHEMA), spec_of(alpha=0.9))
    assert alarms_of(table, np.full((1000, 4), math.nan)) == []


def test_a_share_of_these_labels_is_drawn_at_random():
    x = inputs(1500)
    spec = {
        "query": "random",
        "budget": {"limit": 0.02},
        "drift": SMALL | {"open_records": 400, "open_share": 0.25},
        "evaluation": {"every": 0},
    }
    table = table_of(schema_of(*SCHEMA), Spec.parse(spec))
    answers = answer(table, x)
    row = next(e.row for e in answers.events if isinstance(e, InputsChanged))
    drawn = answers.asked[row : row + 400]
    assert drawn.mean() == pytest.approx(0.25, abs=0.07)
    importance = answers.importance[row : row + 400][drawn]
    assert (importance >= 4.0).all()
    assert importance[50:] == pytest.approx(4.0, rel=1e-3)


def test_false_alarms_are_rarer_than_alpha():
    """Streams that never change, six features with gaps, six windows each: at most half have an alarm."""
    streams, n = 40, 40 + 150 + 6 * 50 + 1
    spec = spec_of(alpha=0.5, window=50)
    table = table_of(schema_of(None, None, None, 2, 30, 3), spec, models=streams)
    random = np.random.default_rng(11)
    values = [
        *(random.normal(size=(streams, n)) for _ in range(3)),
        random.integers(0, 2, (streams, n)),
        np.minimum(random.geometric(0.2, (streams, n)), 30) - 1,
        random.integers(-1, 3, (streams, n)),
    ]
    x = np.stack(values, axis=2).astype(float).reshape(-1, 6)
    x[random.random(x.shape) < 0.1] = math.nan
    model = np.repeat(np.arange(streams), n)
    answers = table.answer(model, x, np.full(len(x), -1, np.int32), np.ones(len(x)))
    alarmed = {event.model for event in answers.events if isinstance(event, InputsChanged)}
    assert len(alarmed) <= streams / 2
