"""Taking what aiokafka fetched: nothing that one look at its buffers found is forgotten at the next."""

import asyncio
import math
from types import MethodType, SimpleNamespace
from typing import Any, cast

import pytest
from aiokafka import TopicPartition
from aiokafka.consumer.fetcher import Fetcher as AiokafkaFetcher
from aiokafka.consumer.fetcher import FetchError, FetchResult, PartitionRecords
from aiokafka.consumer.subscription_state import SubscriptionState
from aiokafka.errors import KafkaError, NoOffsetForPartitionError, OffsetOutOfRangeError
from aiokafka.record._crc32c import crc as calc_crc32c_py
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from faust.types import TP

from streamapp.worker.driver.thread import ConsumerThread, keep_waiting_results
from topics.fetching.fetched_records import FetchedRecords

ASTRAY, BUSY = TopicPartition("topic", 0), TopicPartition("topic", 1)


class Fetcher:
    """aiokafka's buffers over its own subscription state; records of BUSY come when somebody waits."""

    def __init__(self) -> None:
        self._subscriptions = SubscriptionState()
        self._subscriptions.subscribe({"topic"})
        self._subscriptions.assign_from_subscribed({ASTRAY, BUSY})
        self._records: dict[TopicPartition, Any] = {}
        self._closed = False
        self.error_future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._wait_consume_future: Any = object()
        self.woken = 0  # the fetcher's loop was, to plan anew
        for tp, at in ((ASTRAY, 3), (BUSY, 0)):
            self.seek_to(tp, at)

    def seek_to(self, tp: TopicPartition, offset: int) -> None:
        self._subscriptions.seek(tp, offset)

    def _create_fetch_waiter(self) -> asyncio.Future[None]:
        builder = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, 1 << 20)
        builder.append(0, 1000, b"k", b"v", [])
        records = PartitionRecords(
            BUSY, FetchedRecords(bytes(builder.build())), [], 0, None, None, False, "read_uncommitted"
        )
        self._records[BUSY] = FetchResult(
            BUSY,
            assignment=self._subscriptions.subscription.assignment,
            partition_records=records,
            backoff=0,
        )
        waiter = asyncio.get_running_loop().create_future()
        waiter.set_result(None)
        return waiter

    def _notify(self, future: Any) -> None:
        self.woken += future is self._wait_consume_future


def consumer_thread(monkeypatch: pytest.MonkeyPatch) -> ConsumerThread:
    """Return one that takes from `Fetcher`."""
    consumer = SimpleNamespace(
        _fetcher=Fetcher(), _closed=False, _coordinator=SimpleNamespace(check_errors=lambda: None)
    )
    monkeypatch.setattr(ConsumerThread, "_ensure_consumer", lambda self: consumer)
    thread = ConsumerThread.__new__(ConsumerThread)
    thread.consumer = cast("Any", SimpleNamespace(flow_active=True))
    unserved = {TP(*ASTRAY): "no leader is known"}
    thread.partition_health = cast("Any", SimpleNamespace(unserved=lambda wanted: unserved))
    return thread


def test_a_second_error_of_a_partition_leaves_the_result_that_waits() -> None:
    """Of aiokafka's own method it would be an assertion, which ends the fetcher."""
    fetcher = cast("Any", SimpleNamespace(_records={}, _prefetch_backoff=0.0))
    fetcher._set_error = MethodType(AiokafkaFetcher._set_error, fetcher)
    keep_waiting_results(fetcher)
    first, second = NoOffsetForPartitionError(BUSY), NoOffsetForPartitionError(BUSY)
    fetcher._set_error(BUSY, first)
    fetcher._set_error(BUSY, second)
    assert fetcher._records[BUSY]._error is first


def test_a_position_that_was_sought_back_is_told_with_the_records_that_came_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story() -> None:
        thread = consumer_thread(monkeypatch)
        fetched = await thread._take({TP(*ASTRAY): 1, TP(*BUSY): 0}, 10.0)
        assert fetched.columns[TP(*BUSY)].records.values == [b"v"]
        assert fetched.sought_back == [ASTRAY]
        assert fetched.unserved == {ASTRAY: "no leader is known"}

    asyncio.run(story())


def test_an_error_that_ended_the_fetches_ends_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """aiokafka logs it and fetches nothing from then on."""

    async def story() -> None:
        thread = consumer_thread(monkeypatch)
        fetches = thread._ensure_consumer()._fetcher.error_future
        fetches.set_exception(KafkaError("Unexpected error during data retrieval"))
        with pytest.raises(KafkaError, match="Unexpected error during data retrieval"):
            await thread._take({TP(*BUSY): 0}, 10.0)

    asyncio.run(story())


