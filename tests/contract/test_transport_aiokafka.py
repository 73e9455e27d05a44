"""What the driver leans on in aiokafka: its fetcher's buffers and positions, its group coordinator."""

import inspect
import re
import weakref
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.client import AIOKafkaClient
from aiokafka.cluster import ClusterMetadata
from aiokafka.codec import lz4_encode
from aiokafka.conn import AIOKafkaConnection
from aiokafka.consumer import fetcher
from aiokafka.consumer.consumer import AIOKafkaConsumer
from aiokafka.consumer.fetcher import READ_COMMITTED, FetchResult, PartitionRecords
from aiokafka.consumer.group_coordinator import GroupCoordinator
from aiokafka.consumer.subscription_state import Subscription, SubscriptionState, TopicPartitionState
from aiokafka.protocol.fetch import FetchRequest, FetchRequest_v4, FetchRequest_v7, FetchRequest_v11
from aiokafka.protocol.group import HeartbeatRequest, JoinGroupRequest
from aiokafka.record.default_records import (
    DefaultRecordBatch,
    DefaultRecordBatchBuilder,
    _DefaultRecordBatchPy,
)
from aiokafka.record.util import calc_crc32c
from aiokafka.structs import OffsetAndMetadata

from streamapp.worker.transport.fetch_sessions import SessionRequest
from streamapp.worker.transport.fetched_columns import decode, has_more
from topics.codecs.limits import Limits
from topics.codecs.screening import screen
from topics.columns.headers import UNREADABLE
from topics.columns.records import RawRecords
from topics.fetching.fetched_records import FetchedRecords

TP = TopicPartition("topic", 3)
TRANSACTIONAL, CONTROL = 0x10, 0x20


def source(thing: Any) -> str:
    return re.sub(r"\s+", " ", inspect.getsource(thing))


def batch(
    base: int,
    offsets: Iterable[int],
    *,
    producer: int = -1,
    attributes: int = 0,
    key: bytes | None = b"k",
    compression: int = 0,
) -> bytes:
    """A v2 record batch with records at `offsets`, which may leave holes, whose last delta is that of the
    last."""
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=compression,
        is_transactional=int(bool(attributes & TRANSACTIONAL)),
        producer_id=producer,
        producer_epoch=0 if producer >= 0 else -1,
        base_sequence=0 if producer >= 0 else -1,
        batch_size=1 << 20,
    )
    last = 0
    for offset in offsets:
        header = [("h", b"1")] if offset % 2 else []
        assert builder.append(offset - base, 1000 + offset, key, f"v{offset}".encode(), header) is not None
        last = offset - base
    raw = bytearray(builder.build())
    raw[0:8] = base.to_bytes(8, "big", signed=True)
    raw[21:23] = (int.from_bytes(raw[21:23], "big") | attributes).to_bytes(2, "big")
    raw[23:27] = last.to_bytes(4, "big")
    return bytes(raw)


def abort_marker(offset: int, producer: int) -> bytes:
    return batch(
        offset, [offset], producer=producer, attributes=CONTROL | TRANSACTIONAL, key=b"\x00\x00\x00\x00"
    )


def commit_marker(offset: int, producer: int) -> bytes:
    return batch(
        offset, [offset], producer=producer, attributes=CONTROL | TRANSACTIONAL, key=b"\x00\x00\x00\x01"
    )


def partition_records(log: bytes, at: int = 0, aborted: list[tuple[int, int]] | None = None) -> Any:
    return PartitionRecords(TP, FetchedRecords(log), aborted or [], at, None, None, False, READ_COMMITTED)


