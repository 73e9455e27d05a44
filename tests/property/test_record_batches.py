"""Fetched batches are read to what aiokafka's own reader makes of them, or end in the same error."""

import cProfile
import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.consumer.fetcher import READ_COMMITTED, PartitionRecords
from aiokafka.errors import CorruptRecordException
from aiokafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from aiokafka.record.legacy_records import LegacyRecordBatchBuilder
from aiokafka.record.util import calc_crc32c
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from streamapp.worker.transport import fetched_columns
from streamapp.worker.transport.fetched_columns import decode, decode_small, has_more
from tests.tiers import examples
from topics.columns.headers import ended_at_nul
from topics.columns.spans import RecordSpans
from topics.fetching.batches import HEAD, Limit, is_skipped
from topics.fetching.fetched_records import FetchedRecords
from topics.fetching.fetcher import Fetcher
from topics.fetching.inflate import SNAPPY
from topics.fetching.old_formats import OldBatch
from topics.fetching.record import Record
from topics.fetching.undecodable import read_tolerantly

TP = TopicPartition("topic", 3)
ATTRIBUTES, CRC, TRANSACTIONAL, CONTROL, APPEND_TIME = 21, 17, 0x10, 0x20, 0x08

MAYBE = st.none() | st.just(b"") | st.binary(max_size=200)
NAMES = st.text(max_size=5) | st.sampled_from(["content-type", "a\0b", "\N{REPLACEMENT CHARACTER}"])
TIMES = st.integers(1_700_000_000_000, 1_700_000_000_100) | st.integers(-(1 << 61), 1 << 61)
RECORDS = st.lists(
    st.tuples(
        st.integers(1, 3) | st.integers(1, 1 << 30),  # offsets from the one before
        TIMES,
        MAYBE,
        MAYBE,
        st.lists(st.tuples(NAMES, MAYBE), max_size=3),
    ),
    min_size=1,
    max_size=12,
)


@dataclass
class Written:
    """A log, and where the next record would be."""

    log: bytes
    end: int


def batch(
    base: int,
    records: Sequence[Any],
    compression: int,
    attributes: int,
    producer: int = -1,
    spoil: Any = None,
) -> bytes:
    """Return a batch with its checksum; `spoil` changes its records, before they are compressed."""
    is_transactional = int(bool(attributes & TRANSACTIONAL))
    builder = DefaultRecordBatchBuilder(2, 0, is_transactional, producer, 0, 0, 1 << 24)
    delta = -1
    for step, *record in records:
        delta = delta + step
        assert builder.append(delta, *record) is not None
    raw = bytearray(builder.build())
    body = bytes(raw[HEAD.size :])
    if spoil is not None:
        body = spoil(body)
    body = ENCODERS[compression](body)
    head = raw[: HEAD.size]
    head[0:8] = base.to_bytes(8, "big")
    head[8:12] = (HEAD.size - 12 + len(body)).to_bytes(4, "big")
    head[ATTRIBUTES : ATTRIBUTES + 2] = (attributes | compression).to_bytes(2, "big")
    return with_crc(bytes(head) + body)


def with_crc(raw: bytes) -> bytes:
    crc: int = calc_crc32c(raw[ATTRIBUTES:])
    return raw[:CRC] + crc.to_bytes(4, "big") + raw[ATTRIBUTES:]


def encoders() -> list[Any]:
    from aiokafka import codec

    return [bytes, codec.gzip_encode, codec.snappy_encode, codec.lz4_encode, codec.zstd_encode]


ENCODERS = encoders()


@st.composite
def logs(draw: st.DrawFn) -> Written:
    """Batches in a row: with gaps, of all compressions, some timed by the broker; or of format v1."""
    log, base = b"", draw(st.integers(0, 1 << 40))
    for _ in range(draw(st.integers(1, 5))):
        records = draw(RECORDS)
        if draw(st.integers(0, 9)) == 0:
            legacy = LegacyRecordBatchBuilder(1, draw(st.sampled_from([0, 1])), 1 << 24)
            for at, (_, _, key, value, _) in enumerate(records):
                assert legacy.append(at, 1_700_000_000_000 + at, key, value) is not None
            raw = bytes(legacy.build())
            log += base.to_bytes(8, "big") + raw[8:]
            base += len(records)
            continue
        compression = draw(st.integers(0, 4)) if draw(st.booleans()) else 0
        attributes = draw(st.sampled_from([0, 0, 0, APPEND_TIME]))
        log += batch(base, records, compression, attributes)
        base += sum(step for step, *_ in records) + draw(st.integers(0, 5))
    return Written(log, base)


