"""Values by a schema of a registry: the same rows as the JSON of the same names, whatever the frame."""

from __future__ import annotations

import io
import json
import math
from typing import Any
from uuid import UUID

import fastavro
import pytest

from tests.unit.topics.codecs.samples import cells, classes, only_flaw, reasons, run_of
from topics.codecs import decode_controls, decode_feature_values, decode_instances, decode_labels
from topics.codecs.by_schema.schema_readers import reader_of
from topics.codecs.compiled.decode import InstanceDecoder, LabelDecoder
from topics.codecs.frames.schema_ids import NO_ID, distinct_ids, ids_before_bodies, schema_ids
from topics.codecs.frames.wire_format import ID_HEADER, framed, id_before_body
from topics.codecs.limits import Limits
from topics.columns.records import Headers, RawRecords, Schemas
from topics.columns.spans import Spans
from topics.registry.registered_schema import ReferencedSchema, RegisteredSchema

GUID = UUID("89791762-2336-4186-9674-299b90a802e2")
AVRO_TYPE: Any = {
    "type": "record",
    "name": "Instance",
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "label", "type": ["null", "string"]},
        {
            "name": "features",
            "type": {
                "type": "record",
                "name": "Features",
                "fields": [{"name": "x", "type": "double"}, {"name": "color", "type": "string"}],
            },
        },
    ],
}
PROTO = """
syntax = "proto3";
package shop;
import "features.proto";
message Other { message Inner { string id = 1; } }
message Instance { string id = 1; optional string label = 2; Features features = 3; }
"""
FEATURES_PROTO = """
syntax = "proto3";
package shop;
message Features { double x = 1; string color = 2; }
"""
AVRO = RegisteredSchema(1, "AVRO", json.dumps(AVRO_TYPE))
JSON = RegisteredSchema(
    2,
    "JSON",
    """{"type": "object", "properties": {"features": {"$ref": "features.json"}}}""",
    (ReferencedSchema("features.json", """{"type": "object", "properties": {"x": {"type": "number"}}}"""),),
)
PROTOBUF = RegisteredSchema(3, "PROTOBUF", PROTO, (ReferencedSchema("features.proto", FEATURES_PROTO),))
BY_GUID = RegisteredSchema(GUID, "AVRO", json.dumps(AVRO_TYPE))
SCHEMAS = {schema.id: schema for schema in (AVRO, JSON, PROTOBUF, BY_GUID)}


def avro(document: dict[str, Any], schema: Any = AVRO_TYPE) -> bytes:
    sink = io.BytesIO()
    fastavro.schemaless_writer(sink, fastavro.parse_schema(schema), document)
    return sink.getvalue()


def protobuf(document: dict[str, Any], schema: RegisteredSchema = PROTOBUF, index: int = 1) -> bytes:
    from google.protobuf.json_format import ParseDict

    message = reader_of(schema)._types.message_class([index])()  # type: ignore[attr-defined]
    ParseDict({name: value for name, value in document.items() if value is not None}, message)
    return bytes(message.SerializeToString())


def by_schemas(values: list[bytes], headers: list[Headers] | None = None) -> RawRecords:
    return run_of(values, headers=headers).read_by(SCHEMAS)


ROWS: list[dict[str, Any]] = [
    {"id": f"i{row}", "label": None if row % 3 else "yes", "features": {"x": row / 4, "color": "red"}}
    for row in range(12)
]
PLAIN = [json.dumps(row).encode() for row in ROWS]
GUID_HEADER: Headers = ((ID_HEADER, b"\x01" + GUID.bytes),)

FORMS: dict[str, tuple[list[bytes], list[Headers]]] = {
    "avro": ([framed(1, avro(row)) for row in ROWS], [()] * 12),
    "json": ([framed(2, value) for value in PLAIN], [()] * 12),
    # Indexes of the message: one index, 1, as zigzag varints.
    "protobuf": ([framed(3, b"\x02\x02" + protobuf(row)) for row in ROWS], [()] * 12),
    "guid": ([avro(row) for row in ROWS], [GUID_HEADER] * 12),
    "id in header": ([*PLAIN], [((ID_HEADER, b"\0\0\0\0\x02"),)] * 12),
    "protobuf by header": (
        [protobuf(row) for row in ROWS],
        [((ID_HEADER, b"\0\0\0\0\x03\x02\x02"),)] * 12,
    ),
    "content type": ([framed(1, avro(row)) for row in ROWS], [(("Content-Type", b"avro/binary"),)] * 12),
}


