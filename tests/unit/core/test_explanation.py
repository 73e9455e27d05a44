"""Paths of branches: true of the record, the same whatever the cut, free of side effects."""

import dataclasses
import itertools
from typing import Any

import numpy as np
import pytest

from core.model_table import ANSWER_ONLY, LABELLED, ON_REQUEST
from core.spec import Spec
from core.tree.conditions import Branch
from tests.naive.rows import mixed
from tests.unit.core.builders import answer, schema_of, table_of

LEARNER = {"grace_period": 25, "delta": 0.1, "tau": 0.3}


def spec_with(explain, drift="ddm", **learner):
    return Spec.parse({"learner": {"name": "h-tree"} | LEARNER | learner, "drift": drift, "explain": explain})


def run(stream, spec, cuts=(), mode=LABELLED):
    """Return the table and (predictions, explanations by row) of a stream in parts."""
    table = table_of(stream.schema(), spec)
    predictions: list[int] = []
    paths: dict[int, Any] = {}
    bounds = [0, *cuts, len(stream.y)]
    for first, end in itertools.pairwise(bounds):
        part = slice(first, end)
        answers = answer(table, stream.x[part], stream.y[part], stream.weight[part], mode)
        predictions += answers.prediction.tolist()
        paths |= {first + row: path for row, path in answers.explanations.items()}
    return table, predictions, paths


def holds(branch, value, attribute):
    """Return whether a record's value obeys a condition."""
    if attribute.kind == "numeric":
        return value <= branch.value if branch.operator == "<=" else value > branch.value
    same = value >= 0 and attribute.values[int(value)] == branch.value
    return same if branch.operator == "=" else not same


@pytest.mark.parametrize("compat", [None, "moa"])
@pytest.mark.parametrize("mode", [LABELLED, ON_REQUEST])
def test_every_row_has_a_path_that_is_true_of_it(mode, compat):
    stream = mixed(1500)
    table, _predictions, paths = run(stream, spec_with(True, compat=compat), (200, 201, 999), mode)
    schema = table.model(0).schema
    names = [attribute.name for attribute in schema.attributes]
    assert sorted(paths) == list(range(1500))
    assert len({str(path) for path in paths.values()}) > 3
    missing = 0
    for row, path in paths.items():
        for branch in path:
            column = names.index(branch.attribute)
            value = stream.x[row, column]
            missing += branch.missing
            absent = np.isnan(value) or (schema.attributes[column].kind == "nominal" and value < 0)
            assert branch.missing or holds(branch, value, schema.attributes[column])
            assert not absent or branch.missing
    assert (missing == 0) == (compat == "moa")


@pytest.mark.parametrize("drift", ["none", "ddm"])
def test_explaining_changes_nothing_else(drift):
    stream = mixed(1500)
    plain, predictions, nothing = run(stream, spec_with(False, drift))
    explained, same, paths = run(stream, spec_with(True, drift), (7, 700))
    assert same == predictions
    assert nothing == {}
    assert len(paths) == 1500
    assert dataclasses.astuple(plain.model(0).summary()) == dataclasses.astuple(explained.model(0).summary())
    explained.model(0).configure(spec_with(False, drift))  # without the numbers that it has seen
    assert np.array_equal(plain.model(0).ints, explained.model(0).ints)


def test_paths_do_not_depend_on_the_cut():
    stream = mixed(900)
    assert run(stream, spec_with(True))[2] == run(stream, spec_with(True), range(1, 900, 13))[2]


@pytest.mark.parametrize("name", ["efdt", "efdt-imac"])
def test_paths_through_tests_that_are_revised_are_those_of_the_moment(name):
    stream = mixed(1500)
    stream.y[750:] = stream.y[750:][::-1]
    spec = spec_with(True, "none", name=name, revisit_period=40)
    table, predictions, paths = run(stream, spec)
    assert (predictions, paths) == run(stream, spec, range(1, 1500, 13))[1:]
    assert len({str(path) for path in paths.values()}) > 3
    revised = answer(table, stream.x, stream.y).events
    assert any(getattr(event, "action", "split") in ("replaced", "moved") for event in revised)
    for row, path in answer(table, stream.x, mode=ANSWER_ONLY).explanations.items():
        assert path == table.model(0).explain(stream.x[row])


@pytest.mark.parametrize("compat", [None, "moa"])
def test_a_model_explains_a_record_as_it_answers_it(compat):
    stream = mixed(1500)
    table, _, _ = run(stream, spec_with(True, compat=compat))
    answers = answer(table, stream.x, mode=ANSWER_ONLY)
    model = table.model(0)
    assert [model.explain(x) for x in stream.x] == [answers.explanations[row] for row in range(1500)]


def test_conditions_are_read_as_words():
    assert str(Branch("size", "<=", 2.5)) == "size <= 2.5"
    assert str(Branch("colour", "!=", "red")) == "colour != red"
    assert str(Branch("colour", "=", "red", missing=True)) == "colour = red (missing)"


def test_a_leaf_alone_needs_no_condition():
    table = table_of(schema_of(None), spec_with(True))
    assert answer(table, [[1.0]]).explanations == {0: ()}
    assert table.model(0).explain(np.array([1.0])) == ()


def test_it_can_be_switched_on_while_the_model_lives():
    stream = mixed(600)
    table, _, _ = run(stream, spec_with(False))
    table.model(0).configure(spec_with(True))
    table.refresh(0)
    assert set(answer(table, stream.x[:5]).explanations) == set(range(5))