def records_of(log: bytes, at: int, *, check: bool = True, aborted: Any = ()) -> Any:
    return PartitionRecords(TP, FetchedRecords(log), list(aborted), at, None, None, check, READ_COMMITTED)


Row = tuple[Any, ...]
REFUSED = "refused"
"""In the place of the timestamp of a batch that cannot be read, which is a row of three cells."""


def read(batch: Any, raw: bytes) -> list[Any]:
    if isinstance(batch, OldBatch):  # tests/property/test_old_formats.py compares it with aiokafka
        return batch.records(1 << 40, 1 << 40)[0]
    try:
        return list(batch)
    except UnicodeDecodeError:
        return list(read_tolerantly(raw))


def first_refused(batch: Any, position: int) -> int:
    """Return the first offset for which a refused batch stands; one of an old format begins with its last."""
    if isinstance(batch, OldBatch):
        return int(min(batch.base_offset, position))
    return int(max(batch.base_offset, position))


def last_refused(batch: Any) -> int:
    """Return the last offset for which a refused batch stands; its head may have a distance below 0."""
    return int(max(batch.base_offset, batch.next_offset - 1))


def theirs(log: bytes, at: int, *, check: bool) -> tuple[list[Row], int] | type[BaseException]:
    """Return what aiokafka reads, batch by batch, and where it goes on; else its error."""
    records = records_of(log, at, check=check)
    rows_read: list[Row] = []
    position = at
    memory = records._records
    try:
        while memory.has_next():
            batch = memory.next_batch()
            if check and not batch.validate_crc():
                raise CorruptRecordException
            if not is_skipped(records, batch):
                try:
                    some = read(batch, log[memory.start : memory.end])
                except Exception:  # noqa: BLE001 - whatever it is: the batch is put aside
                    rows_read.append((first_refused(batch, position), REFUSED, last_refused(batch)))
                    position = batch.next_offset
                    continue
                if some and some[0].offset < position:
                    some = [record for record in some if record.offset >= position]
                rows_read += [
                    (r.offset, r.timestamp, r.key, r.value, tuple(ended_at_nul(r.headers))) for r in some
                ]
            position = batch.next_offset
    except Exception as error:  # noqa: BLE001 - whatever it is
        return type(error)
    return rows_read, position


def ours(log: bytes, at: int, *, check: bool) -> tuple[list[Row], int] | type[BaseException]:
    records = records_of(log, at, check=check)
    rows_read: list[Row] = []
    while True:
        before = records.next_fetch_offset
        try:
            fetched = decode(records, None, 1 << 40)
        except Exception as error:  # noqa: BLE001 - whatever it is
            assert records.next_fetch_offset == before
            return type(error)
        assert fetched.position == records.next_fetch_offset
        refused = deque(fetched.refused)  # in the order of their records; two may begin at one offset
        for row in rows(fetched.records):
            if refused and refused[0].first == row[0]:
                rows_read.append((row[0], REFUSED, refused.popleft().last))
            else:
                rows_read.append(row)
        if not has_more(records):
            return rows_read, fetched.position


def rows(spans: RecordSpans) -> list[Row]:
    headers = [tuple(pairs) for pairs in spans.headers]
    return list(zip(spans.offsets, spans.timestamps, spans.keys, spans.values, headers, strict=True))


@settings(max_examples=examples(200))
@given(logs(), st.integers(0, 1 << 31))
def test_sound_batches_are_read_as_aiokafka_reads_them(written: Written, behind: int) -> None:
    at = max(written.end - behind, 0) if behind % 2 else 0
    read = theirs(written.log, at, check=True)
    assert isinstance(read, tuple)
    assert ours(written.log, at, check=True) == read


@settings(max_examples=examples(200))
@given(st.lists(logs(), min_size=2, max_size=4), st.integers(0, 1 << 31), st.data())
def test_small_fetches_are_read_together_as_each_alone(
    fetched: list[Written], behind: int, data: st.DataObject
) -> None:
    """Also if a byte of one is damaged, or its end is cut off; a log that is not plain is left untouched."""
    texts = [written.log for written in fetched]
    number = data.draw(st.integers(0, len(texts) - 1))
    if data.draw(st.booleans()):
        spoiled = bytearray(texts[number])
        spoiled[data.draw(st.integers(0, len(spoiled) - 1))] ^= 1 << data.draw(st.integers(0, 7))
        texts[number] = bytes(spoiled)[: data.draw(st.sampled_from([len(spoiled), len(spoiled) - 1]))]
    places = [max(written.end - behind, 0) if behind % 2 else 0 for written in fetched]
    all_records = [records_of(text, at) for text, at in zip(texts, places, strict=True)]
    together = decode_small([(records, 7) for records in all_records])
    for text, at, records, columns in zip(texts, places, all_records, together, strict=True):
        if columns is None:
            assert (records._records.end, records.next_fetch_offset) == (0, at)
        else:
            assert (rows(columns.records), columns.position) == theirs(text, at, check=True)
            assert rows(columns.records.apart()) == rows(columns.records)
            assert (columns.log_end, columns.refused, columns.inflated) == (7, (), 0)
            assert (has_more(records), records.next_fetch_offset) == (False, columns.position)