def mixed() -> tuple[list[bytes], list[Headers]]:
    """Records in turn plain and of each form."""
    forms: list[tuple[list[bytes], list[Headers]]] = [(PLAIN, [()] * 12), *FORMS.values()]
    chosen = [forms[row % len(forms)] for row in range(12)]
    return [values[row] for row, (values, _) in enumerate(chosen)], [
        headers[row] for row, (_, headers) in enumerate(chosen)
    ]


def content(decoded: Any) -> Any:
    assert not decoded.malformed
    return list(decoded.ids), classes(decoded), cells(decoded), decoded.weight.tolist()


@pytest.mark.parametrize("form", [*FORMS, "mixed"])
def test_instances_are_those_of_json(form: str) -> None:
    values, headers = mixed() if form == "mixed" else FORMS[form]
    raw = by_schemas(values, headers)
    expected = content(decode_instances(run_of(PLAIN)))
    assert content(decode_instances(raw)) == expected
    assert content(InstanceDecoder()(raw, Limits())) == expected
    one_by_one = [raw.part(row, row + 1) for row in range(12)]
    decoded = InstanceDecoder().decode(one_by_one, Limits())
    assert [list(single.ids) for single in decoded] == [[row["id"]] for row in ROWS]


@pytest.mark.parametrize("form", [*FORMS, "mixed"])
def test_labels_are_those_of_json(form: str) -> None:
    values, headers = mixed() if form == "mixed" else FORMS[form]
    labelled = [row for row in range(12) if ROWS[row]["label"]]
    raw = by_schemas(values, headers).chosen(labelled)
    expected = content(decode_labels(run_of([PLAIN[row] for row in labelled])))
    assert content(decode_labels(raw)) == content(LabelDecoder()(raw, Limits())) == expected


def test_controls_and_feature_values_may_have_schemas() -> None:
    command = {"type": "record", "name": "C", "fields": [{"name": "command", "type": "string"}]}
    values_type = {
        "type": "record",
        "name": "V",
        "fields": [
            {"name": "id", "type": "string"},
            {"name": "features", "type": {"type": "map", "values": "double"}},
        ],
    }
    schemas: Schemas = {
        8: RegisteredSchema(8, "AVRO", json.dumps(command)),
        9: RegisteredSchema(9, "AVRO", json.dumps(values_type)),
        2: JSON,
    }
    controls = [b'{"command":"freeze"}', framed(8, avro({"command": "reset"}, command)), framed(2, b"{}")]
    decoded = decode_controls(run_of(controls).read_by(schemas))
    assert [(item.record, item.command) for item in decoded.items] == [(0, "freeze"), (1, "reset")]
    assert reasons(decoded) == {2: "missing-field"}
    values = [
        framed(9, avro({"id": "a", "features": {"x": 1.5}}, values_type)),
        b'{"id":"b","features":{"y":2}}',
    ]
    found = decode_feature_values(run_of(values).read_by(schemas))
    assert (found.ids, found.values) == (["a", "b"], [{"x": 1.5}, {"y": 2.0}])


def test_fields_of_messages_are_features_with_dotted_names() -> None:
    proto = """
    syntax = "proto3";
    enum Color { RED = 0; BLUE = 1; }
    message Reading {
      string id = 1;
      message Sensor { double hot = 1; Color color = 2; optional int64 n = 3; bool is_on = 4; }
      Sensor left = 2;
      map<string, double> more = 3;
    }
    """
    schema = RegisteredSchema(4, "PROTOBUF", proto)
    document = {"id": "r", "left": {"hot": 1.5, "color": "BLUE"}, "more": {"a": 2}}
    value = framed(4, b"\0" + protobuf(document, schema, 0))
    decoded = decode_instances(run_of([value]).read_by({4: schema}))
    assert list(decoded.ids) == ["r"]
    assert cells(decoded) == [{"left.hot": 1.5, "left.color": "BLUE", "left.is_on": 0.0, "more.a": 2.0}]


