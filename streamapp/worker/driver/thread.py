# ruff: noqa: SLF001 - what is read of aiokafka is held by tests/contract/test_transport_aiokafka.py
"""Consumer thread: fetching columns, seeking, group membership.

Everything here runs in the event loop of Faust's consumer thread, where aiokafka lives. A record is never
lost between aiokafka and us because *positions* are compared, not record offsets (which have gaps:
transaction markers, aborted batches, compaction): before a fetch aiokafka's position of a partition must
equal ours, afterwards ours is aiokafka's. A partition whose position differs is sought back.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Collection, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from aiokafka import ConsumerRecord, TopicPartition
from aiokafka.consumer.fetcher import FetchResult, OffsetResetStrategy
from aiokafka.errors import (
    ConsumerStoppedError,
    KafkaTimeoutError,
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
)
from faust.transport.drivers import aiokafka as driver
from faust.types import TP

from streamapp.errors import NotYetError, StreamappError
from streamapp.worker.driver.faust_app import App
from streamapp.worker.driver.fetch_plan import FetchPlan
from streamapp.worker.driver.fetch_routine import FetchRoutine
from streamapp.worker.driver.offset_requests import OffsetRequests
from streamapp.worker.driver.plain_answers import PlainAnswers
from streamapp.worker.driver.thread_calls import run_in
from streamapp.worker.driver.thread_end import CANCELLED_S, EndingThread, cancel_within
from streamapp.worker.transport.authorization import DENIALS, AccessDeniedError, report_denials
from streamapp.worker.transport.connect_retry import retry_connect
from streamapp.worker.transport.fencing import Fencing, ForeignAssignment
from streamapp.worker.transport.fetch_sessions import FetchSessions
from streamapp.worker.transport.fetched_columns import decode, decode_small, has_more
from streamapp.worker.transport.membership import Membership
from streamapp.worker.transport.partition_health import NO_LEADER, PartitionHealth
from streamapp.worker.transport.runs import FetchedColumns
from streamapp.worker.transport.source_watch import LOOK_AGAIN, SourceWatch
from topics.fetching.batches import Limit
from topics.fetching.fetched_records import keep_bytes
from topics.fetching.frames import bound_frames

# aiokafka has one request per broker in flight. If that requests only some partitions, because records of the
# rest wait here, it must not take long: the remaining partitions cannot be fetched before it has ended.
REST_WAIT_MS = 5
MAX_CHANGELOG_RECORDS = 500  # at once, of a partition
CLOSED_S = 10.0  # seconds that the end of the thread waits for the consumer, which may leave the group
RANGE_TIMEOUT_S = 5.0  # seconds for a leader to return where logs begin and end; other partitions wait for it

_T = TypeVar("_T")

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Fetched:
    """The result of one fetch."""

    columns: dict[TP, FetchedColumns] = field(default_factory=dict)
    changelogs: dict[TP, list[Any]] = field(default_factory=dict)  # records, of tables in recovery
    log_ends: dict[TP, int] = field(
        default_factory=dict
    )  # of every wanted partition for which the broker has answered
    sought_back: list[TP] = field(default_factory=list)  # whose position was not ours
    out_of_range: list[TP] = field(default_factory=list)  # whose log does not have our position
    changelogs_out_of_range: dict[TP, int] = field(default_factory=dict)  # the position that the log lacks
    unserved: dict[TP, str] = field(default_factory=dict)  # why the broker does not serve it
    inflated: int = 0  # bytes of decompressed batches
    began: float = 0.0  # when the records were there, after waiting for them; on the clock of time.monotonic

    @property
    def is_worth_a_turn(self) -> bool:
        """Whether there is anything for the consumer to handle."""
        return bool(self.columns or self.changelogs or self.out_of_range or self.changelogs_out_of_range)

    @property
    def records(self) -> int:
        """Number of records."""
        return sum(len(columns) for columns in self.columns.values())


class ConsumerThread(EndingThread, driver.AIOKafkaConsumerThread):
    """Faust's consumer thread, fetching columns."""

    logger = logging.getLogger("faust.kafkabatch")  # keeps service messages out of our log
    _interrupted = False
    _wanted: Collection[TP] = ()  # sources in the last `take`: their fetched records will be taken
    _tables: Collection[TP] = ()  # changelogs in the last `take`
    _pace_s = 0.0  # between two fetches at least
    _next_fetch = 0.0  # on the clock of `time.monotonic`
    _not_before = 0.0  # the same clock: records fetched sooner would only wait
    _wakes_in_time = False  # the fetcher's loop wakes up by itself when the next fetch may be sent
    sources: SourceWatch
    partition_health: PartitionHealth
    fencing: Fencing
    foreign_assignment: ForeignAssignment
    limit = Limit()  # for a decompressed batch, and for all batches of a fetch
    _left_over: frozenset[TP] = frozenset()  # not taken: the fetch had become too large

    async def on_start(self) -> None:
        keep_bytes()
        options = cast(App, self.app).options
        self.limit = options.limit
        await super().on_start()
        consumer = self._ensure_consumer()
        fetcher = consumer._fetcher
        options = cast(App, self.app).options
        self.sources = SourceWatch(
            options.topics, consumer._client.force_metadata_update, self._report, options.partitions
        )
        consumer._client.cluster.add_listener(self.sources.compare)
        FetchSessions(consumer._client, consumer._subscription)
        OffsetRequests(consumer._client)
        self.partition_health = PartitionHealth(consumer._client)
        self.fencing = Fencing(consumer._coordinator, self._report)
        self.foreign_assignment = ForeignAssignment(consumer._coordinator, self._report)
        report_denials(consumer._coordinator, cast(App, self.app).options.access, self._report)
        # A partition whose records wait for their turn must not delay fetches of other partitions of its
        # broker.
        fetcher._prefetch_backoff = 0.0
        # A position out of range is handled here: aiokafka would jump over lost records with an INFO line.
        fetcher._default_reset_strategy = OffsetResetStrategy.NONE
        keep_waiting_results(fetcher)
        PlainAnswers(consumer._client, fetcher)
        FetchPlan(fetcher, consumer._client.cluster)
        self._plan_fetches(fetcher, options.topics)
        self.partition_health.limit_fetches(fetcher)
        FetchRoutine(fetcher)

    def _report(self, error: StreamappError) -> None:
        self.parent_loop.call_soon_threadsafe(cast(Any, self.consumer).end, error)

    def _stopped_set(self) -> None:
        if not self.thread_loop.is_closed():  # after a crash it has already ended
            super()._stopped_set()

    async def on_thread_stop(self) -> None:
        self.sources.close()
        coordinator = self._ensure_consumer()._coordinator
        if cast(App, self.app).leaving:
            # Everything is committed. aiokafka leaves the group for members that are not static.
            coordinator._group_instance_id = None
        # aiokafka would wait for a rebalance that is under way: it may take as long as its slowest member.
        await cancel_within([coordinator._coordination_task], CANCELLED_S)
        closing = asyncio.ensure_future(super().on_thread_stop())
        await asyncio.wait([closing], timeout=CLOSED_S)
        # aiokafka's fetcher passes on the cancellation of one of its requests that waits out an outage; mode
        # would then never report that this thread has ended. It cancels what is left in our loop.
        if not closing.done() or closing.cancelled():
            logger.warning("the consumer was stopped while the broker did not answer")
        else:
            closing.result()

    def close(self) -> None:
        """Do nothing: this thread closes its consumer when it stops, in the loop where the consumer lives.

        Faust calls this in the main loop when partitions are revoked or assigned while the worker stops. It
        would mark the consumer as closed, and leave its tasks and connections.
        """

    async def on_partitions_revoked(self, revoked: set[TP]) -> None:
        """Wait for the main loop to give up partitions, unless this thread stops."""
        await self.wait(super().on_partitions_revoked(revoked))

    async def on_partitions_assigned(self, assigned: set[TP], generation_id: int = 0) -> None:
        """Wait for the main loop to take an assignment, unless this thread stops.

        The main loop takes no more calls once the worker has failed, and waits for the end of this thread.
        """
        await self.wait(super().on_partitions_assigned(assigned, generation_id))

    def _plan_fetches(self, fetcher: Any, sources: Collection[str]) -> None:
        """Make aiokafka fetch all partitions at once, no sooner than the pace allows, and wait accordingly.

        Unchanged, it fetches partitions that had no records when some arrive: while that request waits at the
        broker the busy partitions are not fetched. Records of a changelog that is not read now stay where
        they are for long: no fetch is short because of them. `sources`: topics.
        """
        wait_ms, look_s = fetcher._fetch_max_wait_ms, fetcher._fetcher_timeout
        plan = fetcher._get_actions_per_node

        def plan_at_its_time(assignment: Any) -> Any:
            now, next_fetch = time.monotonic(), max(self._next_fetch, self._not_before)
            self._wakes_in_time = now < next_fetch < math.inf  # else `_drain` wakes it
            if not fetcher._records.keys().isdisjoint(self._wanted):
                return [], {}, next_fetch - now if self._wakes_in_time else look_s, False, []
            if now < next_fetch:
                return [], {}, next_fetch - now, False, []
            is_rest = any(tp.topic in sources or tp in self._tables for tp in fetcher._records)
            fetcher._fetch_max_wait_ms = min(REST_WAIT_MS, wait_ms) if is_rest else wait_ms
            fetches, resets, timeout, invalid_metadata, resumed = plan(assignment)
            if fetches:
                self._next_fetch = now + self._pace_s
                self._wakes_in_time = True  # at their end it plans again
            if invalid_metadata and self.sources.suspects:
                # For a deleted topic aiokafka would send thousands of requests a second; the watch requests
                # metadata.
                invalid_metadata, timeout = False, max(timeout, LOOK_AGAIN)
            return fetches, resets, timeout, invalid_metadata, resumed

        fetcher._get_actions_per_node = plan_at_its_time

    def _create_worker_consumer(self, transport: Any) -> Any:
        consumer = super()._create_worker_consumer(transport)
        bound_frames(consumer._client, cast(App, self.app).options.frame_bytes)
        retry_connect(consumer._client, lambda: self.app.should_stop)
        for name, value in cast(App, self.app).options.fetch.items():
            if not hasattr(consumer, f"_{name}"):
                msg = f"aiokafka's consumer has no attribute '_{name}'"
                raise AttributeError(msg)
            setattr(consumer, f"_{name}", value)
        return consumer

    async def _in_thread(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Run `work` in this thread's loop, not through Faust's queue: both of its workers may be waiting."""
        try:
            return await run_in(self.thread_loop, work)
        except DENIALS as denial:
            raise AccessDeniedError(denial, cast(App, self.app).options.access) from None

    @property
    def membership(self) -> Membership:
        """Return our current membership in the group."""
        coordinator = self._ensure_consumer()._coordinator
        return Membership(coordinator.generation, coordinator.member_id, coordinator._group_instance_id)

    @property
    def broker_reachable(self) -> bool:
        """Whether the group's coordinator is known; aiokafka forgets it when a request to it fails."""
        return self._consumer is not None and self._consumer._coordinator.coordinator_id is not None

    # -- fetch ----------------------------------------------------------------------------------------------

    async def take(
        self,
        positions: Mapping[TP, int],
        timeout_s: float,
        changelogs: Iterable[TP] = (),
        pace_s: float = 0.0,
        not_before: float = 0.0,
        *,
        ahead: bool = True,
    ) -> Fetched:
        """Return the available records of changelogs and wanted partitions (partition -> our position).

        It waits up to `timeout_s`; `pace_s`: seconds between two fetches at least; `not_before`: earliest
        time (`time.monotonic`) of the next fetch; `ahead`: continue fetching while the result is processed,
        else from the next call on.
        """
        taking = self._take(positions, timeout_s, tuple(changelogs), pace_s, not_before, ahead=ahead)
        return await self._in_thread(taking)

    def interrupt(self) -> None:
        """End a waiting `take`: the wanted partitions have changed."""
        if not self.thread_loop.is_closed():  # after a crash it has already ended
            self.thread_loop.call_soon_threadsafe(self._interrupt)

    def _interrupt(self) -> None:
        self._interrupted = True
        fetcher = self._ensure_consumer()._fetcher
        for waiter in list(fetcher._fetch_waiters):
            fetcher._notify(waiter)

    async def _take(
        self,
        positions: Mapping[TP, int],
        timeout_s: float,
        changelogs: tuple[TP, ...] = (),
        pace_s: float = 0.0,
        not_before: float = 0.0,
        *,
        ahead: bool = True,
    ) -> Fetched:
        consumer = self._ensure_consumer()
        fetcher = consumer._fetcher
        if consumer._closed or fetcher._closed:
            raise ConsumerStoppedError
        consumer._coordinator.check_errors()
        if fetcher.error_future.done():
            fetcher.error_future.result()  # raises the error that ended the fetches
        began = time.monotonic()
        deadline = began + timeout_s
        self._wanted, self._tables, self._pace_s = positions.keys(), changelogs, pace_s
        if not_before < self._not_before:
            fetcher._notify(fetcher._wait_consume_future)
        self._not_before = not_before
        with fetcher._subscriptions.fetch_context():  # makes aiokafka count this as a poll
            fetched = Fetched(began=began)
            if timeout_s <= 0 or not fetcher._records.keys().isdisjoint((*positions, *changelogs)):
                self._drain(fetcher, positions, fetched, changelogs)
            while not (fetched.is_worth_a_turn or self._interrupted):
                seconds_left = deadline - time.monotonic()
                if seconds_left <= 0 or not self.consumer.flow_active:
                    break
                await _next_event(fetcher, seconds_left)
                fetched.began = time.monotonic()
                self._drain(fetcher, positions, fetched, changelogs)
        if fetched.is_worth_a_turn and not ahead:
            self._not_before = math.inf  # before the fetcher runs, which sees what was taken
        fetched.unserved = self.partition_health.unserved(positions)
        self._interrupted = False
        return fetched

    def _drain(
        self, fetcher: Any, positions: Mapping[TP, int], fetched: Fetched, changelogs: Iterable[TP]
    ) -> None:
        """Add the records that are available now to `fetched`."""
        subscriptions = fetcher._subscriptions
        assignment = subscriptions.subscription.assignment if subscriptions.subscription else None
        if assignment is None or not assignment.active or subscriptions.reassignment_in_progress:
            return  # going live after the rebalance reads the skipped records again
        drained = False
        limit = self.limit
        results: list[tuple[TP, Any, Any, int | None]] = []
        left_over: set[TP] = set()
        if self._left_over:
            positions = dict(sorted(positions.items(), key=lambda item: item[0] not in self._left_over))
        waiting = fetcher._records
        # A turn looks at each topic of each partition, and calls functions for those with records only.
        for (tp, ours), state in zip(
            positions.items(), map(assignment._tp_state.get, positions), strict=True
        ):
            if state is None:
                continue
            if state._position != ours:  # or there is none
                fetched.sought_back.append(tp)
                fetcher.seek_to(TopicPartition(*tp), ours)
                continue
            log_end = state.highwater if state.lso is None or state.lso < 0 else state.lso
            if log_end is not None:
                fetched.log_ends[tp] = log_end
            if tp not in waiting:
                continue
            if fetched.inflated >= limit.most_bytes:
                left_over.add(tp)
                continue
            result = waiting.pop(tp)
            drained = True
            if type(result) is not FetchResult:
                _raise_unless_out_of_range(result, tp, fetched)
            elif _is_current(result, assignment, state):
                results.append((tp, state, result, log_end))
        read_together = decode_small(
            [(result._partition_records, log_end) for _, _, result, log_end in results], limit
        )
        for (tp, state, result, log_end), small in zip(results, read_together, strict=True):
            if small is None and fetched.inflated >= limit.most_bytes:
                left_over.add(tp)
                fetcher._records[tp] = result
                continue
            columns = small
            if columns is None:
                columns = decode(result._partition_records, log_end, limit=limit)
            fetched.columns[tp] = columns
            fetched.inflated += columns.inflated
            state.consumed_to(columns.position)
            if small is None and has_more(result._partition_records):
                fetcher._records[tp] = result
        self._left_over = frozenset(left_over)
        for tp in changelogs:
            result = fetcher._records.get(tp)
            if result is None or _has_no_position(result) or fetched.inflated >= limit.most_bytes:
                continue
            del fetcher._records[tp]
            drained = True
            if type(result) is not FetchResult:
                if not isinstance(result._error, OffsetOutOfRangeError):
                    result.check_raise()
                fetched.changelogs_out_of_range[tp] = dict(result._error.args[0])[tp]
            elif _is_current(result, assignment, assignment.state_value(tp)):
                columns = decode(result._partition_records, None, MAX_CHANGELOG_RECORDS, limit)
                fetched.inflated += columns.inflated
                fetched.changelogs[tp] = _changelog_records(tp, columns)
                assignment.state_value(tp).consumed_to(result._partition_records.next_fetch_offset)
                if has_more(result._partition_records):
                    fetcher._records[tp] = result
        if drained and not self._wakes_in_time:
            fetcher._notify(fetcher._wait_consume_future)  # the partitions taken from can be fetched again

    # -- offsets --------------------------------------------------------------------------------------------

    async def log_ranges(self, partitions: Iterable[TP]) -> dict[TP, tuple[int, int]]:
        """Return the first offset and the end of each partition's log.

        Raise NotYetError if one of them has no leader, or its leader does not answer.
        """
        return await self._in_thread(self._log_ranges(list(partitions)))

    async def _log_ranges(self, partitions: list[TP]) -> dict[TP, tuple[int, int]]:
        consumer = self._ensure_consumer()
        leaderless = self.partition_health.leaderless(partitions)
        if leaderless:
            consumer._client.force_metadata_update()  # a leader may be elected by now: for the next time
            message = f"{_names(leaderless)}: {NO_LEADER}"
            raise NotYetError(message)
        logs = [TopicPartition(*tp) for tp in partitions]
        try:
            async with asyncio.timeout(RANGE_TIMEOUT_S):
                starts, ends = await asyncio.gather(
                    consumer.beginning_offsets(logs), consumer.end_offsets(logs)
                )
        except (TimeoutError, KafkaTimeoutError):
            message = f"{_names(partitions)}: the broker does not report where the logs begin and end"
            raise NotYetError(message) from None
        return {TP(*tp): (starts[tp], ends[tp]) for tp in logs}

    async def seek_all(self, positions: Mapping[TP, int]) -> None:
        """Move the positions of partitions. A partition that was taken away since is left alone."""
        if positions:
            await self._in_thread(self._seek_all(positions))

    async def _seek_all(self, positions: Mapping[TP, int]) -> None:
        consumer = self._ensure_consumer()
        for tp, position in positions.items():
            self.partition_health.oversized.forget([tp])
            if consumer._subscription.is_assigned(tp):
                consumer._fetcher.seek_to(TopicPartition(*tp), position)

    async def rejoin(self) -> None:
        """Join the group again."""
        if not self.thread_loop.is_closed():  # after a crash it has already ended
            self.thread_loop.call_soon_threadsafe(self._ensure_consumer()._coordinator.request_rejoin)


def _names(partitions: Iterable[TP]) -> str:
    return ", ".join(f"{tp.topic}-{tp.partition}" for tp in partitions)


def keep_waiting_results(fetcher: Any) -> None:
    """Let a fetcher note an error of a partition only if no result of that partition waits to be taken.

    When assignments follow each other quickly, two look-ups of a position end with the same error. aiokafka
    asserts that the second one finds no result, and an assertion that fails ends all fetches. An error that
    is not noted comes again with the next look-up or fetch.
    """
    set_error = fetcher._set_error

    def set_error_unless_waiting(tp: TopicPartition, error: Exception) -> None:
        if tp not in fetcher._records:
            set_error(tp, error)

    fetcher._set_error = set_error_unless_waiting


async def _next_event(fetcher: Any, seconds: float) -> None:
    """Return when records have come, a poll is to end, or the time is over; raise errors of the group."""
    waiter = fetcher._create_fetch_waiter()
    timer = asyncio.get_running_loop().call_later(seconds, fetcher._notify, waiter)
    try:
        await waiter
    finally:
        timer.cancel()


def _is_current(result: FetchResult, assignment: Any, state: Any) -> bool:
    """Return whether fetched records begin at the position of their partition in this assignment."""
    records = result._partition_records
    if records is None or state is None or result._assignment is not assignment or state._paused:
        return False
    return bool(state._position == records.next_fetch_offset)


def _has_no_position(result: Any) -> bool:
    """Return whether a changelog has no position to read from yet, until Faust seeks."""
    return type(result) is not FetchResult and isinstance(result._error, NoOffsetForPartitionError)


def _changelog_records(tp: TP, columns: FetchedColumns) -> list[Any]:
    """Return records of a changelog as Faust takes them, without headers: no reader needs them.

    Refused batches are left out: records of a worker are never refused, and records of another client are not
    needed. If a part of a snapshot is missing after all, a restore detects it.
    """
    for batch in columns.refused:
        logger.error(
            "topic %s partition %d: %s; no worker wrote it, see to the rights on the topic", *tp, batch.detail
        )
    refused = {batch.first for batch in columns.refused}
    spans = columns.records
    cells = zip(spans.offsets, spans.timestamps, spans.keys, spans.values, strict=True)
    return [
        ConsumerRecord(*tp, at, time_ms, 0, key, value, None, len(key or b""), len(value or b""), ())
        for at, time_ms, key, value in cells
        if at not in refused
    ]


def _raise_unless_out_of_range(failed: Any, tp: TP, fetched: Fetched) -> None:
    if not isinstance(failed._error, OffsetOutOfRangeError):
        failed.check_raise()
    fetched.out_of_range.append(tp)
