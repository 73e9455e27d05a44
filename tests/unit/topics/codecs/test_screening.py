"""Keys, null values, sizes, content types, envelopes: what is judged before a value is parsed."""

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import orjson
import pytest

from tests.unit.topics.codecs.samples import cells, keys_of, only_flaw, reasons, run_of
from topics.codecs import (
    CONTENT_TYPES,
    Limits,
    decode_controls,
    decode_instances,
    decode_labels,
    encode_instances,
)
from topics.codecs.content_types import content_type, wire_of_content_type, wire_of_value
from topics.columns.records import Features
from topics.columns.spans import Spans

GOOD = b'{"features":{"a":1}}'


def with_type(value: bytes, name: str) -> dict[str, Any]:
    return {"values": [value], "headers": [[("content-type", name.encode())]]}


@pytest.mark.parametrize(
    ("name", "wire"),
    [
        ("application/json", "json"),
        ("Application/JSON; charset=utf-8", "json"),
        (" text/json ", "json"),
        ("application/vnd.acme.order+json", "json"),
        ("application/cloudevents+json", "cloudevent"),
        ("application/vnd.grove.packed", "packed"),
        ("application/vnd.apache.arrow.stream", "arrow"),
        ("application/avro", None),
        ("text/plain", None),
        ("application/\xff", None),
    ],
)
def test_content_types(name: str, wire: str | None) -> None:
    assert wire_of_content_type(name.encode("latin-1")) == wire


def test_the_last_content_type_counts_in_any_case_and_an_empty_one_is_none() -> None:
    assert content_type([("Content-Type", b"a"), ("trace", b"x"), ("content-type", b"b")]) == b"b"
    assert content_type([("content-typo", b"a")]) is None
    assert content_type([("content-type", b"")]) is None
    assert content_type([("content-type", None)]) is None  # Kafka allows it


@pytest.mark.parametrize(
    ("value", "wire"),
    [
        (b"{}", "json"),
        (b"", "json"),
        (b"\xd6G", "packed"),
        (b"\xff\xff", "arrow"),
        (b"\0", "framed"),
        (b"x", "json"),
    ],
)
def test_first_bytes(value: bytes, wire: str) -> None:
    assert wire_of_value(value) == wire


@pytest.mark.parametrize(
    ("key", "reason"), [(None, "missing-key"), (b"", "missing-key"), (b"\xff\xfe", "bad-key")]
)
def test_bad_keys(key: bytes | None, reason: str) -> None:
    decoded = decode_instances(run_of([GOOD, GOOD], keys=[key, "schlüssel".encode()]))
    assert reasons(decoded) == {0: reason}
    assert keys_of(decoded) == ["schlüssel"]


@pytest.mark.parametrize("longest", [b"k" * 40, "ü".encode() * 20])
def test_a_key_may_have_as_many_bytes_as_a_text_and_no_more(longest: bytes) -> None:
    decoded = decode_instances(
        run_of([GOOD, GOOD], keys=[longest, longest + b"k"]), Limits(text_max_bytes=40)
    )
    assert reasons(decoded) == {1: "too-long"}
    assert keys_of(decoded) == [longest.decode()]
    assert decoded.malformed[0].detail == "a key of 41 bytes must have at most text.max.bytes=40"


def test_a_key_with_malformed_records_only_is_not_among_the_keys() -> None:
    decoded = decode_instances(run_of([b"{", GOOD, GOOD, b"{"], keys=[b"w", b"y", b"x", b"z"]))
    assert sorted(decoded.keys) == ["x", "y"]
    assert keys_of(decoded) == ["y", "x"]


def test_null_and_empty_values() -> None:
    decoded = decode_instances(run_of([None, b"", GOOD]))
    assert reasons(decoded) == {0: "null-value", 1: "not-json"}


def test_too_large() -> None:
    limits = Limits(record_max_bytes=len(GOOD))
    decoded = decode_instances(run_of([GOOD, GOOD + b" "]), limits)
    assert reasons(decoded) == {1: "too-large"}
    assert decoded.malformed[0].detail == f"{len(GOOD) + 1} bytes; record.max.bytes={len(GOOD)}"


@pytest.mark.parametrize("decode", [decode_instances, decode_labels])
def test_a_run_that_is_one_buffer_is_screened_record_by_record(decode: Callable[..., Any]) -> None:
    """This is what the worker's own fetching gives to the codecs."""
    good = b'{"id":"i","features":{"a":1},"label":"x"}'
    limits = Limits(record_max_bytes=len(good))
    for bad, reason in ((None, "null-value"), (good + b" ", "too-large")):
        run = run_of([good, good, good])
        run.values = Spans.of([good, bad, good])
        decoded = decode(run, limits)
        assert reasons(decoded) == {1: reason}
        assert decoded.record.tolist() == [0, 2]


