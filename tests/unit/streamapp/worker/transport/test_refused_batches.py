"""Batches that are not read: which those are, what stands for them, and how much one fetch inflates."""

from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.codec import gzip_encode, lz4_encode, snappy_encode, zstd_encode
from aiokafka.consumer.fetcher import READ_COMMITTED, PartitionRecords
from aiokafka.record.legacy_records import LegacyRecordBatchBuilder

from benchmarks.chaos.wire import Producer, Record, encode_records, frame_batch
from streamapp.worker.transport.fetched_columns import decode, has_more
from streamapp.worker.transport.runs import ReadAhead, TimeOrder, wanted_of
from topics.errors import Reason
from topics.fetching.batches import HEAD, Limit
from topics.fetching.fetched_records import FetchedRecords

TP = TopicPartition("t", 0)
LIMIT = Limit(1 << 20)
ENCODERS = {1: gzip_encode, 2: snappy_encode, 3: lz4_encode, 4: zstd_encode}


def batch(base: int, n: int, size: int, codec: int = 0, *, count: int | None = None) -> bytes:
    """Return a batch of n records of so many bytes each; `count`: how many its head claims."""
    body = encode_records([Record(b"k", bytes(size), (), 5)] * n)
    body = ENCODERS[codec](body) if codec else body
    return at(base, frame_batch(body, n if count is None else count, (5, 5), Producer(), codec))


def at(base: int, raw: bytes) -> bytes:
    """Return a batch at an offset, which its checksum does not cover."""
    return base.to_bytes(8, "big") + raw[8:]


def fetched(log: bytes, position: int = 0) -> Any:
    return PartitionRecords(TP, FetchedRecords(log), [], position, None, None, True, READ_COMMITTED)


@pytest.mark.parametrize("codec", ENCODERS)
def test_a_bomb_among_good_batches_is_one_record_without_content(codec: int) -> None:
    records = fetched(batch(0, 3, 10, codec) + batch(3, 4, 300_000, codec) + batch(7, 2, 10))
    columns = decode(records, 9, limit=LIMIT)
    assert (list(columns.records.offsets), columns.position) == ([0, 1, 2, 3], 7)
    (bomb,) = columns.refused
    assert (bomb.first, bomb.last, bomb.reason) == (3, 6, Reason.BATCH_TOO_LARGE)
    assert "becomes more than 1,048,576 (raise fetch.decompressed.max.bytes" in bomb.detail
    assert columns.inflated >= LIMIT.most_bytes, "the next batch has a turn of its own"
    assert list(decode(records, 9, limit=LIMIT).records.offsets) == [7, 8]
    assert not has_more(records)


@pytest.mark.parametrize("count", [LIMIT.most_records + 1, (1 << 31) - 1])
def test_a_head_that_claims_too_many_records_is_refused_unread(count: int) -> None:
    log = batch(0, 3, 10, 4, count=count) + batch(3, 1, 10)
    columns = decode(fetched(log), 4, limit=LIMIT)
    (claimed,) = columns.refused
    assert (claimed.reason, claimed.inflated) == (Reason.BATCH_TOO_LARGE, 0)
    assert f"has {count:,} records; at most {LIMIT.most_records:,}" in claimed.detail


def test_as_many_records_as_are_admitted_are_read() -> None:
    n = LIMIT.most_records
    assert len(decode(fetched(batch(0, n, 0, 4)), n, limit=LIMIT).records) == n


def with_headers(base: int, n: int, headers: int, codec: int, tail: bytes = b"") -> bytes:
    """Return a batch of n records of so many empty headers each; `tail`: bytes after the last record."""
    body = encode_records([Record(b"k", b"", [(b"", None)] * headers, 5)] * n) + tail
    return at(base, frame_batch(ENCODERS[codec](body) if codec else body, n, (5, 5), Producer(), codec))


@pytest.mark.parametrize("codec", [0, 4])
@pytest.mark.parametrize("tail", [b"", b"\xff"])
def test_a_batch_with_too_many_headers_is_refused_before_one_is_read(codec: int, tail: bytes) -> None:
    each = LIMIT.most_headers // 2
    records = fetched(
        with_headers(0, 2, each, codec) + with_headers(2, 3, each, codec, tail) + batch(5, 1, 10)
    )
    columns = decode(records, 6, limit=LIMIT)
    assert list(columns.records.offsets) == [0, 1, 2, 5]
    (refused,) = columns.refused
    assert (refused.first, refused.last, refused.reason) == (2, 4, Reason.BATCH_TOO_LARGE)
    assert f"has {3 * each:,} headers; at most {LIMIT.most_headers:,}" in refused.detail
    assert list(map(len, columns.records.headers)) == [each, each, 0, 0]


