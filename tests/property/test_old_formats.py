"""Batches of the formats v0 and v1: sound ones are read as aiokafka reads them, hostile ones are refused."""

import zlib
from typing import Any, Literal

import pytest
from aiokafka import TopicPartition
from aiokafka.consumer.fetcher import READ_COMMITTED, PartitionRecords
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.legacy_records import LegacyRecordBatchBuilder, _LegacyRecordBatchPy
from aiokafka.record.util import calc_crc32c
from hypothesis import given, settings
from hypothesis import strategies as st

from streamapp.worker.transport.fetched_columns import decode, has_more
from tests.tiers import examples
from topics.errors import Reason
from topics.fetching.batches import Limit
from topics.fetching.fetched_records import FetchedRecords

TP = TopicPartition("topic", 0)
LIMIT = Limit(1 << 13)
NEXT = 100
"""Offset of a sound record after the batch in question."""

Magic = Literal[0, 1]
FORMS: list[tuple[Magic, int]] = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (1, 3)]
"""Formats, each with its codecs."""
MAYBE = st.none() | st.just(b"") | st.binary(max_size=60)


def old(magic: Magic, codec: int, records: list[tuple[Any, Any]], base: int = 0) -> bytes:
    builder = LegacyRecordBatchBuilder(magic, codec, 1 << 24)
    for number, (key, value) in enumerate(records):
        at = number if magic else base + number
        assert builder.append(at, 1_700_000_000_000 + number, key, value) is not None
    raw = bytes(builder.build())
    return (base + len(records) - 1).to_bytes(8, "big") + raw[8:] if codec else raw


def new(base: int) -> bytes:
    builder = DefaultRecordBatchBuilder(2, 0, 0, -1, 0, 0, 1 << 16)
    assert builder.append(0, 5, b"k", b"sound", []) is not None
    raw = bytes(builder.build())
    return base.to_bytes(8, "big") + raw[8:]


def resealed(raw: bytes) -> bytes:
    """Return a batch with the length and the checksum that belong to its bytes."""
    sized = raw[:8] + (len(raw) - 12).to_bytes(4, "big") + raw[12:]
    if sized[16] > 1:
        newer: int = calc_crc32c(sized[21:])
        return sized[:17] + newer.to_bytes(4, "big") + sized[21:]
    return sized[:12] + zlib.crc32(sized[16:]).to_bytes(4, "big") + sized[16:]


def read(log: bytes, position: int = 0) -> tuple[list[tuple[Any, ...]], list[Any]]:
    records = PartitionRecords(TP, FetchedRecords(log), [], position, None, None, True, READ_COMMITTED)
    rows: list[tuple[Any, ...]] = []
    refused: list[Any] = []
    while has_more(records):
        columns = decode(records, None, limit=LIMIT)
        spans = columns.records
        rows += zip(spans.offsets, spans.timestamps, spans.keys, spans.values, strict=True)
        refused += columns.refused
    return rows, refused


@settings(max_examples=examples(100))
@given(
    st.sampled_from(FORMS),
    st.lists(st.tuples(MAYBE, MAYBE), min_size=1, max_size=6),
    st.integers(0, 50),
)
def test_sound_batches_are_read_as_aiokafka_reads_them(
    form: tuple[Magic, int], records: list[tuple[Any, Any]], base: int
) -> None:
    magic, codec = form
    raw = old(magic, codec, records if codec else records[:1], base)
    theirs = [(r.offset, r.timestamp, r.key, r.value) for r in _LegacyRecordBatchPy(raw, magic)]
    rows, refused = read(raw + new(NEXT))
    assert not refused
    assert rows[:-1] == [(at, -1 if time is None else time, key, value) for at, time, key, value in theirs]
    assert rows[-1][0] == NEXT, "a later format in the same answer is read, too"


@st.composite
def hostile(draw: st.DrawFn) -> bytes:
    """A batch of which some bytes are others, are missing, or come in addition; its checksum is right."""
    magic, codec = draw(st.sampled_from(FORMS))
    raw = bytearray(
        old(magic, codec, [(b"k", bytes(draw(st.sampled_from([0, 9, 3000]))))] * (3 if codec else 1))
    )
    sizes = st.sampled_from([b"\xff" * 4, b"\x7f\xff\xff\xff", b"\x80\0\0\0", bytes(4)])
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(16, len(raw) - 1))
        change = draw(st.binary(min_size=1, max_size=2) | sizes)
        raw[at : at + draw(st.sampled_from([0, len(change)]))] = change
    if draw(st.booleans()):
        del raw[draw(st.integers(26, len(raw))) :]
    return resealed(bytes(raw))


@settings(max_examples=examples(300))
@given(hostile(), st.booleans())
def test_a_hostile_batch_is_read_or_refused_and_the_next_one_is_read(log: bytes, is_last: bool) -> None:
    rows, refused = read(log if is_last else log + new(NEXT))
    if not is_last:
        assert rows[-1][0] == NEXT
    assert all(batch.reason in (Reason.BAD_BATCH, Reason.BATCH_TOO_LARGE) for batch in refused)
    assert all(time >= -(1 << 63) and offset <= NEXT for offset, time, *_ in rows)


@pytest.mark.parametrize("length", range(26, 34))
@pytest.mark.parametrize("magic", [0, 1, 2, 3, 255])
def test_a_batch_that_ends_within_its_head_is_a_dead_letter(magic: int, length: int) -> None:
    """It may be the last of an answer: nothing after it may be read in its place."""
    raw = bytearray(old(1, 1, [(b"k", b"v")])[:length])
    raw[16] = magic
    raw[17] = 1
    _, (refused,) = read(resealed(bytes(raw)))
    assert (refused.first, refused.last, refused.reason) == (0, 0, Reason.BAD_BATCH)
    assert "mend its producer" in refused.detail


def test_an_unknown_format_is_not_inflated() -> None:
    raw = bytearray(new(0))
    raw[16] = 3
    rows, (refused,) = read(resealed(bytes(raw)) + new(NEXT))
    assert refused.reason is Reason.BAD_BATCH
    assert "magic=3 must be 0, 1 or 2" in refused.detail
    assert [row[0] for row in rows] == [0, NEXT]


def test_more_records_than_admitted_are_refused() -> None:
    n = LIMIT.most_records + 1
    rows, (refused,) = read(old(1, 1, [(None, None)] * n) + new(2 * n))
    assert refused.reason is Reason.BATCH_TOO_LARGE
    assert f"or {LIMIT.most_records:,} records (raise fetch.decompressed.max.bytes" in refused.detail
    assert (refused.first, refused.last) == (0, n - 1)
    assert rows[-1][0] == 2 * n


@pytest.mark.parametrize("magic", [0, 1])
def test_offsets_that_do_not_ascend_are_refused(magic: Magic) -> None:
    """Positions are counted by offsets: a record must not lie outside of its batch."""
    builder = LegacyRecordBatchBuilder(magic, 1, 1 << 16)
    for offset in (3, 1, 7):
        assert builder.append(offset, 5, b"k", b"v") is not None
    raw = (2).to_bytes(8, "big") + bytes(builder.build())[8:]
    _, (refused,) = read(raw)
    assert refused.reason is Reason.BAD_BATCH
