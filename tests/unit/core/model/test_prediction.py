"""What a model answers outside a stream is what it answers inside; the file it travels in."""

import json

import numpy as np
import pytest

import core
from core.errors import SchemaError, SnapshotError
from core.model import file as model_file
from core.model.model import Model
from core.model_table import ANSWER_ONLY
from core.schema.schema import Attribute, Schema
from core.spec import Spec
from tests.naive.rows import mixed
from tests.unit.core.builders import answer, table_of

LEARNER = {"name": "h-tree", "grace_period": 25, "delta": 0.1, "tau": 0.3}


def learned(seed=3, **spec):
    stream = mixed(600, seed)
    table = table_of(stream.schema(), Spec.parse({"learner": LEARNER, "explain": True} | spec))
    answer(table, stream.x, stream.y, stream.weight)
    return table, stream


def record_of(schema, x, named):
    """Return a row of codes as a record."""
    cells: list[float | str | None] = []
    for attribute, value in zip(schema.attributes, x.tolist(), strict=True):
        if np.isnan(value) or (attribute.kind == "nominal" and value < 0):
            cells.append(None)
        else:
            cells.append(value if attribute.kind == "numeric" else attribute.values[int(value)])
    return dict(zip(schema.names, cells, strict=True)) if named else cells


@pytest.mark.parametrize("leaf_model", ["mc", "nb", "nba"])
@pytest.mark.parametrize("named", [True, False])
def test_it_answers_as_in_a_stream_and_changes_nothing(leaf_model, named):
    table, stream = learned(learner=LEARNER | {"leaf_model": leaf_model})
    model = table.model(0)
    before = model.snapshot()
    rows = stream.x[:200]
    expected = answer(table, rows, mode=ANSWER_ONLY)
    assert model.summary().splits > 0
    for row, x in enumerate(rows):
        found = model.predict(record_of(model.schema, x, named))
        assert model.schema.class_code(found.label) == expected.prediction[row]
        shares = [found.probabilities[name] for name in model.schema.classes]
        assert shares == expected.probability[row].tolist()
        assert found.explanation == expected.explanations[row]
        assert found.version == 600
    assert model.snapshot() == before


def test_a_model_that_knows_nothing_answers_nothing():
    model = Model.create(Spec.parse("h-tree"), Schema.of([Attribute("x")]))
    found = model.predict({"x": 1})
    assert (found.label, found.probabilities, found.explanation, found.version) == (None, {}, (), 0)


def test_what_the_model_does_not_know_is_missing_and_what_does_not_fit_is_refused():
    colour = Attribute("colour", "nominal", ("red", "2"))
    model = Model.create(Spec.parse("h-tree"), Schema.of([Attribute("x"), colour], ["a", "b"]))
    assert model.predict({"x": True, "colour": "green", "other": 3}).probabilities == {"a": 0.0, "b": 0.0}
    for cell in (2, 2.0, "2", None, float("nan")):
        model.predict({"colour": cell})
    with pytest.raises(SchemaError, match=r"x='one' must be a number; the model learned it as one"):
        model.predict({"x": "one"})
    with pytest.raises(SchemaError, match="record has 1 values; it must have 2, one per attribute"):
        model.predict([1])


def test_the_model_of_an_exported_file_and_of_a_saved_one(tmp_path):
    table, stream = learned()
    model = table.model(0)
    (tmp_path / "exported").write_bytes(model_file.wrap({"key": "k"}, model.snapshot()))
    model.save(tmp_path / "saved")
    for name in ("exported", "saved"):
        again = core.Model.load(tmp_path / name)
        record = record_of(model.schema, stream.x[0], named=True)
        assert again.predict(record) == model.predict(record)
    with pytest.raises(AttributeError, match="has no attribute 'Modell'"):
        core.Modell  # noqa: B018


def test_a_file_holds_what_was_put_into_it():
    body = b"snapshot"
    head = {"key": "ü", "format": 1}
    data = model_file.wrap(head, body)
    found = model_file.unwrap(data)
    assert (found.head, found.snapshot) == (head, body)
    assert json.loads(data[24 : 24 + int.from_bytes(data[12:16], "little")]) == head


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda d: d[:-1], "it is cut off, or too long"),
        (lambda d: d + b"x", "it is cut off, or too long"),
        (lambda d: d[:30] + bytes([d[30] ^ 1]) + d[31:], "must match its checksum"),
        (lambda d: d[:8] + b"\2" + d[9:], "has format 2; this build reads format 1"),
        (lambda d: b"grovemdl" + d[8:], "it is no exported model"),
        (lambda d: d[:10], "it is no exported model"),
    ],
)
def test_a_damaged_file_is_refused(damage, says):
    with pytest.raises(SnapshotError, match=says):
        model_file.unwrap(damage(model_file.wrap({"key": "k"}, b"snapshot")))


def test_two_models_of_one_size_cannot_change_their_heads():
    """Their snapshots end with a CRC-32 of their own: one over all of it would be the same for both."""
    table, _ = learned()
    model = table.model(0)
    other = Model(model.plan, model.ints.copy())
    other.close(-4)
    first, second = (model_file.wrap({"key": "k"}, each.snapshot()) for each in (model, other))
    with pytest.raises(SnapshotError, match="must match its checksum"):
        model_file.unwrap(first[:-8] + second[-8:])
