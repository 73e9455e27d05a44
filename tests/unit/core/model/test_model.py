import gc
import tracemalloc

import numpy as np
import pytest

from core.errors import SchemaError
from core.model.model import Model
from core.schema.schema import Attribute, Schema
from core.spec import Spec
from tests.unit.core.builders import answer, halves, schema_of, spec_of, table_of

TEN = schema_of(*[None] * 10)


def test_a_new_model_knows_nothing():
    model = Model.create(spec_of(), TEN)
    summary = model.summary()
    assert (summary.leaves, summary.nodes, summary.depth) == (1, 1, 0)
    assert (summary.splits, summary.attempts, summary.labels, summary.records, summary.version) == (
        0,
        0,
        0,
        0,
        0,
    )
    assert not summary.growth_stopped
    assert model.evaluation().accuracy == 0.0


def test_a_thousand_small_models_take_four_kilobytes_each():
    """Ten numeric attributes, two classes, a window of 1000, all Python objects, the first record learned."""
    spec = Spec.parse("h-tree")
    table = table_of(TEN, spec)  # what all share is built once
    answer(table, np.zeros(10), [0])
    gc.collect()
    tracemalloc.start()
    try:
        table = table_of(TEN, spec, models=1000)
        x, label = np.zeros((1000, 10)), np.zeros(1000, dtype=np.int32)
        table.answer(np.arange(1000), x, label, np.ones(1000))
        gc.collect()
        used = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert used / 1000 <= 4096
    assert table.model(7).nbytes <= 3200


def test_one_split_makes_two_leaves():
    table = table_of(schema_of(None, None, None))
    answer(table, *halves())
    summary = table.model(0).summary()
    assert summary.splits >= 1
    assert summary.leaves == summary.splits + 1
    assert summary.nodes == 2 * summary.leaves - 1
    assert summary.records == summary.labels == summary.version == 3000


def test_a_model_adopts_only_its_own_schema_grown():
    schema = Schema.infer(["x"], ["numeric"])
    model = Model.create(Spec.parse(None), schema)
    model.adopt(schema.with_class("a"))
    assert model.schema.classes == ("a",)
    with pytest.raises(SchemaError, match="schema must extend the model's"):
        model.adopt(schema.with_class("b"))
    with pytest.raises(SchemaError, match="schema must extend the model's"):
        model.adopt(schema)


def test_features_are_taken_in_until_the_first_split():
    schema = Schema.infer(["x"], ["numeric"]).with_class("a").with_class("b")
    table = table_of(schema)
    answer(table, [[0.0], [1.0]], [0, 1])
    grown = schema.with_attributes([Attribute("y")])
    table.model(0).adopt(grown)
    table.refresh(0)
    x, label = halves(columns=2)
    answer(table, x, label)
    assert table.model(0).summary().splits > 0
    with pytest.raises(SchemaError, match="after the first split no feature can be added"):
        table.model(0).adopt(grown.with_attributes([Attribute("z")]))


def test_a_grown_schema_changes_no_answer():
    schema = Schema.of([Attribute("x"), Attribute("c", "nominal", ("a",), open=True)], classes_open=True)
    schema = schema.with_class("no").with_class("yes")
    x, label = halves(columns=2)
    x[:, 1] = 0.0
    answers = []
    for grown in (schema, schema.with_class("maybe").with_values([(1, "b")]).with_values([(1, "c")])):
        table = table_of(schema, spec_of("nba"))
        answer(table, x[:2000], label[:2000])
        table.model(0).adopt(grown)
        table.refresh(0)
        answers.append(answer(table, x[2000:], label[2000:]))
    assert np.array_equal(answers[0].prediction, answers[1].prediction)
    assert np.array_equal(answers[0].probability, answers[1].probability[:, :2])


def test_save_and_load(tmp_path):
    table = table_of(TEN)
    answer(table, np.ones((5, 10)), [0, 1, 0, 1, 1])
    table.model(0).save(tmp_path / "model")
    assert Model.load(tmp_path / "model").snapshot() == table.model(0).snapshot()
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