LOGS: dict[str, tuple[bytes, int, list[tuple[int, int]]]] = {
    "plain": (batch(0, range(5)) + batch(5, range(5, 9)), 0, []),
    "from the middle of a batch": (batch(0, range(10)), 4, []),
    "compaction holes": (batch(0, [0, 3, 7]) + batch(20, [21, 25]), 0, []),
    "a committed transaction": (
        batch(0, range(3), producer=7, attributes=TRANSACTIONAL) + commit_marker(3, 7) + batch(4, [4]),
        0,
        [],
    ),
    "an aborted transaction": (
        batch(0, range(3), producer=7, attributes=TRANSACTIONAL) + abort_marker(3, 7) + batch(4, [4]),
        0,
        [(7, 0)],
    ),
    "aborted and committed, interleaved": (
        batch(0, range(2), producer=7, attributes=TRANSACTIONAL)
        + batch(2, [2, 3], producer=8, attributes=TRANSACTIONAL)
        + abort_marker(4, 7)
        + commit_marker(5, 8)
        + batch(6, [6], producer=7, attributes=TRANSACTIONAL)
        + commit_marker(7, 7),
        0,
        [(7, 0)],
    ),
    "only aborted": (
        batch(5, range(5, 8), producer=7, attributes=TRANSACTIONAL) + abort_marker(8, 7),
        5,
        [(7, 5)],
    ),
    "compressed": (batch(0, range(50), compression=3), 10, []),
    "nothing": (b"", 12, []),
}


EXPECTED = {  # name -> offsets, position afterwards
    "plain": ([*range(9)], 9),
    "from the middle of a batch": ([*range(4, 10)], 10),
    "compaction holes": ([0, 3, 7, 21, 25], 26),
    "a committed transaction": ([0, 1, 2, 4], 5),
    "an aborted transaction": ([4], 5),
    "aborted and committed, interleaved": ([2, 3, 6], 8),
    "only aborted": ([], 9),
    "compressed": ([*range(10, 50)], 50),
    "nothing": ([], 12),
}


@pytest.mark.parametrize("name", LOGS)
def test_our_columns_hold_what_aiokafkas_own_iterator_yields(name: str) -> None:
    log, at, aborted = LOGS[name]
    theirs = partition_records(log, at, aborted)
    records = list(theirs)
    ours = partition_records(log, at, aborted)
    columns = decode(ours, 99)
    assert (list(columns.records.offsets), columns.position) == EXPECTED[name]
    assert columns.records.offsets == [record.offset for record in records]
    assert columns.records.timestamps == [record.timestamp for record in records]
    assert columns.records.keys == [record.key for record in records]
    assert columns.records.values == [record.value for record in records]
    assert [tuple(headers) for headers in columns.records.headers] == [record.headers for record in records]
    assert columns.position == ours.next_fetch_offset == theirs.next_fetch_offset
    assert (columns.log_end, columns.records.value_bytes) == (
        99,
        sum(len(record.value) for record in records),
    )


def test_many_records_are_taken_in_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamapp.worker.transport.fetched_columns.MAX_RECORDS", 4)
    records = partition_records(
        b"".join(batch(at, range(at, at + 3), compression=3) for at in range(0, 12, 3))
    )
    first = decode(records, None)
    assert (list(first.records.offsets), first.position, has_more(records)) == ([*range(6)], 6, True)
    second = decode(records, None)
    assert (list(second.records.offsets), second.position, has_more(records)) == ([*range(6, 12)], 12, False)


def test_the_compiled_decoder_is_in_use() -> None:
    assert DefaultRecordBatch.__module__.startswith("aiokafka.record._crecords"), (
        "without it a record costs many times as much; is the wheel for this platform there?"
    )


def test_fetched_bytes_are_given_back_when_their_records_are() -> None:
    """aiokafka's iterator over records refers to them, and they to it: only the collector would end both."""
    records = partition_records(batch(0, range(5)))
    fetched = weakref.ref(records._records)
    columns = decode(records, None)
    del records
    assert fetched() is None
    assert list(columns.records.offsets) == [*range(5)]


def test_a_damaged_batch_is_refused() -> None:
    log = bytearray(batch(0, range(5)))
    log[-1] ^= 1
    records = PartitionRecords(TP, FetchedRecords(bytes(log)), [], 0, None, None, True, READ_COMMITTED)
    with pytest.raises(fetcher.Errors.CorruptRecordException, match="Invalid CRC"):
        decode(records, None)


