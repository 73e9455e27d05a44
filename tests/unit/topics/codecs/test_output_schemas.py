"""The released schemas of outputs: what this release writes, and what older releases have written."""

import json
import math
from io import BytesIO
from typing import Any

import fastavro
import pytest
from fastavro.read import SchemaResolutionError
from fastavro.utils import generate_one

from tests.log_lines import lines_of
from tests.unit.topics.codecs.samples import run_of
from topics.codecs import (
    decode_drift_alerts,
    decode_evaluations,
    encode_drift_alerts,
    encode_evaluations,
)
from topics.codecs.avro.output_reader import OutputReader
from topics.codecs.avro.output_schemas import OUTPUTS, Output, current, released
from topics.codecs.compiled.encode_avro import avro_reports
from topics.codecs.frames.wire_format import framed
from topics.columns.records import DriftAlert, EvaluationRecord, Malformed
from topics.errors import RegistryError, UnknownSchemaError
from topics.registry.registered_schema import RegisteredSchema, SchemaId


def reader(output: Output) -> OutputReader:
    return OutputReader(lambda schema_id: RegisteredSchema(schema_id, "AVRO", current(output)))


def texts(output: Output, values: list[bytes]) -> list[bytes]:
    return reader(output).texts([value or b"" for value in avro_reports(output, 7, values)])


def can_read(reader_schema: Any, writer_schema: Any) -> None:
    """Raise an exception if values of one schema cannot be read by another."""
    writer, newer = fastavro.parse_schema(writer_schema), fastavro.parse_schema(reader_schema)
    for index in range(20):
        sink = BytesIO()
        fastavro.schemaless_writer(sink, writer, generate_one(writer) if index else _sparse(writer))
        sink.seek(0)
        fastavro.schemaless_reader(sink, writer, newer)


def _sparse(schema: Any) -> dict[str, Any]:
    value: dict[str, Any] = generate_one(schema)
    nullable = [field["name"] for field in schema["fields"] if isinstance(field["type"], list)]
    return value | dict.fromkeys(nullable)


@pytest.mark.parametrize("output", OUTPUTS)
def test_the_newest_release_is_what_is_written(output: Output) -> None:
    """A changed record needs a new file: `python -m topics.codecs.avro.output_schemas` prints it."""
    versions = released(output)
    assert list(versions) == list(range(1, len(versions) + 1))
    assert versions[max(versions)] == current(output)


@pytest.mark.parametrize("output", OUTPUTS)
def test_the_newest_release_reads_the_records_of_all(output: Output) -> None:
    newest = json.loads(current(output))
    for text in released(output).values():
        can_read(newest, json.loads(text))


@pytest.mark.parametrize("output", OUTPUTS)
def test_a_schema_that_is_not_backward_compatible_is_noticed(output: Output) -> None:
    changed = json.loads(current(output))
    changed["fields"].append({"name": "new", "type": "string"})
    with pytest.raises(SchemaResolutionError):
        can_read(changed, json.loads(current(output)))


def test_every_field_that_may_be_null_has_a_default() -> None:
    for output in OUTPUTS:
        for field in json.loads(current(output))["fields"]:
            assert not isinstance(field["type"], list) or field["default"] is None, (output, field)


def test_alerts_come_back() -> None:
    alerts = [
        DriftAlert("warning", "ddm", 0.25, "none", node=7, version=12, instance_id="i", classes=["a", "b"]),
        DriftAlert("drift", "ddm", 0.5, "rebuild"),
    ]
    assert decode_drift_alerts(texts("drift-alert", encode_drift_alerts(alerts))) == alerts


def test_evaluations_come_back() -> None:
    sent = EvaluationRecord(
        *(10, 5, 0.5, 0.25, math.nan, 1.0, 0.1, math.nan, 0.5),
        version=5,
        growth_stopped=True,
        classes={"a": 3, "b": 2},
        per_class={"a": {"labels": 3.0, "recall": math.nan}},
        confusion={"classes": ["a"], "weights": [[3.0]]},
        challenge={"since": 7, "shares": {"a": 0.5}, "at": None},
        learning_curve={"labels": [[0, 5]], "accuracy": [[0.5, 0.25, math.nan]]},
    )
    written = encode_evaluations([sent])
    (received,) = decode_evaluations(texts("evaluation", written))
    assert not isinstance(received, Malformed)
    (expected,) = decode_evaluations(written)
    assert repr(received) == repr(expected)


def test_other_values_stay_as_they_are() -> None:
    contents = [b"", b"{}", b"\xd6G", b"\x00\x00\x00\x00\x07\xff"]
    assert reader("prediction").texts(contents) == contents
    assert OutputReader(None).texts(contents) == contents


def test_a_schema_that_nobody_has() -> None:
    def schema_of(schema_id: SchemaId) -> RegisteredSchema:
        if schema_id == 1:
            raise UnknownSchemaError("no such schema")
        raise RegistryError("away")

    outputs = OutputReader(schema_of)
    assert outputs.texts([b"\x00\x00\x00\x00\x01x"]) == [b"\x00\x00\x00\x00\x01x"]
    with pytest.raises(RegistryError, match="away"):
        outputs.texts([b"\x00\x00\x00\x00\x02x"])


def test_an_absent_schema_is_looked_up_once_in_a_while() -> None:
    requested = []

    def schema_of(schema_id: SchemaId) -> RegisteredSchema:
        requested.append(schema_id)
        raise UnknownSchemaError

    outputs = OutputReader(schema_of)
    contents = [framed(9, b"{}")] * 3
    assert outputs.texts(contents) == outputs.texts(contents) == contents
    assert outputs.inputs(run_of(contents)).schemas == {}
    assert requested == [9]


def test_a_schema_that_cannot_be_used_leaves_values_as_they_are() -> None:
    fixed = {"type": "fixed", "name": "F", "size": -1}
    outputs = OutputReader(lambda schema_id: RegisteredSchema(schema_id, "AVRO", json.dumps(fixed)))
    assert outputs.texts([framed(9, b"x")]) == [framed(9, b"x")]


def test_values_that_need_a_registry_are_warned_of_once_without_one(caplog: pytest.LogCaptureFixture) -> None:
    outputs = OutputReader(None)
    outputs.texts([b"{}", framed(7, b"{}"), b"\0"])
    assert lines_of(caplog) == []
    for _ in range(2):
        outputs.texts([b"{}", framed(7, b"\x02a")])
    assert caplog.text.count("set schema.registry.url") == 1