@pytest.mark.parametrize("codec", [*ENCODERS, 5, 7])
def test_a_batch_that_is_none_of_its_codec_is_put_aside(codec: int) -> None:
    bad = at(2, frame_batch(b"\x00none of it", 3, (5, 5), Producer(), codec))
    columns = decode(fetched(batch(0, 2, 10) + bad + batch(5, 1, 10)), 6, limit=LIMIT)
    assert (list(columns.records.offsets), columns.position) == ([0, 1, 2, 5], 6)
    (refused,) = columns.refused
    assert (refused.first, refused.last, refused.reason) == (2, 4, Reason.BAD_BATCH)
    assert refused.head == bad[: len(refused.head)]


@pytest.mark.parametrize("codec", [0, 4])
def test_records_that_are_none_put_their_batch_aside_and_no_other(codec: int) -> None:
    body = b"\xff" * 40
    bad = at(2, frame_batch(zstd_encode(body) if codec else body, 2, (5, 5), Producer(), codec))
    columns = decode(fetched(batch(0, 2, 10, codec) + bad + batch(4, 2, 10, codec)), 6, limit=LIMIT)
    assert list(columns.records.offsets) == [0, 1, 2, 4, 5]
    assert [(each.first, each.last, each.reason) for each in columns.refused] == [(2, 3, Reason.BAD_BATCH)]


def test_one_that_is_begun_in_the_middle_is_refused_from_there_on() -> None:
    columns = decode(fetched(batch(0, 4, 300_000, 4), 2), 4, limit=LIMIT)
    assert [(each.first, each.last) for each in columns.refused] == [(2, 3)]
    assert list(columns.records.offsets) == [2]


def test_a_bomb_of_an_old_format_is_refused_too() -> None:
    builder = LegacyRecordBatchBuilder(1, 1, 1 << 24)
    for number in range(4):
        assert builder.append(number, 5, b"k", bytes(300_000)) is not None
    columns = decode(fetched(bytes(builder.build())), 4, limit=LIMIT)
    assert [each.reason for each in columns.refused] == [Reason.BATCH_TOO_LARGE]
    assert columns.position == columns.refused[0].last + 1


def test_one_fetch_inflates_no_more_than_a_batch_may_become_and_one_more() -> None:
    log = b"".join(batch(number, 1, 600_000, 4) for number in range(6))
    assert len(log) < 10 * HEAD.size * 6
    records, taken = fetched(log), []
    while has_more(records):
        columns = decode(records, 6, limit=LIMIT)
        assert columns.inflated <= 2 * LIMIT.most_bytes
        taken.append(list(columns.records.offsets))
    assert taken == [[0, 1], [2, 3], [4, 5]]


def test_a_run_hands_out_the_batches_that_its_records_stand_for() -> None:
    ahead = ReadAhead("t", 0, 0)
    log = batch(0, 2, 10) + batch(2, 4, 300_000, 4) + batch(6, 2, 10) + batch(8, 4, 300_000, 4)
    records = fetched(log)
    while has_more(records):
        ahead.add(decode(records, 12, limit=LIMIT))
    first = ahead.take(float("inf"), 3)
    assert (list(first.raw.offsets), list(first.refused), first.position) == ([0, 1, 2], [2], 6)
    second = ahead.take(float("inf"), 10)
    assert (list(second.raw.offsets), list(second.refused), second.position) == ([6, 7, 8], [8], 12)
    third, rest = second.cut(1)
    assert (list(third.raw.offsets), list(third.refused), third.position) == ([6], [], 7)
    ahead.give_back(rest, 1)
    fourth = ahead.take(float("inf"), 10)
    assert (list(fourth.raw.offsets), list(fourth.refused), fourth.position) == ([7, 8], [8], 12)


def test_partitions_together_hold_no_more_than_a_batch_may_become_and_what_one_fetch_brings() -> None:
    """Else each of a hundred partitions would hold one of the largest batches that are read."""
    orders = [
        TimeOrder(n, [("labels", 0), ("t", 0)], skew_ms=0, max_idle_ms=-1, max_records=1000) for n in range(9)
    ]
    log = batch(0, 1, 600_000, 4) + batch(1, 1, 600_000, 4)
    most, handed_out = 0, list[int]()
    while len(handed_out) < 2 * len(orders):
        wanted = [ahead for ahead in wanted_of(orders, LIMIT.most_bytes) if ahead.topic == "t"]
        for ahead in wanted:  # a fetch takes no more when it has become so much
            if ahead.position < 2:
                ahead.add(decode(fetched(log, ahead.position), 2, limit=LIMIT))
                break
        most = max(most, sum(order.inflated for order in orders))
        for order in orders:
            if (run := order.next_run(0.0)) is not None:
                handed_out += list(run.raw.offsets)
    assert most <= 2 * LIMIT.most_bytes
    assert sum(order.inflated for order in orders) == 0


def test_above_the_bound_one_partition_goes_on_and_the_others_wait() -> None:
    orders = [
        TimeOrder(n, [("labels", 0), ("t", 0)], skew_ms=0, max_idle_ms=0, max_records=1000) for n in range(3)
    ]
    log = batch(0, 1, 600_000, 4) + batch(1, 1, 600_000, 4)
    orders[2].topics["t"].add(decode(fetched(log), 2, limit=LIMIT))
    orders[1].topics["t"].add(decode(fetched(batch(0, 1, 10, 4)), 1, limit=LIMIT))
    assert {(ahead.partition, ahead.topic) for ahead in wanted_of(orders, LIMIT.most_bytes)} == {
        (2, "labels"),
        (2, "t"),
    }, "its labels are waited for"
    assert len(wanted_of(orders, 100 * LIMIT.most_bytes)) == 6


