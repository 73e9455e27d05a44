"""Transactional producer: the records of a transaction in one request to each broker, by Kafka's protocol.

    open ──> offer … offer ──> commit(offsets)      all of it, or
                          └──> abort                nothing of it

It has the interface of `topics/clients/transactional_sender.py`. Records wait for the commit, so that all of
them go together; above `EARLY_BYTES` they are sent before it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from topics.clients.access import Access
from topics.clients.delivery_failures import DeliveryFailures
from topics.clients.offered import partition_of_each
from topics.clients.sender import BATCH_BYTES, STOP_S
from topics.clients.transactional_sender import ABORT_S, STUCK_S, TIMEOUT_MS
from topics.columns.header_columns import HeaderColumns
from topics.columns.records import Headers, Ints64
from topics.columns.spans import Spans
from topics.errors import AbortedError, BrokerError, FencedError
from topics.producing.batch_encoder import CODECS, BatchForm, Run, WrittenBatch, write_runs
from topics.producing.batch_sender import BatchSender
from topics.producing.broker_connections import BrokerConnections, LostAnswerError
from topics.producing.coordinator_steps import LONGEST_PAUSE_S, CoordinatorSteps
from topics.producing.loop_thread import LoopThread
from topics.producing.offered_runs import OfferedRuns
from topics.producing.offset_requests import GroupMember, OffsetToCommit
from topics.producing.step_errors import FailedProducerError, UnfinishedError
from topics.producing.transaction_requests import NOBODY, Place, ProducerIdentity
from topics.tokens.sign_in import wait_for_token

logger = logging.getLogger(__name__)

EARLY_BYTES: Final = 1 << 20
"""Bytes of records that are sent without waiting for the commit."""

NO_OFFSETS: Final[Mapping[Place, int]] = {}
NOTHING: Final[Mapping[Place, str]] = {}

_LOSSES: Final = (UnfinishedError, FailedProducerError, FencedError)
"""Errors after which only a new identity can send more."""


class TransactionalProducer:
    """A producer whose records count only once their transaction is committed.

    One thread offers records and never waits; other threads call the methods that wait for the brokers.
    """

    def __init__(
        self,
        kafka: Mapping[str, Any],
        transactional_id: str,
        stopped: Callable[[], bool] = lambda: False,
        timeout_ms: int = TIMEOUT_MS,
    ) -> None:
        """`kafka` holds client properties under librdkafka's names; after `timeout_ms` the broker aborts a
        transaction on its own. Waits for a token if one is needed; may raise TokenError.

        Brokers are waited for, but only STOP_S seconds once `stopped()` is true.
        """
        wait_for_token(kafka)
        codec = str(kafka.get("compression.type", kafka.get("compression.codec", "lz4")))
        if codec not in CODECS:
            message = f"compression.type={codec!r} must be one of {', '.join(CODECS)}; correct the setting"
            raise BrokerError(message)
        self.transactional_id = transactional_id
        self.in_transaction = False
        self.is_open = False
        self._codec = CODECS[codec]
        self._batch_bytes = int(kafka.get("batch.size", BATCH_BYTES))
        self._timeout_s = timeout_ms / 1000
        self._stopped = stopped
        self._give_up_at = float("inf")
        self._offered = OfferedRuns()
        self._gathers = False
        self._failure: BrokerError | None = None
        self._identity: ProducerIdentity = NOBODY
        self._is_lost = False  # the outcome of a step is unknown, or the identity is used up
        self._has_begun = False  # at the sender; used in the loop only
        self._sequences: dict[Place, int] = {}
        access = Access.of(kafka)
        self._brokers = BrokerConnections(kafka)
        self._steps = CoordinatorSteps(self._brokers, transactional_id, timeout_ms, access, self.is_overdue)
        self._sender = BatchSender(
            self._brokers,
            transactional_id,
            self._add,
            DeliveryFailures(access),
            self._offered.acknowledged,
            self.is_overdue,
        )
        self._opening = threading.Lock()
        self._loop = LoopThread("producer")

    @property
    def call(self) -> int | None:
        """Number of the request that a step waits for, or None."""
        return self._steps.call

    # -- offering -------------------------------------------------------------------------------------------

    def send_run(
        self,
        topic: str,
        partition: int | Ints64,
        values: Sequence[bytes | None],
        keys: Sequence[bytes | None],
        timestamps: Sequence[int],
        headers: Sequence[Headers] | None = None,
    ) -> None:
        """Offer records, and wait while the producer is full."""
        self.offer_run(topic, partition, values, keys, timestamps, headers)
        self.drain()

    def offer_run(
        self,
        topic: str,
        partition: int | Ints64,
        values: Sequence[bytes | None],
        keys: Sequence[bytes | None],
        timestamps: Sequence[int],
        headers: Sequence[Headers] | None = None,
    ) -> None:
        """Make records a part of the transaction, in order; never wait.

        `partition`: one for all records, or int64[n]; `timestamps` in ms since the epoch, 0: now. Raises
        AbortedError if the transaction cannot be committed any more, ValueError for columns that do not fit
        together.
        """
        self.check()
        times = np.asarray(timestamps, dtype=np.int64)
        if not times.all():
            times = np.where(times == 0, time.time_ns() // 1_000_000, times)
        places = partition_of_each(partition, len(values))
        named = None if headers is None else HeaderColumns.of(headers)
        run = Run(places, Spans.of(values), Spans.of(keys), times, named)
        self.in_transaction = True
        self._offered.offer(topic, run)
        if not self._gathers:
            self.hand_over()

    @contextlib.contextmanager
    def gathering(self) -> Iterator[None]:
        """Keep records that are offered in this block for `hand_over`."""
        former, self._gathers = self._gathers, True
        try:
            yield
        finally:
            self._gathers = former

    def hand_over(self) -> None:
        """Begin to send the offered records if they are many; never wait."""
        self.check()
        if self._offered.n_bytes >= EARLY_BYTES:
            self._loop.soon(self._write_early)

    @property
    def is_full(self) -> bool:
        """Whether so many records wait for the brokers that no more should be offered."""
        return self._offered.is_full

    @property
    def n_queued(self) -> int:
        """Number of offered records that the brokers have not acknowledged."""
        return self._offered.n_records

    def drain(self) -> None:
        """Return when the producer is not full; raise earlier failures."""
        self.check()
        if self.is_full:
            self.flush()

    def check(self) -> None:
        """Raise if the transaction cannot be committed."""
        failure = self._failure or self._sender.failure
        if failure is not None:
            raise failure if isinstance(failure, AbortedError) else AbortedError(str(failure))

    # -- steps ----------------------------------------------------------------------------------------------

    def open(self) -> None:
        """End the transaction that another producer with this id has left open, and fence it.

        Waits for the brokers; concurrent callers wait for each other.
        """
        with self._opening:
            if not self.is_open:
                self._loop.run(self._open())
                self.is_open = True

    def flush(self) -> None:
        """Return when all offered records are delivered; raise if a record cannot be delivered."""
        self.check()
        self._loop.run(self._noted(self._flush()))

    def commit(
        self,
        offsets: Mapping[Place, int] = NO_OFFSETS,
        member: GroupMember | None = None,
        metadata: Mapping[Place, str] = NOTHING,
    ) -> None:
        """Commit the offered records, and offsets (topic, partition → position) for a group's member.

        `metadata` is committed with the offsets. Raises AbortedError if the transaction has to be aborted
        (the group moved on, records were not delivered in time, another producer has the same id), and
        BrokerError if a broker denies it.
        """
        self.check()
        positions = {
            place: OffsetToCommit(position, metadata.get(place, "")) for place, position in offsets.items()
        }
        if positions and member is None:
            message = "member must be given with offsets"
            raise ValueError(message)
        self.in_transaction = True
        self._loop.run(self._noted(self._commit(positions, member)))
        self.in_transaction = False

    def abort(self) -> None:
        """Discard everything since the last commit; call `open` again before offering more."""
        self._offered.clear()
        self._loop.run(self._abort())
        self._offered.clear()
        self._failure, self.in_transaction, self.is_open = None, False, False

    def close(self) -> None:
        """Give up undelivered records and close the connections; call `flush` or `commit` first."""
        self._offered.clear()
        self._failure = self._failure or AbortedError("the producer is closed")
        if not self._loop.close(self._close(), STOP_S):
            logger.warning("transactional.id=%s: connections did not close", self.transactional_id)

    def is_overdue(self) -> bool:
        """Whether the caller wants to end, and has waited for the broker long enough."""
        if not self._stopped():
            return False
        now = time.monotonic()
        self._give_up_at = min(self._give_up_at, now + STOP_S)
        return now >= self._give_up_at

    # -- in the event loop ----------------------------------------------------------------------------------

    async def _noted(self, work: Any) -> None:
        """Run a step; remember its failure until the transaction is aborted."""
        try:
            await work
        except BrokerError as error:
            self._failure = self._failure or error
            self._is_lost |= isinstance(error, _LOSSES)
            raise

    async def _open(self) -> None:
        while True:
            try:
                await self._brokers.open()
                self._identity = await self._steps.init_producer_id(STUCK_S)
            except LostAnswerError as error:
                reason, pause = str(error), LONGEST_PAUSE_S
            except UnfinishedError as error:
                reason, pause = str(error), 0.0
            else:
                break
            if self.is_overdue():
                message = f"transactional.id={self.transactional_id}: not opened before the stop: {reason}"
                raise AbortedError(message)
            logger.warning("transactional.id=%s: %s; trying again", self.transactional_id, reason)
            await self._brokers.close()  # the configured addresses may lead to other brokers
            self._steps.forget_coordinators()
            await asyncio.sleep(pause)
        self._is_lost = False
        self._sequences = {}

    async def _add(self, places: Sequence[Place]) -> None:
        await self._steps.add_partitions(self._identity, places, self._sender.seconds_left)

    def _write_early(self) -> None:
        """Write and send offered records; a failure is raised by the next call."""
        try:
            self._write_offered()
        except BrokerError as error:
            self._failure = self._failure or error

    def _write_offered(self) -> None:
        """Write the offered records as batches, and begin to send them."""
        runs = self._offered.take()
        if not runs:
            return
        self._begin()
        if self._sender.failure is not None:
            raise self._sender.failure
        form = BatchForm(self._identity.producer, self._identity.epoch, self._batch_bytes, self._codec)
        batches: list[WrittenBatch] = []
        for topic, of_topic in runs.items():
            batches += write_runs(topic, of_topic, self._sequences, form)
        self._offered.written(batches)
        self._sender.put(batches)

    def _begin(self) -> None:
        if self._identity == NOBODY:
            message = f"transactional.id={self.transactional_id}: open must come before records and offsets"
            raise AbortedError(message)
        if not self._has_begun:
            self._sender.begin(self._timeout_s)
            self._has_begun = True

    async def _flush(self) -> None:
        self._write_offered()
        await self._sender.flush()

    async def _commit(self, positions: Mapping[Place, OffsetToCommit], member: GroupMember | None) -> None:
        self._begin()
        self._write_offered()
        if positions and member is not None:
            await self._sender.added()
            await self._steps.send_offsets(self._identity, member, positions, self._sender.seconds_left)
        await self._flush()
        if positions or self._sender.has_partitions:
            await self._steps.end(self._identity, committed=True, seconds=STUCK_S)
        self._has_begun = False

    async def _abort(self) -> None:
        """End the transaction at the coordinator, if that is certain to leave nothing behind.

        If a request is not answered, a broker may append its batch later. Only a new epoch keeps that batch
        out, and `open` brings one.
        """
        is_answered = await self._sender.stop(ABORT_S) if self._has_begun else True
        lost = self._is_lost or not is_answered or isinstance(self._sender.failure, _LOSSES)
        is_there = self.in_transaction and self._identity != NOBODY and self._has_begun
        identity, self._identity = self._identity, NOBODY
        self._has_begun = False
        self._sender.failure = None
        if lost or not is_there:
            return
        try:
            await self._steps.end(identity, committed=False, seconds=ABORT_S)
        except FailedProducerError as error:  # nothing was added: the coordinator has no transaction
            logger.debug("transactional.id=%s: nothing to abort: %s", self.transactional_id, error)
        except BrokerError as error:
            if self.is_overdue():
                raise
            logger.warning("transactional.id=%s: %s; a new epoch ends it", self.transactional_id, error)

    async def _close(self) -> None:
        await self._sender.stop(0.0)
        await self._brokers.close()
