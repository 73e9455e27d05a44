import gc
import pickle

import pytest

from core.errors import SchemaError, TooManyClassesError
from core.schema import schema as features
from core.schema import shared
from core.schema.schema import MAX_VALUES, Attribute, Columns, Schema

X = Attribute("x")
COLOUR = Attribute("colour", "nominal", ("red", "blue"))
OPEN = Attribute("city", "nominal", open=True)


def test_equal_schemas_are_one_object():
    one = Schema.of([X, COLOUR], ["no", "yes"])
    assert one is Schema.of([Attribute("x"), COLOUR], ("no", "yes"))
    assert one is Schema.from_json(one.to_json())
    assert one is pickle.loads(pickle.dumps(one))
    other = Schema.of([X], ["no", "yes"])
    assert one is not other
    assert one.uid != other.uid


def test_codes():
    schema = Schema.of([X, COLOUR], ["no", "yes"])
    assert [schema.class_code(c) for c in ("no", "yes", "maybe")] == [0, 1, -1]
    assert [schema.value_code(1, v) for v in ("red", "blue", "green")] == [0, 1, -1]
    assert schema.names == ("x", "colour")
    assert (schema.n_attributes, schema.n_classes) == (2, 2)


def test_growth_is_shared_and_keeps_codes():
    schema = Schema.infer(["x", "city"], ["numeric", "nominal"])
    grown = schema.with_class("spam").with_values([(1, "Bern")]).with_class("ham")
    assert grown is schema.with_class("spam").with_values([(1, "Bern")]).with_class("ham")
    assert grown.classes == ("spam", "ham")
    assert grown.value_code(1, "Bern") == 0
    assert grown.extends(schema)
    assert not schema.extends(grown)
    assert grown.with_class("ham") is grown
    assert grown.with_values([(1, "Bern")]) is grown


def test_growth_does_not_change_what_was_declared():
    declared = Schema.of([X, OPEN], ["a", "b"], classes_open=True)
    grown = declared.with_class("c").with_values([(1, "Bern")])
    assert (grown.declared_classes, grown.n_classes) == (2, 3)
    assert grown.declared_values == (0, 0)
    assert Schema.from_json(grown.to_json()) is grown
    assert grown is not Schema.of(grown.attributes, grown.classes, classes_open=True)


def test_new_features_only_while_the_schema_is_open():
    schema = Schema.infer(["x"], ["numeric"])
    assert schema.with_attributes([Attribute("y")]).names == ("x", "y")
    with pytest.raises(SchemaError, match="attribute 'y' must be declared"):
        Schema.of([X]).with_attributes([Attribute("y")])


def test_closed_things_stay_closed():
    schema = Schema.of([X, COLOUR], ["no", "yes"])
    with pytest.raises(SchemaError, match="class='maybe' must be one of no, yes"):
        schema.with_class("maybe")
    with pytest.raises(SchemaError, match="colour='green' must be a declared value"):
        schema.with_values([(1, "green")])


def test_too_many_classes():
    schema = Schema.of([X], max_classes=2).with_class("a").with_class("b")
    with pytest.raises(TooManyClassesError, match="max_classes=2"):
        schema.with_class("c")


def test_an_open_attribute_takes_in_only_so_many_values():
    schema = Schema.of([OPEN])
    for i in range(MAX_VALUES):
        schema = schema.with_values([(0, str(i))])
    assert schema.with_values([(0, "one more")]) is schema
    assert schema.value_code(0, "one more") == -1


def test_growth_in_one_step_is_that_in_many():
    start = Schema.infer(["city", "x", "street"], ["nominal", "numeric", "nominal"])
    met = [(2, "High"), (0, "Bern"), (2, "Low"), (0, "Bern"), (0, "Rome")]
    one_by_one = start
    for attribute, value in met:
        one_by_one = one_by_one.with_values([(attribute, value)])
    grown = start.with_values(met)
    assert grown is one_by_one
    assert [a.values for a in grown.attributes] == [("Bern", "Rome"), (), ("High", "Low")]
    assert grown.with_values(met) is grown
    assert grown.columns.attributes[1] is start.columns.attributes[1]


