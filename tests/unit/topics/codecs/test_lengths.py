"""Records whose parts are too long, too many, or unpack to more than they are."""

from __future__ import annotations

import orjson
import pyarrow as pa
import pytest

from topics.codecs import (
    Limits,
    decode_controls,
    decode_instances,
    decode_labels,
    encode_instances,
    encode_labels,
)
from topics.codecs.lengths import too_long
from topics.columns.records import Features, Format, Instances, Labels, RawRecords
from topics.errors import Reason

LIMITS = Limits(text_max_bytes=16)
LONG = "x" * 17
FORMATS: tuple[Format, ...] = ("json", "packed", "arrow")


def raw(*values: bytes, key: bytes = b"k") -> RawRecords:
    n = len(values)
    return RawRecords("instances", 0, list(range(n)), [0] * n, [key] * n, list(values), [()] * n)


def stream(table: pa.Table | pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write(table)
    return bytes(sink.getvalue().to_pybytes())


def only(batch: Instances | Labels) -> tuple[Reason, str]:
    """Return why the only record, or its only bad row, is refused."""
    (bad,) = batch.malformed
    return bad.rows[0][1] if bad.rows else bad.reason, bad.detail


@pytest.mark.parametrize(
    ("text", "is_too_long"),
    [("", False), ("x" * 16, False), ("x" * 17, True), ("ä" * 8, False), ("ä" * 9, True), ("日" * 5, False)],
)
def test_bytes_of_utf8_count(text: str, is_too_long: bool) -> None:
    assert (too_long("a text", text, 16) is not None) == is_too_long


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("part", ["id", "label"])
def test_an_instance_with_a_long_text_is_refused_and_no_other(form: Format, part: str) -> None:
    texts = [LONG, "y" * 16]
    features = Features.of(("a",) if form == "arrow" else None, [[1.0], [2.0]])
    ids, labels = (texts, ["p", "q"]) if part == "id" else (["1", "2"], texts)
    decoded = decode_instances(raw(*encode_instances(features, format=form, ids=ids, labels=labels)), LIMITS)
    reason, detail = only(decoded)
    assert reason == Reason.TOO_LONG
    assert (
        f"{'an id' if part == 'id' else 'a class'} of 17 bytes must have at most text.max.bytes=16" in detail
    )
    assert list(decoded.ids) == [ids[1]]


@pytest.mark.parametrize("form", FORMATS)
def test_a_label_with_a_long_annotator_is_refused(form: Format) -> None:
    values = encode_labels(["1", "2"], ["p", "q"], format=form, annotators=["me", LONG])
    decoded = decode_labels(raw(*values), LIMITS)
    assert only(decoded)[0] == Reason.TOO_LONG
    assert decoded.ids == ["1"]


@pytest.mark.parametrize("form", ["json", "arrow"])
def test_names_and_values_of_features(form: Format) -> None:
    named = encode_instances(Features.of((LONG,), [[1.0]]), format=form)
    assert only(decode_instances(raw(*named), LIMITS))[0] == Reason.TOO_LONG
    texts = Features.of(("a",), [[float("nan")], [float("nan")]], {0: [LONG, "short"]})
    decoded = decode_instances(raw(*encode_instances(texts, format=form)), LIMITS)
    reason, detail = only(decoded)
    assert (reason, len(decoded)) == (Reason.TOO_LONG, 1)
    assert "the value of feature 'a' of 17 bytes" in detail


def test_a_long_key() -> None:
    decoded = decode_instances(raw(b'{"features":[1]}', key=b"k" * 17), LIMITS)
    assert only(decoded) == (Reason.TOO_LONG, "a key of 17 bytes must have at most text.max.bytes=16")


def test_too_many_names() -> None:
    limits = Limits(features_max=3)
    many = encode_instances(Features.of(tuple("abcd"), [[1.0] * 4]))
    assert only(decode_instances(raw(*many), limits))[0] == Reason.TOO_MANY_FEATURES
    columns = pa.table({f"a{i}": [1.0] for i in range(7)})
    assert only(decode_instances(raw(stream(columns)), limits))[0] == Reason.TOO_MANY_FEATURES


def test_json_with_more_values_than_a_record_may_have_is_not_parsed() -> None:
    good, crowded = b'{"features":[1]}', b'{"features":[' + b",".join([b"{}"] * 40_000) + b"]}"
    decoded = decode_instances(raw(good, crowded, good))
    assert only(decoded)[0] == Reason.TOO_LARGE
    assert list(decoded.ids) == ["0-0", "0-2"]
    assert only(decode_labels(raw(crowded)))[0] == Reason.TOO_LARGE
    (bad,) = decode_controls(raw(b'{"command":[' + b"1," * 1_100_000 + b"1]}")).malformed
    assert bad.reason == Reason.TOO_LARGE
    text = b'{"id":"1","features":[1],"note":"' + b"," * 65_000 + b'"}'
    assert not decode_instances(raw(text)).malformed


def test_an_envelope_is_not_parsed_either_if_it_holds_too_many_values() -> None:
    def judged(value: bytes) -> str:
        records = raw(value)
        records.headers = [(("content-type", b"application/cloudevents+json"),)]
        return only(decode_instances(records))[1]

    more = b",".join([b"{}"] * 40_000)
    for event in (b'{"data":{"features":[1]},"note":[%s]}' % more, b'{"data":{"features":[%s]}}' % more):
        assert "commas and brackets" in judged(event)


def test_a_block_whose_values_are_worth_less_than_their_bytes() -> None:
    nulls = pa.table({f"a{i}": pa.nulls(10_000) for i in range(200)})
    value = stream(nulls)
    assert len(value) < 100_000
    assert only(decode_instances(raw(value)))[0] == Reason.TOO_LARGE


def test_string_views_that_overlap_are_refused() -> None:
    text = "t" * 100_000
    one = pa.array([text], pa.string_view())
    views = one.buffers()[1].to_pybytes() * 1000
    column = pa.Array.from_buffers(pa.string_view(), 1000, [None, pa.py_buffer(views), *one.buffers()[2:]])
    value = stream(pa.table({"x": column}))
    assert len(value) < 10 * len(text)
    reason, detail = only(decode_instances(raw(value)))
    assert reason == Reason.BAD_BLOCK
    assert "views overlap" in detail


def test_a_dictionary_is_not_unpacked_for_rows_that_do_not_use_it() -> None:
    values = pa.array([f"v{i}" for i in range(50_000)])
    column = pa.DictionaryArray.from_arrays(pa.array([49_999, None, 7]), values)
    decoded = decode_instances(raw(stream(pa.table({"x": column}))))
    assert decoded.features[0].strings == {0: ["v49999", None, "v7"]}


def test_a_stream_of_empty_batches() -> None:
    batch = pa.record_batch({"x": pa.array([], pa.float64())})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        for _ in range(5000):
            writer.write_batch(batch)
    reason, detail = only(decode_instances(raw(sink.getvalue().to_pybytes())))
    assert (reason, detail) == (Reason.BAD_BLOCK, "the block must have at most 4,096 messages")


def test_commas_within_the_bound_are_read() -> None:
    wide = orjson.dumps({"features": [1.5] * 40_000})
    assert decode_instances(raw(wide)).features[0].values.shape == (1, 40_000)
