"""The result of a run never depends on how it is cut: batch size 1 is the oracle for every other cut."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core import registry
from core.errors import ParameterError
from core.evaluation import EvaluationDue
from core.learners.protocol import build
from core.model import validate
from core.model.model import Model
from core.model_table import LABELLED, ON_REQUEST, ModelTable
from core.plan import Plan
from core.schema.schema import Attribute, Schema
from core.spec import Spec
from tests.naive.rows import OBSERVERS
from tests.tiers import examples
from tests.unit.core.builders import QUERIES, TREES

ROWS = 240
SPARE = {"h_tree": 10_000, "boct": 10_000, "sgbt": 10_000, "ufft": 10_000}
"""Bytes beyond those of one leaf, at which these learners' growth stops."""
COLUMNS = ("numeric", "nominal", "numeric", "open", "numeric")


@dataclass(frozen=True)
class Run:
    """What hypothesis draws; the records follow from it."""

    spec: dict[str, Any]
    is_open: bool
    seed: int
    grouped: bool
    unlabelled: float
    weighted: bool
    mode: int
    cuts: tuple[int, ...]

    def rows(self):
        """Return model, x (codes of open values by name, not by schema), label and weight."""
        draw = np.random.default_rng(self.seed)
        model = draw.integers(0, 3, ROWS)
        x, label = records(draw)
        learner = Spec.parse(self.spec).learner
        is_weighted = self.weighted and not learner.unit_weights
        weight = draw.choice([0.5, 1.0, 2.0], ROWS) if is_weighted else np.ones(ROWS)
        label = label if learner.max_classes is None else np.minimum(label, learner.max_classes - 1)
        label[draw.random(ROWS) < self.unlabelled] = -1
        return np.sort(model) if self.grouped else model, x, label, weight