@pytest.mark.parametrize("ahead", [True, False])
def test_while_records_are_processed_more_are_fetched_only_if_that_is_wanted(
    monkeypatch: pytest.MonkeyPatch, ahead: bool
) -> None:
    async def story() -> None:
        thread = consumer_thread(monkeypatch)
        fetcher = thread._ensure_consumer()._fetcher
        fetched = await thread._take({TP(*BUSY): 0}, 10.0, (), 0.0, 7.0, ahead=ahead)
        assert fetched.records == 1
        assert thread._not_before == (7.0 if ahead else math.inf)
        woken = fetcher.woken
        await thread._take({TP(*BUSY): 1}, 0.0, (), 0.0, 8.0, ahead=ahead)
        assert thread._not_before == 8.0
        assert fetcher.woken == woken + (not ahead), "it is asleep for longer"

    asyncio.run(story())


@pytest.mark.parametrize("pace_s", [0.0, 3600.0])
def test_taken_records_wake_the_fetches_only_if_another_may_be_sent(
    monkeypatch: pytest.MonkeyPatch, pace_s: float
) -> None:
    async def story() -> None:
        thread = consumer_thread(monkeypatch)
        fetcher = thread._ensure_consumer()._fetcher
        request = (0, object())
        fetcher._fetch_max_wait_ms, fetcher._fetcher_timeout = 500, 9.0
        fetcher._get_actions_per_node = lambda _: ([request], {}, 9.0, False, [])
        thread.sources = cast("Any", SimpleNamespace(suspects=False))
        thread._plan_fetches(fetcher, ["topic"])
        thread._wanted, thread._pace_s = [TP(*BUSY)], pace_s
        assert fetcher._get_actions_per_node(None)[0] == [request]
        fetcher._create_fetch_waiter()
        requests, _, wait_s, *_ = fetcher._get_actions_per_node(None)
        assert requests == [], "records wait"
        assert wait_s == pytest.approx(max(9.0, pace_s), rel=0.1)
        fetched = await thread._take({TP(*BUSY): 0}, 10.0, (), pace_s)
        assert fetched.records == 1
        assert fetcher.woken == (not pace_s), "it sleeps until the pace is over"

    asyncio.run(story())


def test_a_changelog_that_faust_has_not_sought_yet_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its partition is new here, nothing is committed for it: aiokafka calls that an error of it."""

    async def story() -> None:
        thread = consumer_thread(monkeypatch)
        buffers = thread._ensure_consumer()._fetcher._records
        unsought = FetchError(error=NoOffsetForPartitionError(ASTRAY), backoff=0)
        buffers[ASTRAY] = unsought
        fetched = await thread._take({}, 10.0, (TP(*ASTRAY), TP(*BUSY)))
        assert list(fetched.changelogs) == [BUSY]
        assert buffers == {ASTRAY: unsought}, "else it would be asked for again and again"
        buffers[ASTRAY] = FetchError(error=OffsetOutOfRangeError({ASTRAY: 3}), backoff=0)
        fetched = await thread._take({}, 10.0, (TP(*ASTRAY),))
        assert (fetched.changelogs, fetched.changelogs_out_of_range) == ({}, {ASTRAY: 3})

    asyncio.run(story())


def test_records_of_a_changelog_are_read_whatever_their_headers_are(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        thread = consumer_thread(monkeypatch)
        fetcher = thread._ensure_consumer()._fetcher
        builder = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, 1 << 20)
        for at in range(3):
            builder.append(at, 1000 + at, b"k%d" % at, b"v" if at else None, [("??", b"x")])
        log = _with_checksum(bytes(builder.build()).replace(b"??", b"\xff\xfe"))
        records = PartitionRecords(BUSY, FetchedRecords(log), [], 0, None, None, True, "read_uncommitted")
        assignment = fetcher._subscriptions.subscription.assignment
        fetcher._records[BUSY] = FetchResult(
            BUSY, assignment=assignment, partition_records=records, backoff=0
        )
        fetched = await thread._take({}, 10.0, (TP(*BUSY),))
        (found,) = fetched.changelogs.values()
        cells = [(each.offset, each.timestamp, each.key, each.value, each.headers) for each in found]
        assert cells == [(0, 1000, b"k0", None, ()), (1, 1001, b"k1", b"v", ()), (2, 1002, b"k2", b"v", ())]
        assert (assignment.state_value(BUSY).position, fetcher._records) == (3, {})

    asyncio.run(story())


def _with_checksum(batch: bytes) -> bytes:
    """Return a record batch with the checksum of what is in it now."""
    checksum: int = calc_crc32c_py(batch[21:])
    return batch[:17] + checksum.to_bytes(4, "big") + batch[21:]
