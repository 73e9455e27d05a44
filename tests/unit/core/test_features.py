import pickle

import pytest

from core.errors import SchemaError, TooManyClassesError
from core.features import MAX_VALUES, Attribute, Schema

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
    grown = schema.with_class("spam").with_value(1, "Bern").with_class("ham")
    assert grown is schema.with_class("spam").with_value(1, "Bern").with_class("ham")
    assert grown.classes == ("spam", "ham")
    assert grown.value_code(1, "Bern") == 0
    assert grown.extends(schema)
    assert not schema.extends(grown)
    assert grown.with_class("ham") is grown
    assert grown.with_value(1, "Bern") is grown


def test_growth_does_not_change_what_was_declared():
    declared = Schema.of([X, OPEN], ["a", "b"], classes_open=True)
    grown = declared.with_class("c").with_value(1, "Bern")
    assert (grown.declared_classes, grown.n_classes) == (2, 3)
    assert grown.declared_values == (0, 0)
    assert Schema.from_json(grown.to_json()) is grown
    assert grown is not Schema.of(grown.attributes, grown.classes, classes_open=True)


def test_new_features_only_while_the_schema_is_open():
    schema = Schema.infer(["x"], ["numeric"])
    assert schema.with_attribute(Attribute("y")).names == ("x", "y")
    with pytest.raises(SchemaError, match="attribute 'y' must be declared"):
        Schema.of([X]).with_attribute(Attribute("y"))


def test_closed_things_stay_closed():
    schema = Schema.of([X, COLOUR], ["no", "yes"])
    with pytest.raises(SchemaError, match="class='maybe' must be one of no, yes"):
        schema.with_class("maybe")
    with pytest.raises(SchemaError, match="colour='green' must be a declared value"):
        schema.with_value(1, "green")


def test_too_many_classes():
    schema = Schema.of([X], max_classes=2).with_class("a").with_class("b")
    with pytest.raises(TooManyClassesError, match="max_classes=2"):
        schema.with_class("c")


def test_an_open_attribute_takes_in_only_so_many_values():
    schema = Schema.of([OPEN])
    for i in range(MAX_VALUES):
        schema = schema.with_value(0, str(i))
    assert schema.with_value(0, "one more") is schema
    assert schema.value_code(0, "one more") == -1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Attribute("x", "integer"), "kind='integer' of attribute 'x' must be"),
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
    assert [each.range for each in again.attributes] == [(0, 120), None]
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