@pytest.mark.parametrize("compression", [0, 3])
def test_a_header_name_that_is_not_utf8_is_the_matter_of_its_record_alone(compression: int) -> None:
    log = undecodable(3, 10, compression) + batch(10, [10]) + undecodable(11, 14, compression)
    with pytest.raises(UnicodeDecodeError):
        list(partition_records(log))
    records = PartitionRecords(TP, FetchedRecords(log), [], 5, None, None, True, READ_COMMITTED)
    columns = decode(records, 99)
    assert (list(columns.records.offsets), columns.position) == ([*range(5, 14)], 14)
    assert columns.records.timestamps == [1000 + offset for offset in range(5, 14)]
    assert columns.records.values == [f"v{offset}".encode() for offset in range(5, 14)]
    assert columns.records.keys == [None, b"k", None, b"k", None, b"k", None, b"k", None]
    bad = list(UNREADABLE)
    assert [list(headers) for headers in columns.records.headers] == [[], bad, [], [], [], [], [], bad, []]
    raw = replace(RawRecords.over("t", 3, columns.records), keys=[b"k"] * 9)
    assert [(bad.record, bad.reason) for bad in screen(raw, Limits())[1]] == [
        (1, "bad-header"),
        (7, "bad-header"),
    ]


def undecodable(base: int, end: int, compression: int) -> bytes:
    """A sound batch whose records 6 and 12 have a header name that no client should send."""
    rest = range(base, end)
    builder = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, 1 << 20)
    for offset in rest:
        headers = [("ab", b"1"), ("é", None)] if offset in (6, 12) else []
        key = None if offset % 2 else b"k"
        assert builder.append(offset - base, 1000 + offset, key, f"v{offset}".encode(), headers) is not None
    raw = bytes(builder.build())
    records = raw[61:].replace(b"\x04ab", b"\x04\xffb")
    assert records != raw[61:]
    if compression:
        records = lz4_encode(records)
    head = bytearray(raw[:61])
    head[0:8] = base.to_bytes(8, "big")
    head[8:12] = (61 - 12 + len(records)).to_bytes(4, "big")
    head[21:23] = compression.to_bytes(2, "big")
    head[17:21] = calc_crc32c(bytes(head[21:]) + records).to_bytes(4, "big")
    return bytes(head) + records


def test_the_fetcher_reads_through_the_name_we_replace() -> None:
    assert "records = MemoryRecords(part_data[-1])" in source(fetcher.Fetcher._proc_fetch_request)
    reader = source(_DefaultRecordBatchPy)
    for attribute in ("_maybe_uncompress(self)", "self._buffer", "self._pos", "self._num_records"):
        assert attribute in reader


def test_the_fetcher_keeps_what_was_fetched_where_we_take_it() -> None:
    init = source(fetcher.Fetcher.__init__)
    for attribute in (
        "_records = collections.OrderedDict()",
        "_fetch_waiters = set()",
        "_prefetch_backoff",
        "_default_reset_strategy",
        "_fetch_max_wait_ms",
        "_fetch_min_bytes",
        "_subscriptions",
        "_wait_consume_future",
        "_pending_tasks = set()",
        "_in_flight = set()",
        "_closed",
    ):
        assert f"self.{attribute}" in init
    result = source(FetchResult)
    assert "self._partition_records = partition_records" in result
    assert "position != self._partition_records.next_fetch_offset" in result, "what check_assignment compares"
    fetched = source(fetcher.Fetcher.fetched_records)
    assert "self._notify(self._wait_consume_future)" in fetched, "how taking records lets it fetch on"
    assert "del self._records[tp]" in fetched


def test_how_long_a_fetch_waits_is_read_when_it_is_planned() -> None:
    plan = source(fetcher.Fetcher._get_actions_per_node)
    assert "FetchRequest( self._fetch_max_wait_ms, self._fetch_min_bytes," in plan
    assert "backoff = self._fetcher_timeout" in plan
    assert "elif node_id in self._in_flight: # We have in-flight fetches to this node continue" in plan


def test_the_routine_that_we_stand_in_for() -> None:
    routine = source(fetcher.Fetcher._fetch_requests_routine)
    for part in (
        "self._get_actions_per_node(assignment)",
        "self._proc_fetch_request(assignment, node_id, request)",
        "self._update_fetch_positions(assignment, node_id, tps)",
        "self._pending_tasks.add(task) self._in_flight.add(node_id)",
        "other_futs = [self._wait_consume_future, assignment.unassign_future]",
        "fut = self._client.force_metadata_update()",
        "timeout=timeout, return_when=asyncio.FIRST_COMPLETED",
        "self._pending_tasks.clear() self._records.clear()",
    ):
        assert part in routine
    assert "self._fetch_task = create_task(self._fetch_requests_routine())" in source(
        fetcher.Fetcher.__init__
    )
    assert "return self._fetch_task" in source(fetcher.Fetcher.error_future.fget)
    close = source(fetcher.Fetcher.close)
    assert "self._closed = True self._fetch_task.cancel()" in close
    assert "for x in self._pending_tasks: x.cancel() await x" in close, "the set must not change meanwhile"
    assert "_wait_consume_future" in source(fetcher.Fetcher.seek_to) + source(fetcher.Fetcher.fetched_records)