def records(draw, n=ROWS):
    """Return x and labels of a concept that changes half way, with missing and new values as they come."""
    numeric = draw.normal(size=(n, 3)).round(1)
    nominal = draw.integers(0, 3, n)
    # Values of the open attribute come into use one after the other.
    grown = np.minimum(draw.integers(0, 6, n), np.arange(n) // 20)
    x = np.column_stack([numeric[:, 0], nominal, numeric[:, 1], grown, numeric[:, 2]]).astype(np.float64)
    label = np.minimum((numeric[:, 0] > 0).astype(int) + (nominal == 1) + 2 * (grown > 2), 3)
    label = np.where(np.arange(n) < n // 2, label, 3 - label)
    label = np.where(draw.random(n) < 0.1, draw.integers(0, 4, n), label)
    x[draw.random((n, 5)) < 0.05] = np.nan
    return x, label


def schema_of(is_open, most=None):
    """Return the schema of the records; most: classes, if the learner takes no more."""
    values = ("0", "1", "2")
    attributes = [
        Attribute(f"x{i}", "nominal", () if kind == "open" else values, kind == "open")
        if kind != "numeric"
        else Attribute(f"x{i}", range=(-3.0, 3.0) if i < 4 else None)
        for i, kind in enumerate(COLUMNS)
    ]
    if not is_open:
        attributes[3] = Attribute("x3", "nominal", tuple("012345"))
    return Schema.of(attributes, () if is_open else ("0", "1", "2", "3")[:most], max_classes=most or 64)


def coded(table, index, x, label):
    """Let a model's schema grow by a batch's values and classes, then return both as its codes."""
    schema = table.model(index).schema
    for value, name in zip(x[:, 3], label, strict=True):
        if schema.attributes[3].open and not np.isnan(value):
            schema = schema.with_values([(3, str(int(value)))])
        if schema.classes_open and name >= 0:
            schema = schema.with_class(str(name))
    table.model(index).adopt(schema)
    table.refresh(index)
    x = x.copy()
    x[:, 3] = [np.nan if np.isnan(v) else schema.value_code(3, str(int(v))) for v in x[:, 3]]
    return x, [schema.class_code(str(name)) for name in label]


def fits(learner):
    """Return whether criterion and bound go together, for the four classes of the records."""
    try:
        return build(learner).max_classes is None
    except ParameterError:
        return False


PAIRS = [
    (criterion, bound)
    for criterion in registry.names("criteria")
    for bound in registry.names("bounds")
    if fits({"name": "h-tree", "criterion": criterion, "bound": bound})
]


@st.composite
def learners(draw):
    name = draw(st.sampled_from(registry.names("learners")))
    if name == "boct":
        sizes = draw(st.sampled_from(["stream", "pool", "labelled"]))
        return {"name": name, "sizes": sizes, "capacity": draw(st.sampled_from([3, 20, 2000])), "delta": 0.4}
    if name == "ufodt":
        return {"name": name, "warm_up": draw(st.sampled_from([2, 20])), "n_thresholds": 3}
    if name not in TREES:
        return {"name": name}
    criterion, bound = draw(st.sampled_from(PAIRS))
    schedule = draw(st.sampled_from(registry.names("schedules")))
    own = {"check_period": draw(st.sampled_from([3, 15]))} if schedule == "imac" else {}
    published = [
        compat
        for compat in (None, "moa", "imac")
        if fits({"name": name, "schedule": schedule, "compat": compat})
    ]
    return {
        "name": name,
        "criterion": criterion,
        "bound": bound,
        "schedule": schedule,
        **own,
        "leaf_model": draw(st.sampled_from(registry.names("leaf_models"))),
        **draw(st.sampled_from(OBSERVERS)),
        "grace_period": draw(st.sampled_from([1, 7, 20])),
        "delta": 0.05,
        "tau": 0.3,
        "binary_splits": draw(st.booleans()),
        "compat": draw(st.sampled_from(published)),
        "max_leaves": draw(st.sampled_from([1, 5, 1000])),
    }


@st.composite
def specs(draw):
    learner = draw(learners())
    fitting = registry.names("queries") if learner["name"] == "boct" else QUERIES
    query = draw(st.sampled_from(fitting))
    without = [] if query == "set_size" else [None]
    return {
        "learner": learner,
        "query": {"name": query},
        "calibration": draw(st.sampled_from([None, *registry.names("calibrators")])),
        "conformal": draw(st.sampled_from([*without, {"alpha": 0.2, "may_be_empty": False}])),
        "budget": {
            "name": draw(st.sampled_from(registry.names("budgets"))),
            "limit": draw(st.sampled_from([0.3, 1.0])),
        },
        "drift": {
            "name": draw(st.sampled_from(registry.names("drift"))),
            "reaction": draw(st.sampled_from(["rebuild", "reset", "alert"])),
        },
        "evaluation": {"window": draw(st.sampled_from([5, 64])), "every": draw(st.sampled_from([0, 13]))},
        "seed": draw(st.integers(0, 3)),
    }


@st.composite
def runs(draw):
    return Run(
        spec=draw(specs()),
        is_open=draw(st.booleans()),
        seed=draw(st.integers(0, 10_000)),
        grouped=draw(st.booleans()),
        unlabelled=draw(st.sampled_from([0.0, 0.3])),
        weighted=draw(st.booleans()),
        mode=draw(st.sampled_from([LABELLED, ON_REQUEST])),
        cuts=tuple(sorted(draw(st.sets(st.integers(1, ROWS - 1), max_size=6)))),
    )


def created(run):
    """Return a new model of a run."""
    spec = Spec.parse(run.spec)
    return Model.create(spec, schema_of(run.is_open, spec.learner.max_classes))


def batches(run, cuts, rows=ROWS):
    """Yield a table of three models, and for each batch its rows with values and classes coded."""
    table = ModelTable()
    for _ in range(3):
        table.add(created(run))
    model, x, label, weight = run.rows()
    bounds = [0, *[c for c in cuts if c < rows], rows]
    for start, end in itertools.pairwise(bounds):
        part = slice(start, end)
        batch_x, batch_label = x[part].copy(), label[part].astype(np.int32)
        for index in np.unique(model[part]):
            own = model[part] == index
            batch_x[own], batch_label[own] = coded(table, index, x[part][own], label[part][own])
        yield table, part, (model[part], batch_x, batch_label, weight[part])


def play(run, cuts):
    """Answer the rows in batches; return answers, events (rows from the start on), and final models."""
    columns, events, table = [], [], ModelTable()
    for table, part, batch in batches(run, cuts):
        answers = table.answer(*batch, run.mode)
        probability = np.zeros((len(batch[0]), 4))
        probability[:, : answers.probability.shape[1]] = answers.probability
        columns.append(np.column_stack([answers.prediction, answers.asked, answers.version, probability]))
        for event in answers.events:
            events.append(repr(replace(event, row=event.row + part.start)))
            if isinstance(event, EvaluationDue):
                assert event.sums is not None
                events.append(repr(event.sums.read()))
                events.append(repr(None if event.curve is None else event.curve.read()))
    return np.concatenate(columns), events, [table.model(i) for i in range(3)]


@settings(max_examples=examples(60))
@given(runs())
def test_cuts_of_an_answer_run_change_nothing(run):
    answers, events, models = play(run, run.cuts)
    expected_answers, expected_events, expected_models = play(run, range(1, ROWS))
    assert np.array_equal(answers, expected_answers)
    assert events == expected_events
    for model, expected in zip(models, expected_models, strict=True):
        validate.check(model)
        assert model.snapshot() == expected.snapshot()


@pytest.mark.parametrize("drift", ["none", "adwin"])
@pytest.mark.parametrize("window", range(60, 66))
def test_a_second_class_that_the_first_label_does_not_have_takes_no_rows_of_boct(window, drift):
    """How many rows fit is reckoned with the first label, for two classes, whether both are known or not."""
    spec = {
        "learner": {"name": "boct", "sizes": "stream"},
        "drift": {"name": drift},
        "evaluation": {"window": window},
    }
    run = Run(spec, True, 0, True, 0.3, False, LABELLED, ())
    _, _, models = play(run, run.cuts)
    _, _, expected = play(run, range(1, ROWS))
    assert [model.snapshot() for model in models] == [model.snapshot() for model in expected]


@pytest.mark.parametrize("is_tight", [False, True])
@pytest.mark.parametrize("learner", registry.names("learners"))
def test_when_a_schema_came_to_know_names_is_nothing(learner, is_tight):
    """Names that no labelled record has, and those of records that come much later, take no bytes yet.

    is_tight: growth stops at the bytes of the spec, which a tree, leaves or memories then fill.
    """
    spec = {"learner": {"name": learner}, "evaluation": {"window": 5}}
    if learner in TREES:
        spec["learner"] |= {"grace_period": 7, "delta": 0.4, "tau": 0.3}
    elif learner == "ufft":
        spec["learner"] |= {"nmin": "slide", "delta": 0.4, "tau": 1.0, "leaf_model": "idbd", "drift": "none"}
    x, label = records(np.random.default_rng(3), 700)
    x, label = x[label < 2], label[label < 2].astype(np.int32)
    x[:, 3] = np.nan  # no record has the values
    most = Spec.parse(spec).learner.max_classes or 64
    begun = schema_of(True, most).with_class("0").with_class("1")
    known = begun if most == 2 else begun.with_class("2")
    for value in range(9):
        known = known.with_values([(3, f"{value} of {'many' * 300}")])
    if is_tight and "max_bytes" in {field.name for field in fields(Spec.parse(spec).learner)}:
        plan = Plan.of(Spec.parse(spec), begun)
        least = plan.section_bytes(2) + 8 * plan.blocks.least_words(2)
        spec["learner"]["max_bytes"] = least + SPARE.get(learner, 10_000)
    models = []
    for comes in (0, len(x) // 2, len(x)):
        table = ModelTable()
        table.add(Model.create(Spec.parse(spec), begun))
        for rows in (slice(0, comes), slice(comes, len(x))):
            one = np.zeros(len(x[rows]), dtype=np.int64)
            table.answer(one, x[rows], label[rows], np.ones(len(one)))
            table.model(0).adopt(known)
            table.refresh(0)
        models.append(table.model(0))
    if is_tight and learner in SPARE:
        assert models[0].summary().growth_stopped
    assert [model.snapshot() == models[0].snapshot() for model in models] == [True] * 3


@settings(max_examples=examples(30))
@given(runs())
def test_cuts_of_a_learn_run_change_nothing(run):
    finals = []
    for cuts in (run.cuts, range(1, ROWS)):
        for table, part, (model, x, label, weight) in batches(run, cuts):
            row = np.arange(part.start, part.stop)
            known = label >= 0
            predicted = np.where(row % 5 == 0, -1, row % 2).astype(np.int32)
            predicted = np.minimum(predicted, label)  # a class that the model knows
            arguments = (model, x, label, weight, predicted, row % 3 == 0)
            table.learn(*(column[known] for column in arguments))
        finals.append([table.model(i).snapshot() for i in range(3)])
    assert finals[0] == finals[1]


@settings(max_examples=examples(40))
@given(runs(), st.integers(0, ROWS))
def test_a_restored_model_goes_on_as_if_nothing_had_happened(run, stop):
    _, x, label, weight = run.rows()
    label, one = label.astype(np.int32), np.zeros(ROWS, dtype=np.int64)
    table, other = ModelTable(), ModelTable()
    table.add(created(replace(run, is_open=False)))
    table.answer(one[:stop], x[:stop], label[:stop], weight[:stop], run.mode)
    data = table.model(0).snapshot()
    restored = Model.restore(data)
    validate.check(restored)
    assert restored.snapshot() == data
    other.add(restored)
    for one_table in (table, other):
        one_table.answer(one[stop:], x[stop:], label[stop:], weight[stop:], run.mode)
    assert table.model(0).snapshot() == other.model(0).snapshot()
