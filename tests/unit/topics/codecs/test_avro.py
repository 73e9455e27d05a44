"""Avro records: what a schema means for columns, and the flaws of records that do not fit."""

import json
import tracemalloc
from io import BytesIO
from typing import Any

import fastavro
import numpy as np
import pytest

from tests.unit.topics.codecs.samples import cells, classes
from topics.codecs import Limits
from topics.codecs.avro.avro_schema import AvroSchema
from topics.codecs.avro.reader import AvroReader
from topics.codecs.batch import Batch
from topics.columns.records import Instances
from topics.columns.spans import Spans
from topics.errors import SchemaError

LIMITS = Limits()


def record(name: str, /, **fields: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": n, "type": t} for n, t in fields.items()]}


def instances_schema(**features: Any) -> dict[str, Any]:
    return record("Instance", id="string", features=record("Features", **features), label=["null", "string"])


def batch(values: list[bytes]) -> Batch:
    n = len(values)
    zeros = np.zeros(n, dtype=np.int32)
    return Batch(3, np.arange(n, dtype=np.int32), list(range(n)), Spans.of(values), ["m"], zeros)  # type: ignore[arg-type]


def written(schema: Any, *values: Any) -> list[bytes]:
    texts = []
    for value in values:
        sink = BytesIO()
        fastavro.schemaless_writer(sink, schema, value)
        texts.append(sink.getvalue())
    return texts


def reader(schema: Any, *references: Any) -> AvroReader:
    return AvroReader(AvroSchema.of(json.dumps(schema), [json.dumps(each) for each in references]))


def read(schema: Any, *values: Any) -> Instances:
    return reader(schema).read_instances(batch(written(schema, *values)), LIMITS)


def flaws(decoded: Any) -> list[tuple[int, str, str]]:
    return [(flawed.record, str(flawed.reason), flawed.detail) for flawed in decoded.malformed]


def test_features_come_from_the_field_features() -> None:
    schema = instances_schema(amount="double", country=["null", "string"], new="boolean")
    decoded = read(
        schema,
        {"id": "a", "features": {"amount": 2.5, "country": "DE", "new": True}, "label": "ok"},
        {"id": "b", "features": {"amount": float("nan"), "country": None, "new": False}, "label": None},
    )
    assert list(decoded.ids) == ["a", "b"]
    assert classes(decoded) == ["ok", None]
    assert cells(decoded) == [
        {"amount": 2.5, "country": "DE", "new": 1.0},
        {"amount": None, "country": None, "new": 0.0},
    ]


def test_without_a_field_features_all_other_fields_are_features() -> None:
    schema = record("Order", id="long", amount="float", place=record("Place", country="string", zip="int"))
    decoded = read(schema, {"id": 7, "amount": 0.5, "place": {"country": "DE", "zip": 10115}})
    assert list(decoded.ids) == ["7"]
    assert cells(decoded) == [{"amount": 0.5, "place.country": "DE", "place.zip": 10115.0}]


def test_a_label_without_a_field_features_has_none() -> None:
    schema = record("Label", id="string", label="int", source="string")
    values = written(schema, {"id": "a", "label": 1, "source": "desk"})
    labels = reader(schema).read_labels(batch(values), LIMITS)
    assert (classes(labels), labels.features) == (["1"], [])


def test_a_label_without_features_beside_one_with_features() -> None:
    schema = record("Label", id="string", label="string", features=["null", record("F", a="double")])
    values = written(
        schema,
        {"id": "a", "label": "x", "features": None},
        {"id": "b", "label": "y", "features": {"a": 1.5}},
    )
    labels = reader(schema).read_labels(batch(values), LIMITS)
    assert cells(labels) == [None, {"a": 1.5}]


@pytest.mark.parametrize(
    ("kind", "value", "cell"),
    [
        ({"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2}, "12.34", 12.34),
        ({"type": "int", "logicalType": "date"}, 20_000, 20_000.0),
        ({"type": "long", "logicalType": "timestamp-millis"}, 1_796_083_200_123, 1_796_083_200_123.0),
        ({"type": "long", "logicalType": "timestamp-micros"}, 5, 5.0),
        ({"type": "enum", "name": "E", "symbols": ["RED", "BLUE"]}, "BLUE", "BLUE"),
        ({"type": "fixed", "name": "X", "size": 2}, b"ab", "ab"),
        ("bytes", b"\xff", "\xff"),
        (["null", "string", "double"], 0.25, 0.25),
        (["null", "string", "double"], "a", "a"),
    ],
)
def test_cells_of_each_type(kind: Any, value: Any, cell: float | str) -> None:
    from decimal import Decimal

    given = Decimal(value) if isinstance(value, str) and value[0].isdigit() else value
    schema = instances_schema(a=kind)
    assert cells(read(schema, {"id": "a", "features": {"a": given}, "label": None})) == [{"a": cell}]


def test_a_decimal_beyond_its_precision_is_not_rounded() -> None:
    kind = {"type": "bytes", "logicalType": "decimal", "precision": 2, "scale": 1}
    schema = instances_schema(a=kind)
    value = b"\x02a" + b"\x04\x04\xd2" + b"\x00"  # 1234 · 10**-1
    long = b"\x02a" + b"\x18" + bytes(10) + b"\x04\xd2" + b"\x00"
    decoded = reader(schema).read_instances(batch([value, long]), LIMITS)
    assert cells(decoded) == [{"a": 123.4}, {"a": 123.4}]


def test_a_field_may_name_a_feature_that_is_no_name_of_avro() -> None:
    features = record("F", amount_eur="double")
    features["fields"][0]["streamgrove.name"] = "amount (€)"
    schema = record("I", features=features)
    assert cells(read(schema, {"features": {"amount_eur": 1.0}})) == [{"amount (€)": 1.0}]


def test_maps_and_arrays_are_features_by_name_and_by_position() -> None:
    by_name = record("I", features={"type": "map", "values": ["null", "double", "string"]})
    assert cells(read(by_name, {"features": {"b": 1.0, "a": "x"}}, {"features": {"c": None}})) == [
        {"b": 1.0, "a": "x"},
        {"c": None},
    ]
    by_position = record("I", features={"type": "array", "items": "double"})
    assert cells(read(by_position, {"features": [0.5, 2.0]})) == [{0: 0.5, 1: 2.0}]


# -- a schema that changes ----------------------------------------------------------------------------------

OLD = instances_schema(a="int", b="string")


@pytest.mark.parametrize(
    ("new", "features", "cell"),
    [
        pytest.param({"a": "int", "b": "string", "c": "double"}, {"c": 2.0}, {"c": 2.0}, id="added"),
        pytest.param({"b": "string", "a": "int"}, {}, {}, id="reordered"),
        pytest.param({"a": "double", "b": "string"}, {"a": 1.5}, {"a": 1.5}, id="promoted"),
        pytest.param({"a": "int", "b": ["null", "string"]}, {"b": None}, {"b": None}, id="nullable"),
        pytest.param({"a": "int", "b": "bytes"}, {"b": b"x"}, {"b": "x"}, id="as bytes"),
    ],
)
def test_a_changed_schema_has_the_columns_of_its_names(
    new: dict[str, Any], features: dict[str, Any], cell: dict[str | int, Any]
) -> None:
    schema = instances_schema(**new)
    value = {"id": "a", "features": {"a": 1, "b": "x"} | features, "label": None}
    assert cells(read(schema, value)) == [{"a": 1.0, "b": "x"} | cell]


def test_a_removed_field_is_a_missing_feature_whatever_its_default() -> None:
    schema = instances_schema(a="int")
    schema["fields"][1]["type"]["fields"][0]["default"] = 7
    assert cells(read(schema, {"id": "a", "features": {"a": 1}, "label": None})) == [{"a": 1.0}]


def test_types_of_references() -> None:
    place = record("Place", zip="int")
    schema = record("I", features=record("F", here="Place", there=["null", "Place"]))
    value = written(
        record("I", features=record("F", here=place, there=["null", "Place"])),
        {"features": {"here": {"zip": 1}, "there": {"zip": 2}}},
    )
    decoded = reader(schema, place).read_instances(batch(value), LIMITS)
    assert cells(decoded) == [{"here.zip": 1.0, "there.zip": 2.0}]


@pytest.mark.parametrize(
    "text", ["", "{", "[]{}", '"no.such.Type"', '{"type":"record"}', '{"type":"array"}', "7"]
)
def test_what_is_no_schema_is_refused(text: str) -> None:
    with pytest.raises(SchemaError, match="is not an Avro schema"):
        AvroSchema.of(text)


# -- bytes that do not fit ----------------------------------------------------------------------------------

STRICT = record(
    "I",
    id="string",
    features=record(
        "F",
        flag="boolean",
        small="int",
        kind={"type": "enum", "name": "E", "symbols": ["A", "B"]},
        maybe=["null", "double"],
    ),
    tail={"type": "array", "items": "null"},
)
GOOD = b"\x02a" + b"\x01" + b"\x02" + b"\x00" + b"\x00" + b"\x00"


@pytest.mark.parametrize(
    ("value", "reason", "detail"),
    [
        (b"", "bad-value", "field id does not fit its Avro schema: the value ends inside it"),
        (b"\x03", "bad-value", "field id does not fit its Avro schema: a length must not be negative"),
        (
            b"\x80" * 11,
            "bad-value",
            "field id does not fit its Avro schema: its number has more than 64 bits",
        ),
        (
            b"\xff" * 9 + b"\x02",
            "bad-value",
            "field id does not fit its Avro schema: its number has more than",
        ),
        (
            b"\x02\xff" + GOOD[2:],
            "bad-value",
            "field id does not fit its Avro schema: a string must be UTF-8",
        ),
        (
            b"\xfe\xff\xff\xff\x0fa",
            "bad-value",
            "field id does not fit its Avro schema: the value ends inside it",
        ),
        (
            GOOD[:2] + b"\x02" + GOOD[3:],
            "bad-value",
            "field features.flag does not fit its Avro schema: a bool",
        ),
        (
            GOOD[:3] + b"\x80\x80\x80\x80\x20" + GOOD[4:],
            "bad-value",
            "field features.small does not fit its Av",
        ),
        (
            GOOD[:4] + b"\x04" + GOOD[5:],
            "bad-value",
            "field features.kind does not fit its Avro schema: the en",
        ),
        (
            GOOD[:4] + b"\x01" + GOOD[5:],
            "bad-value",
            "field features.kind does not fit its Avro schema: the en",
        ),
        (
            GOOD[:5] + b"\x04" + GOOD[6:],
            "bad-value",
            "field features.maybe does not fit its Avro schema: the u",
        ),
        (
            GOOD[:5] + b"\x02\x00\x00" + GOOD[6:],
            "bad-value",
            "field features.maybe does not fit its Avro schem",
        ),
        (
            GOOD[:6] + b"\xfe\xff\xff\xff\x0f\x00",
            "too-large",
            "field tail: the arrays, maps and nested records",
        ),
        (
            GOOD[:6] + b"\x01\x01\x00",
            "bad-value",
            "field tail does not fit its Avro schema: a length must not",
        ),
        (GOOD + b"\x00", "bad-value", "bytes follow the value; its writer had another Avro schema"),
    ],
)
def test_bytes_that_do_not_fit_name_field_and_rule(value: bytes, reason: str, detail: str) -> None:
    decoded = reader(STRICT).read_instances(batch([GOOD, value, GOOD]), LIMITS)
    assert list(decoded.ids) == ["a", "a"]
    ((bad, given, text),) = flaws(decoded)
    assert (bad, given) == (1, reason)
    assert text.startswith(detail)


def test_nested_records_without_end_are_refused() -> None:
    node = {"type": "record", "name": "N", "fields": [{"name": "next", "type": ["null", "N"]}]}
    schema = record("I", id="string", chain=node, features=record("F", a="double"))
    endless = b"\x02a" + b"\x02" * 2000
    deep = b"\x02a" + b"\x02" * 200 + b"\x00" + bytes(8)
    decoded = reader(schema).read_instances(batch([endless, deep]), LIMITS)
    assert list(decoded.ids) == ["a"]
    assert flaws(decoded) == [
        (
            0,
            "bad-value",
            "field N.next does not fit its Avro schema: "
            "records, arrays and maps must be at most 256 levels deep",
        )
    ]


def test_a_type_that_doubles_at_each_level_does_not_hang() -> None:
    inner: Any = record("R0")
    for level in range(1, 40):
        inner = record(f"R{level}", a=inner, b=f"R{level - 1}")
    schema = record(
        "I", id="string", more={"type": "array", "items": inner}, features=record("F", a="double")
    )
    decoded = reader(schema).read_instances(batch([b"\x02a\x02\x00" + bytes(8)]), LIMITS)
    assert [(number, reason) for number, reason, _ in flaws(decoded)] == [(0, "too-large")]


def test_infinity_and_lists_among_features_are_refused() -> None:
    schema = instances_schema(a="double", b=["null", {"type": "array", "items": "int"}])
    decoded = read(
        schema,
        {"id": "a", "features": {"a": float("inf"), "b": None}, "label": None},
        {"id": "b", "features": {"a": 1.0, "b": [1]}, "label": None},
        {"id": "c", "features": {"a": 1.0, "b": None}, "label": None},
    )
    assert list(decoded.ids) == ["c"]
    assert flaws(decoded) == [
        (0, "not-finite", "feature 'a' is infinite; NaN and null stand for a missing value"),
        (1, "wrong-type", "feature 'b' must be a number, a string, a boolean or null; got an array"),
    ]


@pytest.mark.parametrize("schema", ["string", ["null", "string"], {"type": "array", "items": "int"}])
def test_a_schema_that_is_no_record_is_refused(schema: Any) -> None:
    decoded = reader(schema).read_instances(batch([b"\x00", b"\x02a"]), LIMITS)
    assert [(number, reason) for number, reason, _ in flaws(decoded)] == [(0, "bad-value"), (1, "bad-value")]
    assert reader(schema).read_controls(batch([b"\x00"]), LIMITS).malformed[0].reason == "bad-value"


def test_a_command_without_its_null_fields() -> None:
    budget = record("Budget", name="string", limit=["null", "double"])
    spec = record("Spec", learner=["null", record("Learner", name="string")], budget=["null", budget])
    schema = record("Control", command="string", spec=["null", spec])
    values = written(
        schema,
        {"command": "create", "spec": {"learner": None, "budget": {"name": "count", "limit": 0.5}}},
        {"command": "delete", "spec": None},
        {"command": "nothing", "spec": None},
    )
    controls = reader(schema).read_controls(batch([*values, b"\x03"]), LIMITS)
    assert [(item.record, item.command, item.body) for item in controls.items] == [
        (0, "create", {"spec": {"budget": {"name": "count", "limit": 0.5}}}),
        (1, "delete", {}),
    ]
    assert [(flawed.record, flawed.reason) for flawed in controls.malformed] == [
        (2, "unknown-command"),
        (3, "bad-value"),
    ]


def test_feature_values() -> None:
    schema = record(
        "Values",
        id="string",
        features=["null", {"type": "map", "values": ["double", "string"]}],
        unavailable=["null", {"type": "map", "values": "string"}],
        finish=["null", "boolean"],
    )
    values = written(
        schema,
        {"id": "a", "features": {"x": 1.5, "y": "red"}, "unavailable": None, "finish": None},
        {"id": "b", "features": None, "unavailable": {"x": "closed"}, "finish": True},
    )
    given = reader(schema).read_feature_values(batch(values), LIMITS)
    assert (given.ids, given.values) == (["a", "b"], [{"x": 1.5, "y": "red"}, {}])
    assert (given.unavailable, given.finish) == ([{}, {"x": "closed"}], [False, True])


def test_a_small_run_does_not_copy_the_whole_fetch() -> None:
    schema = record(
        "I", id="long", features=record("F", a={"type": "enum", "name": "E", "symbols": ["x", "y"]})
    )
    value = written(schema, {"id": 7, "features": {"a": "y"}})[0]
    avro, n = reader(schema), 1 << 26
    fetch = Spans(bytes(n) + value, np.array([n]), np.array([len(value)]))
    run = Batch(3, np.zeros(1, dtype=np.int32), [0], fetch, ["m"], np.zeros(1, dtype=np.int32))  # type: ignore[arg-type]
    avro.read_instances(run, LIMITS)
    tracemalloc.start()
    try:
        decoded = avro.read_instances(run, LIMITS)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
    assert (list(decoded.ids), cells(decoded)) == (["7"], [{"a": "y"}])


@pytest.mark.parametrize(("n", "rows"), [(Limits().features_max, 1), (Limits().features_max + 1, 0)])
def test_as_many_features_as_in_other_formats(n: int, rows: int) -> None:
    schema = record(
        "I", id="string", features=record("F", **{f"f{number}": "boolean" for number in range(n)})
    )
    decoded = reader(schema).read_instances(batch([b"\x02a" + b"\x01" * n]), LIMITS)
    assert len(decoded.ids) == rows
    assert sum(len(row or ()) for row in cells(decoded)) == rows * n
    assert [reason for _, reason, _ in flaws(decoded)] == ["bad-value"] * (1 - rows)