STALLED = "labels"


def two_topics(partition: int, *, max_idle_ms: int = 0) -> TimeOrder:
    return TimeOrder(
        partition, [(STALLED, 0), ("t", 0)], skew_ms=0, max_idle_ms=max_idle_ms, max_records=1000
    )


def served(order: TimeOrder, log: bytes, topic: str = "t") -> None:
    """Let a fetch from the position of a topic on bring its next batches."""
    ahead = order.topics[topic]
    end = ahead.position
    records = fetched(log, ahead.position)
    while has_more(records):
        columns = decode(records, None, limit=LIMIT)
        end = columns.position
        order.add(topic, columns)
    ahead.log_end = end


def names(wanted: list[ReadAhead]) -> set[tuple[int, str]]:
    return {(ahead.partition, ahead.topic) for ahead in wanted}


def nothing(order: TimeOrder, topic: str) -> None:
    """Let the broker answer that a topic has no more records."""
    order.topics[topic].log_end = order.topics[topic].position


@pytest.mark.parametrize("max_idle_ms", [0, 3_600_000], ids=["no leader", "a long max.task.idle.ms"])
def test_a_partition_that_waits_for_long_holds_up_no_other(max_idle_ms: int) -> None:
    orders = [two_topics(n, max_idle_ms=max_idle_ms if n == 2 else -1) for n in range(3)]
    stalled, most = orders[2], LIMIT.most_bytes
    log = batch(0, 1, 600_000, 4) + batch(1, 1, 600_000, 4)
    served(stalled, log)
    if max_idle_ms:
        nothing(stalled, STALLED)
    assert names(wanted_of(orders, most, 10.0)) == {(2, STALLED), (2, "t")}
    assert names(wanted_of(orders, most, 11.0)) == {
        (n, topic) for n in range(3) for topic in (STALLED, "t") if (n, topic) != (2, "t")
    }, "it requests what it waits for; its own batches would fill the memory again"
    assert stalled.inflated == 0
    assert stalled.topics["t"].next == 0, "nothing is lost"
    for turn in range(20):
        assert len(wanted_of(orders, most, 12.0 + turn)) == 5
    served(stalled, batch(0, 1, 10), STALLED)
    (again,) = [ahead for ahead in wanted_of(orders, most, 40.0) if ahead.released]
    assert (again.topic, again.partition, again.request_again()) == ("t", 2, 0)
    served(stalled, log)
    runs = []
    for now in (10_000.0, 10_000.0, 20_000.0, 20_000.0):  # the last two are after max.task.idle.ms
        if (run := stalled.next_run(now)) is not None:
            runs += [(run.topic, offset) for offset in run.raw.offsets]
    assert runs == [(STALLED, 0), ("t", 0), ("t", 1)]


def test_all_that_wait_for_long_make_room_at_once() -> None:
    """One after the other, a hundred of them would hold up the others for minutes."""
    orders = [two_topics(n) for n in range(9)]
    for order in orders[1:]:
        served(order, batch(0, 1, 900_000, 4))
    wanted_of(orders, LIMIT.most_bytes, 0.0)
    wanted = names(wanted_of(orders, LIMIT.most_bytes, 1.0))
    assert {(0, "t"), (0, STALLED)} < wanted
    assert sum(order.inflated for order in orders) < LIMIT.most_bytes


def test_a_partition_that_has_released_may_hold_its_batches_longer_until_it_goes_on() -> None:
    """Else it would never have both topics at once, on a machine where each fetch takes long."""
    orders = [two_topics(0), two_topics(1)]
    log = batch(0, 2, 700_000, 4)
    waits, now = [], 0.0
    for _ in range(4):
        served(orders[1], log)
        since = now
        while orders[1].inflated:
            wanted_of(orders, LIMIT.most_bytes, now)
            now += 0.5
        waits.append(now - since)
        orders[1].topics["t"].request_again()
    assert waits == sorted(waits)
    assert waits[-1] >= 4 * waits[0]


def test_a_partition_alone_gives_back_nothing() -> None:
    order = two_topics(0)
    served(order, batch(0, 2, 700_000, 4))
    for now in range(100):
        assert names(wanted_of([order], LIMIT.most_bytes, float(now))) == {(0, STALLED), (0, "t")}
    assert order.inflated


def test_a_run_that_is_not_due_is_no_backlog() -> None:
    """Else the driver would turn without a pause, and would not commit the other partitions."""
    order = two_topics(0)
    served(order, batch(0, 1, 600_000, 4))
    assert not order.has_backlog(0.0)
    nothing(order, STALLED)
    assert order.has_backlog(0.0)