@given(st.lists(RECORDS, min_size=2, max_size=4))
def test_plain_fetches_are_read_together(written: list[Any]) -> None:
    fetched = [(records_of(batch(9, records, 0, 0), 0), None) for records in written]
    assert None not in decode_small(fetched)


@settings(max_examples=examples(200))
@given(logs())
def test_the_kernel_reads_them_itself(written: Written) -> None:
    """Else aiokafka would be compared with itself."""
    records = records_of(written.log, 0)
    memory, columns_read = records._records, fetched_columns._Found(written.log, Limit())
    while memory.has_next():
        batch = memory.next_batch()
        if isinstance(batch, DefaultRecordBatch):
            columns_read.add(batch, memory.start, memory.end, 0)
    read = columns_read._by_kernel(columns_read._batches) if columns_read._batches else RecordSpans.none()
    assert read is not None or _is_far_apart(written)
    if read is not None:
        assert len(read) == columns_read.count


def _is_far_apart(written: Written) -> bool:
    """Whether a timestamp takes ten bytes, because it is far from the first one: those the kernel leaves."""
    read = theirs(written.log, 0, check=True)
    assert isinstance(read, tuple)
    times: list[int] = [row[1] for row in read[0]]
    return max(times) - min(times) >= 1 << 62


@st.composite
def spoilt(draw: st.DrawFn) -> bytes:
    """A log of which some bytes are others, are missing, or come twice; its checksums may be right all the
    same."""
    base, log = 0, b""

    def spoil(body: bytes) -> bytes:
        changed = bytearray(body)
        for _ in range(draw(st.integers(0, 3))):
            at = draw(st.integers(0, max(len(changed) - 1, 0)))
            new = draw(
                st.binary(max_size=3) | st.sampled_from([b"\xff" * 9 + b"\x01", b"\xff" * 4 + b"\x0f"])
            )
            changed[at : at + draw(st.integers(0, 3))] = new
        return bytes(changed)

    for _ in range(draw(st.integers(1, 3))):
        records = draw(RECORDS)
        raw = bytearray(batch(base, records, draw(st.integers(0, 4)), 0, spoil=spoil))
        if draw(st.booleans()):
            at = draw(st.integers(12, len(raw) - 1))
            raw[at] = draw(st.integers(0, 255))
        log += with_crc(bytes(raw)) if draw(st.booleans()) else bytes(raw)
        base += sum(step for step, *_ in records)
    return log[: draw(st.integers(0, len(log)))] if draw(st.integers(0, 3)) == 0 else log


UNKNOWN_FORMAT = (
    b"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00R\xff\xff\xff\xff\xd0\xa1}\x0c5\x00\x04\x00\x00\x00\x01"
    b"\xff\xff\xf6\x89e\x96\\8\xff\xff\xf6\x89e\x96\\8\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00\x00\x00"
    b"\x00\x00\x00\x01(\xb5/\xfd \x18\xc1\x00\x00(\x00\x00\x02\x00\x00\x02\x18\xf4\x84\x9e\xad\xc3\xff\xff"
    b"\xff\xff\x0f=\xf3\x87\x9c\xa4\x00"
)
"""A batch whose byte of the format is 0xd0."""


@settings(max_examples=examples(400), phases=[Phase.explicit, Phase.generate])
@example(log=UNKNOWN_FORMAT, at=10, check=False)
@given(spoilt(), st.integers(0, 20), st.booleans())
def test_spoilt_batches_end_in_the_same_records_or_the_same_error(log: bytes, at: int, check: bool) -> None:
    assert ours(log, at, check=check) == theirs(log, at, check=check)