@pytest.mark.parametrize(
    ("value", "headers", "reason", "words"),
    [
        (framed(77, b"x"), (), "unknown-schema", "does not have schema 77"),
        (b"\0\0\0", (), "bad-value", "schema id of 4 bytes"),
        (b"x", ((ID_HEADER, b"\x02abc"),), "bad-header", "0x01 and a GUID of 16 bytes"),
        (framed(3, b""), (), "bad-value", "indexes of its message"),
        (framed(3, b"\x02\x0e"), (), "bad-value", "no message 7"),
        (framed(3, b"\x02\x01"), (), "bad-value", "no message -1"),
        (framed(3, b"\xff\xff\xff\xff\xff\xff\x02"), (), "bad-value", "indexes of its message"),
        (framed(3, b"\x02\x02\xff"), (), "bad-value", "message 'shop.Instance'"),
        (framed(2, b"{"), (), "not-json", ""),
        (framed(2, b"[]"), (), "bad-value", 'the record: [] is not of type "object"'),
        (framed(2, b'{"features":{"x":"a"}}'), (), "bad-value", 'features.x: "a" is not of type "number"'),
        (b'{"features":{"x":"a"}}', ((ID_HEADER, b"\0\0\0\0\x02"),), "bad-value", "features.x"),
        (framed(2, b'{"features":[' + b"1," * 200_000 + b"1]}"), (), "too-large", "200,"),
        (framed(1, b"\x02"), (), "bad-value", "id"),
    ],
)
def test_bad_values_are_dead_letters_alone(value: bytes, headers: Headers, reason: str, words: str) -> None:
    for decode in (decode_instances, lambda raw: InstanceDecoder()(raw, Limits())):
        flaw, detail = only_flaw(decode(by_schemas([value], [headers])))
        assert flaw == reason
        assert words in detail
    others = by_schemas([FORMS["avro"][0][0], value, PLAIN[1]], [(), headers, ()])
    assert list(decode_instances(others).ids) == ["i0", "i1"]


def test_an_infinite_field_of_a_message() -> None:
    value = protobuf({"id": "r", "features": {"x": "Infinity"}})
    flaw, detail = only_flaw(decode_instances(by_schemas([framed(3, b"\x02\x02" + value)])))
    assert (flaw, "features.x" in detail) == ("not-finite", True)
    missing = protobuf({"id": "r", "features": {"x": "NaN", "color": "red"}})
    (row,) = cells(decode_instances(by_schemas([framed(3, b"\x02\x02" + missing)])))
    assert row is not None
    assert row["x"] is None or math.isnan(float(row["x"]))


@pytest.mark.parametrize(
    "schema",
    [
        RegisteredSchema(5, "AVRO", "{"),
        RegisteredSchema(5, "JSON", "{"),
        RegisteredSchema(5, "JSON", '{"type": "nonsense"}'),
        RegisteredSchema(5, "JSON", '{"$ref": "http://192.0.2.1/never-fetched.json"}'),
        RegisteredSchema(5, "PROTOBUF", "message {"),
        RegisteredSchema(5, "PROTOBUF", "", (ReferencedSchema("../x.proto", ""),)),
    ],
)
def test_a_schema_that_is_not_valid(schema: RegisteredSchema) -> None:
    raw = run_of([framed(5, b"x")]).read_by({5: schema})
    for decode in (decode_instances, decode_labels, decode_controls, decode_feature_values):
        flaw, detail = only_flaw(decode(raw))
        assert (flaw, "schema 5: " in detail) == ("bad-value", True)


def test_ids_of_a_run() -> None:
    values, headers = mixed()
    packed = [(("content-type", b"application/vnd.grove.packed"),)]
    raw = by_schemas([*values, framed(1, b""), b""], [*headers, *packed, ()])
    assert schema_ids(raw) == [None, 1, 2, 3, GUID, 2, 3, 1, None, 1, 2, 3, None, None]
    assert schema_ids(by_schemas(FORMS["json"][0])) == [2] * 12


@pytest.mark.parametrize(
    "values",
    [
        [],
        [None, b""],
        [b"\x00\x00\x00\x01"],  # four bytes, at the end of the buffer too
        [framed(7, b"")],
        [framed(7, b"body")] * 3,
        [framed(4_294_967_295, b""), None, b"{}", framed(2_147_483_648, b"x"), b"\x00", framed(0, b"")],
        [b"\x01\x00\x00\x00\x02", framed(1, b"\x00\x00\x00\x00\x05"), framed(258, b"")],
    ],
)
def test_ids_of_a_buffer_are_those_of_each_value(values: list[bytes | None]) -> None:
    ids = ids_before_bodies(Spans.of(values))
    own = [None if value is None else id_before_body(value) for value in values]
    alone = [NO_ID if number is None else number for number in own]
    assert ids.tolist() == alone
    assert distinct_ids(ids) == sorted({*alone})


def test_without_a_registry_frames_are_left_out_as_before() -> None:
    decoded = decode_instances(run_of(FORMS["json"][0]))
    assert content(decoded) == content(decode_instances(run_of(PLAIN)))