def test_a_position_out_of_range_becomes_an_error_of_its_partition() -> None:
    text = source(fetcher.Fetcher._proc_fetch_request)
    assert "err = Errors.OffsetOutOfRangeError({tp: fetch_offset}) self._set_error(tp, err)" in text
    assert "self._error = error" in source(fetcher.FetchError)


def test_a_partition_without_position_becomes_an_error_that_a_seek_takes_away() -> None:
    text = source(fetcher.Fetcher._update_fetch_positions)
    assert "err = Errors.NoOffsetForPartitionError(tp) self._set_error(tp, err)" in text
    assert "if tp in self._records: del self._records[tp]" in source(fetcher.Fetcher.seek_to)


def test_every_fetch_goes_through_the_clients_send_and_its_answer_names_partitions_and_error_codes() -> None:
    text = source(fetcher.Fetcher._proc_fetch_request)
    assert "response = await self._client.send(node_id, request) except Errors.KafkaError" in text
    assert "for topic, partitions in request.topics: for partition, offset, _ in partitions:" in text
    assert (
        "for topic, partitions in response.topics: for partition, error_code, highwater, *part_data in"
        in text
    )
    assert "invalid_metadata = True" in source(fetcher.Fetcher._get_actions_per_node)
    assert "-1 unavailable, None if unknown" in source(ClusterMetadata.leader_for_partition)


def test_a_member_that_is_unknown_forgets_its_id_and_joins_through_the_method_we_replace() -> None:
    assert "self.member_id = JoinGroupRequest.UNKNOWN_MEMBER_ID" in source(GroupCoordinator.reset_generation)
    assert JoinGroupRequest.UNKNOWN_MEMBER_ID == ""
    assert "success = await self._do_rejoin_group(subscription)" in source(
        GroupCoordinator.ensure_active_group
    )
    assert "_closing" in source(GroupCoordinator.__init__)
    assert "instance" not in source(HeartbeatRequest), (
        "with the name in it the broker would say who is fenced"
    )


def test_seeking_drops_what_was_fetched_elsewhere() -> None:
    text = source(fetcher.Fetcher.seek_to)
    assert "self._subscriptions.seek(tp, offset)" in text
    assert "del self._records[tp]" in text


def test_positions_and_log_ends_are_where_we_read_them() -> None:
    text = source(TopicPartitionState)
    for name in ("has_valid_position", "position", "consumed_to", "self.lso", "self.highwater"):
        assert name in text
    for name in ("fetch_context", "reassignment_in_progress", "subscription", "is_assigned"):
        assert hasattr(SubscriptionState, name)


def test_the_consumer_takes_our_fetch_settings_before_it_starts() -> None:
    init, start = source(AIOKafkaConsumer.__init__), source(AIOKafkaConsumer.start)
    for name in (
        "fetch_min_bytes",
        "fetch_max_wait_ms",
        "fetch_max_bytes",
        "max_partition_fetch_bytes",
        "isolation_level",
    ):
        assert f"self._{name} = {name}" in init
        assert f"{name}=self._{name}" in start, "else setting the attribute after construction does nothing"


def test_the_group_coordinator_commits_with_the_generation_it_has_at_that_moment() -> None:
    commit = source(GroupCoordinator._do_commit_offsets)
    assert "self.generation, self.member_id" in commit, "why we compare the membership before each attempt"
    assert list(inspect.signature(GroupCoordinator._do_commit_offsets).parameters) == [
        "self",
        "assignment",
        "offsets",
    ]
    assert not re.search(r"\bassignment\.", commit), "we pass None for it"
    init = source(GroupCoordinator.__init__)
    for attribute in (
        "_commit_lock",
        "_retry_backoff_ms",
        "_group_instance_id",
        "member_id",
        "coordinator_id",
    ):
        assert attribute in init + source(GroupCoordinator.coordinator_dead)
    assert OffsetAndMetadata(5, "").offset == 5


