"""Hostile schemas and values of Protobuf; a machine in trouble refuses no record."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.unit.topics.codecs.samples import cells, only_flaw, run_of
from topics.codecs import decode_instances
from topics.codecs.by_schema.schema_readers import prepare
from topics.codecs.frames.wire_format import framed
from topics.codecs.protobuf import message_types
from topics.columns.records import Instances
from topics.errors import ReaderError
from topics.registry.registered_schema import ReferencedSchema, RegisteredSchema

PLAIN = 'syntax = "proto3"; message R { string id = 1; double x = 2; }'
EMPTY = 'syntax = "proto3";'
VALUE = b"\x00\x0a\x01a\x11" + bytes(8)


def read(text: str, value: bytes = VALUE, imports: Mapping[str, str] | None = None) -> Instances:
    references = tuple(ReferencedSchema(name, imported) for name, imported in (imports or {}).items())
    schema = RegisteredSchema(7, "PROTOBUF", text, references)
    prepare(schema)
    return decode_instances(run_of([framed(7, value)]).read_by({7: schema}))


@pytest.mark.parametrize(
    "names", [["a", "a/b"], ["x" * 300], ["a\0b"], [""], ["."], ["/x"], [f"{message_types.RESULT}/x"]]
)
def test_names_of_imports_that_no_folder_can_hold(names: list[str]) -> None:
    flaw, detail = only_flaw(read(PLAIN, imports=dict.fromkeys(names, EMPTY)))
    assert (flaw, "the import" in detail) == ("bad-value", True)


def test_a_text_that_is_not_utf8() -> None:
    assert only_flaw(read(f"{PLAIN} // \ud800"))[0] == "bad-value"


def test_strings_of_proto2_that_are_not_utf8() -> None:
    text = 'syntax = "proto2"; message R { optional string id = 1; map<string, double> features = 2; }'
    flaw, detail = only_flaw(read(text, b"\x00\x0a\x01a\x12\x03\x0a\x01\xff"))
    assert (flaw, "must be UTF-8" in detail) == ("bad-value", True)


def test_well_known_types_are_those_of_the_library() -> None:
    text = (
        'syntax = "proto3"; import "google/protobuf/wrappers.proto"; '
        "message R { string id = 1; google.protobuf.DoubleValue x = 2; }"
    )
    other = 'syntax = "proto3"; package google.protobuf; message DoubleValue { string y = 1; }'
    value = b"\x00\x0a\x01a\x12\x09\x09" + b"\0\0\0\0\0\0\xf0\x3f"
    assert cells(read(text, value, {"google/protobuf/wrappers.proto": other})) == [{"x": 1.0}]


def test_a_type_with_the_name_of_a_wrapper() -> None:
    text = (
        'syntax = "proto3"; package google.protobuf; '
        "message R { string id = 1; DoubleValue x = 2; } message DoubleValue { double y = 1; }"
    )
    value = b"\x00\x0a\x01a\x12\x09\x09" + b"\0\0\0\0\0\0\xf0\x3f"
    assert cells(read(text, value)) == [{"x.y": 1.0}]


def test_a_compiler_that_has_no_time_refuses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_types, "PROTOC_S", 0.0)
    with pytest.raises(ReaderError, match="within 0 s"):
        read(f"{PLAIN} // one that no other test has compiled")


def test_a_compiler_that_cannot_write_refuses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_types, "RESULT", "no-such-folder/result")
    with pytest.raises(ReaderError, match="without a result"):
        read(f"{PLAIN} // another one")
