"""Written batches are read back as the records that were given, and are the bytes that aiokafka writes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from aiokafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tiers import examples
from topics.columns.header_columns import HeaderColumns
from topics.columns.spans import Spans
from topics.fetching.batches import HEAD, Limit, opened, spans_of
from topics.fetching.inflate import LZ4
from topics.producing.batch_encoder import BatchForm, Run, WrittenBatch, write_runs
from topics.producing.compression import CODECS, NONE

MAYBE = st.none() | st.just(b"") | st.binary(max_size=200)
TIMES = st.integers(1_700_000_000_000, 1_700_000_000_100) | st.integers(0, 1 << 61)
RECORDS = st.lists(
    st.tuples(
        st.integers(0, 3),
        TIMES,
        MAYBE,
        MAYBE,
        st.lists(st.tuples(st.text(max_size=5).filter(lambda name: "\0" not in name), MAYBE), max_size=3),
    ),
    max_size=12,
)
RUNS = st.lists(st.tuples(RECORDS, st.booleans()), max_size=4)
FIRST_SEQUENCES = st.integers(0, 5) | st.integers((1 << 31) - 5, (1 << 31) - 1)


def run_of(records: list[Any], has_headers: bool) -> Run:
    columns = list(zip(*records, strict=True)) or [()] * 5
    return Run(
        np.array(columns[0], dtype=np.int64),
        Spans.of(columns[3]),
        Spans.of(columns[2]),
        np.array(columns[1], dtype=np.int64),
        HeaderColumns.of(columns[4]) if has_headers else None,
    )


def rows_of(batch: WrittenBatch) -> list[Any]:
    """Return the records of a batch, as the reader of fetched batches reads them."""
    read = opened(batch.wire, 0, len(batch.wire), 0, Limit())
    assert DefaultRecordBatch(batch.wire).validate_crc()
    spans = spans_of(read, 0)  # type: ignore[arg-type]
    assert spans is not None
    assert list(spans.offsets) == list(range(batch.count))
    headers = [list(pairs) for pairs in spans.headers]
    return list(zip(spans.timestamps, spans.keys, spans.values, headers, strict=True))


def expected_rows(given_runs: list[tuple[list[Any], bool]], partition: int) -> list[Any]:
    return [
        (time, key, value, list(headers) if has_headers else [])
        for records, has_headers in given_runs
        for place, time, key, value, headers in records
        if place == partition
    ]


@settings(max_examples=examples(200))
@given(RUNS, st.integers(61, 600), st.sampled_from([*CODECS.values()]), FIRST_SEQUENCES)
def test_a_reader_gets_the_records_that_were_written(
    given_runs: list[tuple[list[Any], bool]], most_bytes: int, codec: int, first: int
) -> None:
    sequences = {("topic", partition): first for partition in range(4)}
    form = BatchForm(12345, 7, most_bytes, codec)
    batches = write_runs("topic", [run_of(*each) for each in given_runs], sequences, form)
    for partition in range(4):
        own = [batch for batch in batches if batch.partition == partition]
        expected = expected_rows(given_runs, partition)
        assert [row for batch in own for row in rows_of(batch)] == expected
        following = first
        for batch in own:
            head = HEAD.unpack_from(batch.wire)
            assert head[5] & ~codec == 0x10
            assert head[9:] == (12345, 7, following, batch.count)
            assert batch.count == 1 or codec or len(batch.wire) <= most_bytes
            following = (following + batch.count) % (1 << 31)
        assert sequences["topic", partition] == following


@settings(max_examples=examples(200))
@given(RECORDS.filter(bool), st.booleans())
def test_a_batch_is_the_bytes_that_aiokafka_writes(records: list[Any], is_transactional: bool) -> None:
    records = [(0, *rest) for _, *rest in records]
    form = BatchForm(99, 3, 1 << 24, NONE, is_transactional)
    (ours,) = write_runs("topic", [run_of(records, True)], {("topic", 0): 41}, form)
    builder = DefaultRecordBatchBuilder(2, 0, int(is_transactional), 99, 3, 41, 1 << 24)
    for offset, (_, time, key, value, headers) in enumerate(records):
        assert builder.append(offset, time, key, value, headers) is not None
    theirs = bytearray(builder.build())
    theirs[12:16] = ours.wire[
        12:16
    ]  # the epoch of the leader, which brokers overwrite and no checksum covers
    assert ours.wire == bytes(theirs)


def test_records_that_do_not_become_smaller_stay_plain() -> None:
    run = run_of([(0, 5, b"k", bytes(range(256)), [])], False)
    (plain,) = write_runs("topic", [run], {}, BatchForm(1, 0, 1000, LZ4))
    assert HEAD.unpack_from(plain.wire)[5] == 0x10
    run = run_of([(0, 5, b"k", bytes(5000), [])], False)
    (small,) = write_runs("topic", [run], {}, BatchForm(1, 0, 1000, LZ4))
    assert HEAD.unpack_from(small.wire)[5] == 0x10 | LZ4
    assert len(small.wire) < 200


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        ({"partitions": np.array([0, 1])}, "partitions=2"),
        ({"timestamps": np.array([], dtype=np.int64)}, "timestamps=0"),
        ({"keys": Spans.of([])}, "keys=0"),
        ({"values": Spans(b"ab", np.array([1]), np.array([2]))}, "values: every value must lie"),
        ({"keys": Spans(b"ab", np.array([-1]), np.array([1]))}, "keys: every value must lie"),
        ({"partitions": np.array([-1])}, "partition=-1"),
        (
            {"headers": HeaderColumns(["a"], np.array([0]), Spans.of([b"x"]), np.array([0, 2]))},
            "first must rise",
        ),
    ],
)
def test_columns_that_do_not_fit_together_are_refused(columns: dict[str, Any], text: str) -> None:
    """The kernel would read other memory."""
    good: dict[str, Any] = {
        "partitions": np.array([0]),
        "values": Spans.of([b"v"]),
        "keys": Spans.of([b"k"]),
        "timestamps": np.array([1]),
        "headers": None,
    }
    with pytest.raises(ValueError, match=text):
        write_runs("topic", [Run(**(good | columns))], {}, BatchForm(1, 0, 1000))