def test_errors_of_the_group_reach_us_when_we_ask() -> None:
    assert "self._pending_exception = exc" in source(GroupCoordinator._push_error_to_user)
    assert "raise exc" in source(GroupCoordinator.check_errors)
    assert "await self._push_error_to_user(exc)" in source(
        GroupCoordinator._GroupCoordinator__coordination_routine
    )


def test_a_static_member_does_not_leave_the_group_when_it_stops() -> None:
    assert "self._group_instance_id is None" in source(GroupCoordinator._maybe_leave_group)


def test_our_callbacks_of_a_rebalance_are_awaited_before_the_group_is_joined_again() -> None:
    prepare = source(GroupCoordinator._on_join_prepare)
    assert "on_partitions_revoked(revoked) if asyncio.iscoroutine(res): await res" in prepare
    ensure = source(GroupCoordinator.ensure_active_group)
    assert ensure.index("_on_join_prepare") < ensure.index("_do_rejoin_group")


def test_an_assignment_can_be_kept_from_a_member_before_it_is_taken_in() -> None:
    join = source(GroupCoordinator._do_rejoin_group)
    assert "await self._on_join_complete( self.generation, self.member_id, protocol," in join
    complete = source(GroupCoordinator._on_join_complete)
    assert "self._subscription.assign_from_subscribed(assignment.partitions())" in complete
    routine = source(GroupCoordinator._GroupCoordinator__coordination_routine)
    assert "if new_assignment is None or not new_assignment.active: continue" in routine, "it joins once more"
    assert "self._coordination_task = " in source(GroupCoordinator.__init__)
    assert "raise kafka_exc" in source(GroupCoordinator._coordination_routine), "why the task is looked at"


def test_a_fetch_that_was_limited_is_sent_as_limited() -> None:
    request = FetchRequest(500, 1, 1 << 20, 1, [("a", [(0, 7, 100), (1, 8, 100)])])
    request._topics, request._max_wait_ms = [("a", [(1, 8, 100)])], 5
    assert request.topics == [("a", [(1, 8, 100)])]
    assert request.build(FetchRequest_v4).encode() == (
        FetchRequest(5, 1, 1 << 20, 1, [("a", [(1, 8, 100)])]).build(FetchRequest_v4).encode()
    )


def test_a_request_of_a_session_is_the_whole_request_where_there_are_none() -> None:
    whole = FetchRequest(500, 1, 1 << 20, 1, [("a", [(0, 7, 100), (1, 8, 100)])], "rack")
    request = SessionRequest(whole, 41, 3, [("a", [(1, 8, 100)])], [("b", [2])])
    assert request.build(FetchRequest_v4).encode() == whole.build(FetchRequest_v4).encode()
    for version in (FetchRequest_v7, FetchRequest_v11):
        alone = FetchRequest(500, 1, 1 << 20, 1, [("a", [(1, 8, 100)])], "rack").build(version)
        alone.session_id, alone.session_epoch, alone.forgotten_topics_data = 41, 3, [("b", [2])]
        assert request.build(version).encode() == alone.encode()
    assert "session_id" in FetchRequest_v7.RESPONSE_TYPE.SCHEMA.names
    assert "error_code" in FetchRequest_v7.RESPONSE_TYPE.SCHEMA.names


def test_an_answer_of_a_partition_that_was_sought_meanwhile_is_dropped() -> None:
    text = source(fetcher.Fetcher._proc_fetch_request)
    assert "if not tp_state.has_valid_position or tp_state.position != fetch_offset:" in text
    assert "if not assignment.active:" in text
    assert "self._assignment = Assignment(" in source(Subscription._assign), "each is another object"


def test_connections_are_opened_where_their_answers_are_bounded() -> None:
    calls = [name for name, call in vars(AIOKafkaClient).items() if "create_conn(" in _text(call)]
    assert calls == ["bootstrap", "_get_conn"]
    assert "self._read(self_ref)" in source(AIOKafkaConnection._create_reader_task)
    assert "error.__cause__ = exc" in source(AIOKafkaConnection.close)


def _text(call: object) -> str:
    return source(call) if callable(call) else ""