def test_schemas_that_differ_in_classes_share_their_columns():
    schema = Schema.infer(["city"], ["nominal"]).with_values([(0, "Bern")])
    one, other = schema.with_class("a").with_class("b"), schema.with_class("b").with_class("a")
    assert one is not other
    assert one.columns is other.columns
    assert one.uid != other.uid


def test_a_schema_keeps_none_of_those_that_grew_from_it():
    schema = Schema.infer(["city", "street"], ["nominal", "nominal"])
    gc.collect()
    before, schemas, columns = shared.TALLY.bytes, len(Schema._known), len(Columns._known)
    grown = schema
    for i in range(300):
        grown = grown.with_values([(i % 2, f"value {i}")]).with_class(str(i % 40))
    assert (len(Schema._known), len(Columns._known)) == (schemas + 1, columns + 1)
    assert 5_000 < shared.TALLY.bytes - before < 12_000
    del grown
    assert shared.TALLY.bytes == before
    assert len(Schema._known) == schemas


def test_values_beyond_the_bytes_of_a_schema_stay_unknown_however_the_steps_are_cut(monkeypatch):
    monkeypatch.setattr(features, "MAX_VALUE_BYTES", 100)
    start = Schema.infer(["a", "b"], ["nominal", "nominal"])
    met = [(0, "x" * 30), (1, "y" * 30), (0, "z"), (1, "too much " * 9), (0, "w" * 60), (1, "")]
    grown = start.with_values(met)
    assert [a.values for a in grown.attributes] == [("x" * 30,), ("y" * 30,)]
    for cut in range(len(met)):
        assert start.with_values(met[:cut]).with_values(met[cut:]) is grown


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Attribute("x", "integer"), "kind='integer' of attribute 'x' must be"),  # type: ignore[arg-type]
        (lambda: Attribute("x", "numeric", ("a",)), "must be empty"),
        (lambda: Attribute("x", "nominal", ("a", "a")), "must differ"),
        (lambda: Schema.of([]), "at least one attribute"),
        (lambda: Schema.of([X, X]), "attributes=x must have names that differ"),
        (lambda: Schema.of([X], ["a", "a"]), "must differ"),
        (lambda: Schema.of([X], ["a"], max_classes=0), "max_classes=0 must be from 1"),
        (lambda: Schema.of([X], ["a", "b"], max_classes=1), "at most max_classes=1"),
        (lambda: Schema.of([X], classes_open=False), "at least one class, or be open"),
        (lambda: Schema.from_json("{}"), "'attributes'"),
        (lambda: Schema.from_json("not json"), "'attributes'"),
        (
            lambda: Schema.from_json('{"attributes": [{"name": "x"}], "declared_classes": 3}'),
            "declared_classes=3",
        ),
        (
            lambda: Schema.from_json('{"attributes": [{"name": "x"}], "declared_values": [1]}'),
            "declared_values",
        ),
        (
            lambda: Schema.from_json('{"attributes": [{"name": "x"}], "declared_values": ["q"]}'),
            "'attributes'",
        ),
        (
            lambda: Schema.from_json('{"attributes": [{"name": "x"}], "declared_values": [[1]]}'),
            "'attributes'",
        ),
    ],
)
def test_refusals(make, message):
    with pytest.raises(SchemaError, match=message):
        make()


def test_the_range_of_an_attribute_is_part_of_the_schema():
    given = Schema.of([Attribute("age", range=(0, 120)), Attribute("x")], ("a", "b"))
    again = Schema.from_json(given.to_json())
    assert again is given
    assert [attribute.range for attribute in again.attributes] == [(0, 120), None]
    assert '"range"' not in Schema.of([Attribute("x")], ("a",)).to_json()
    wider = Schema.of([Attribute("age", range=(0, 130)), Attribute("x")], ("a", "b"))
    assert not wider.extends(given)
    assert given.extends(given)


@pytest.mark.parametrize(
    ("kind", "limits"),
    [
        ("numeric", (1.0, 1.0)),
        ("numeric", (2.0, 1.0)),
        ("numeric", (0.0, float("inf"))),
        ("numeric", (float("nan"), 1.0)),
        ("nominal", (0.0, 1.0)),
    ],
)
def test_a_range_that_is_none_is_refused(kind, limits):
    with pytest.raises(SchemaError, match=r"range=\(.*\) of attribute 'a' must be two finite numbers"):
        Attribute("a", kind, range=limits)