def taken(log: bytes, at: int, *, spans: bool) -> tuple[list[Any], int, list[Any]]:
    """Return the records and refused batches that a fetcher reads, where it goes on, and its failures."""
    fetcher, place = Fetcher({"bootstrap.servers": "none:1"}, spans=spans), ("topic", 3)
    fetcher.assign({place: at})
    fetcher._came(place, fetcher._places[place], 1 << 62, [0, [], -1, log])
    found: list[Any] = []
    while part := fetcher.take(10).get(place):
        for each in part.records:
            if isinstance(each, RecordSpans):
                found += rows(each)
            else:
                found.append((*each[:4], tuple(each.headers)) if isinstance(each, Record) else each)
    return found, fetcher.position(place), fetcher.failures()


@settings(max_examples=examples(200), phases=[Phase.explicit, Phase.generate])
@given(logs().map(lambda written: written.log) | spoilt(), st.integers(0, 20))
def test_a_fetcher_reads_the_same_records_with_and_without_an_object_for_each(log: bytes, at: int) -> None:
    try:
        expected = taken(log, at, spans=False)
    except CorruptRecordException:  # the batch is too short for any format
        with pytest.raises(CorruptRecordException):
            taken(log, at, spans=True)
    else:
        assert taken(log, at, spans=True) == expected


@pytest.mark.parametrize("compression", range(5))
def test_any_wrong_bit_of_a_large_batch_is_noticed(compression: int) -> None:
    """Of those our own kernel verifies the checksum; a few hundred bits do."""
    rng = random.Random(compression)
    log = batch(0, [(1, 5, b"k%d" % i, rng.randbytes(100), []) for i in range(60)], compression, 0)
    assert len(log) > fetched_columns._LARGE
    read = ours(log, 0, check=True)
    assert read == theirs(log, 0, check=True)
    assert len(read[0]) == 60  # type: ignore[index]
    for bit in rng.sample(range(8 * CRC, 8 * len(log)), 200):
        damaged = bytearray(log)
        damaged[bit // 8] ^= 1 << bit % 8
        assert ours(bytes(damaged), 0, check=True) is CorruptRecordException


def test_many_small_batches_are_found_in_one_call() -> None:
    """Those of a producer of a trickle; each in Python, they are most of a fetch's cost."""

    def calls(batches: int) -> int:
        log = b"".join(batch(number, [(1, 5, b"k", b"v", [])], 0, 0) for number in range(batches))
        records, profile = records_of(log, 0), cProfile.Profile()
        with profile:
            assert len(decode(records, None).records) == batches
        return sum(entry.callcount for entry in profile.getstats())

    calls(2)  # the kernel is loaded, or compiled
    assert calls(200) == calls(2)


def test_the_search_for_plain_batches_goes_on_where_its_table_was_full(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fetched_columns, "MOST_FOUND", 3)
    log = b"".join(batch(number, [(1, 5, b"k", b"%d" % number, [])], 0, 0) for number in range(8))
    assert ours(log, 2, check=True) == theirs(log, 2, check=True)
    fetched = decode(records_of(log, 0), None, 5)
    assert len(fetched.records) == 5, "no more than were wanted"


@given(st.binary(max_size=200))
def test_bytes_that_are_no_batches(log: bytes) -> None:
    assert ours(log, 0, check=False) == theirs(log, 0, check=False)


@pytest.mark.parametrize("compression", range(5))
def test_a_batch_without_records_is_passed(compression: int) -> None:
    """Compaction leaves the head of one."""
    raw = batch(5, [(3, 1, b"k", b"v", [])], compression, 0)
    empty = bytearray(raw[: HEAD.size] + ENCODERS[compression](b""))
    empty[8:12] = (len(empty) - 12).to_bytes(4, "big")
    empty[HEAD.size - 4 : HEAD.size] = bytes(4)
    log = with_crc(bytes(empty)) + batch(8, [(1, 1, b"k", b"v", [])], compression, 0)
    read = ours(log, 5, check=True)
    assert read == ([(8, 1, b"k", b"v", ())], 9)
    if compression != SNAPPY:  # aiokafka takes a head of snappy without blocks for a block
        assert read == theirs(log, 5, check=True)


def test_a_batch_that_is_not_what_its_checksum_says_is_an_error_others_are_put_aside() -> None:
    record: Row = (1, 1, b"k", b"v", [])
    no_gzip = bytearray(batch(0, [record], 1, 0))
    no_gzip[HEAD.size] ^= 1
    damaged = bytearray(batch(1, [record], 0, 0))
    damaged[-1] ^= 1
    log = with_crc(bytes(no_gzip)) + bytes(damaged)
    assert ours(log, 0, check=True) is theirs(log, 0, check=True) is CorruptRecordException
    assert ours(log[: len(no_gzip)], 0, check=True) == ([(0, REFUSED, 0)], 1)