def test_a_limit_is_at_least_one() -> None:
    for field in fields(Limits):
        Limits(**{field.name: 1})
        with pytest.raises(ValueError, match=f"{field.name}=0 must be at least 1"):
            Limits(**{field.name: 0})


def test_the_header_wins_over_the_first_byte() -> None:
    packed = encode_instances(Features.of(None, [[1.0]]), format="packed")[0]
    assert only_flaw(decode_instances(run_of(**with_type(packed, CONTENT_TYPES["json"]))))[0] == "not-json"
    assert only_flaw(decode_instances(run_of(**with_type(GOOD, CONTENT_TYPES["packed"]))))[0] == "bad-header"
    assert only_flaw(decode_instances(run_of(**with_type(GOOD, CONTENT_TYPES["arrow"]))))[0] == "bad-block"


def test_an_unknown_content_type_is_named_with_the_known_ones() -> None:
    reason, detail = only_flaw(decode_instances(run_of(**with_type(GOOD, "application/avro"))))
    assert reason == "unknown-content-type"
    assert detail == "content-type 'application/avro' is not read here; known: json, packed, arrow"


@pytest.mark.parametrize(
    "headers", [[("content-type", b"application/json")], [("ce_id", b"1"), ("ce_type", b"t")], ()]
)
def test_headers_of_a_uniform_run(headers: list[tuple[str, bytes]]) -> None:
    decoded = decode_instances(run_of([GOOD, GOOD], headers=[headers, headers]))
    assert cells(decoded) == [{"a": 1.0}, {"a": 1.0}]


def test_records_with_and_without_content_type_in_one_run() -> None:
    packed = encode_instances(Features.of(None, [[1.0]]), format="packed")[0]
    headers = [(), [("content-type", CONTENT_TYPES["packed"].encode())], [("content-type", b"image/png")], ()]
    decoded = decode_instances(run_of([GOOD, packed, packed, packed], headers=headers))
    assert reasons(decoded) == {2: "unknown-content-type"}
    assert cells(decoded) == [{"a": 1.0}, {0: 1.0}, {0: 1.0}]


def test_cloudevents_in_structured_mode() -> None:
    event = orjson.dumps(
        {"specversion": "1.0", "id": "e1", "type": "t", "source": "s", "data": {"features": [1]}}
    )
    assert cells(decode_instances(run_of(**with_type(event, "application/cloudevents+json")))) == [{0: 1.0}]
    for value, reason in [(b"{", "not-json"), (b"[]", "wrong-type"), (b'{"id":"e"}', "missing-field")]:
        decoded = decode_instances(run_of(**with_type(value, "application/cloudevents+json")))
        assert only_flaw(decoded)[0] == reason


def test_the_frame_of_confluent_serializers() -> None:
    framed = b"\x00\x00\x00\x00\x07" + GOOD
    assert cells(decode_instances(run_of([framed, GOOD]))) == [{"a": 1.0}, {"a": 1.0}]
    assert reasons(decode_instances(run_of([b"\x00", b"\x00abcd", b"\x00abcd{", GOOD]))) == {
        0: "not-json",
        1: "not-json",
        2: "not-json",
    }


def test_controls_are_json_only() -> None:
    packed = encode_instances(Features.of(None, [[1.0]]), format="packed")[0]
    arrow = encode_instances(Features.of(["a"], [[1.0]]), format="arrow")[0]
    controls = decode_controls(run_of([packed, b'{"command":"freeze"}', arrow, None]))
    assert reasons(controls) == {0: "unknown-content-type", 2: "unknown-content-type", 3: "null-value"}
    assert [(control.record, control.command) for control in controls.items] == [(1, "freeze")]


def test_an_empty_run() -> None:
    decoded = decode_instances(run_of([]))
    assert len(decoded) == 0
    assert decoded.malformed == []
    assert decoded.blocks.shape == (0, 3)
    assert decoded.weight.dtype == "float64"


def test_a_run_of_bad_records_only() -> None:
    decoded = decode_instances(run_of([None, None]))
    assert len(decoded) == 0
    assert decoded.keys == []
    assert [malformed.record for malformed in decoded.malformed] == [0, 1]


def test_details_are_cut() -> None:
    decoded = decode_instances(run_of(**with_type(GOOD, "x" * 1000)))
    assert len(decoded.malformed[0].detail) == 300


def test_a_header_name_that_was_not_utf8_is_malformed_and_one_with_an_accent_is_not() -> None:
    raw = run_of([GOOD, GOOD, GOOD])
    raw.headers = [[("é", b"1")], [("a\N{REPLACEMENT CHARACTER}", b"1")], ()]
    decoded = decode_instances(raw)
    assert decoded.record.tolist() == [0, 2]
    assert [(bad.record, bad.reason) for bad in decoded.malformed] == [(1, "bad-header")]
    assert "one of its headers is not UTF-8" in decoded.malformed[0].detail
