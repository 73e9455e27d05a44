"""Transaction flow: records and steps of one transaction after another, in one event loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any, Final

from topics.clients.access import Access
from topics.clients.delivery_failures import DeliveryFailures
from topics.clients.group_member import GroupMember
from topics.clients.sender import BATCH_BYTES
from topics.errors import AbortedError, BrokerError, FencedError
from topics.producing.batch_encoder import BatchForm, WrittenBatch, write_runs
from topics.producing.broker_connections import BrokerConnections, LostAnswerError
from topics.producing.compression import codec_of
from topics.producing.coordinator_steps import LONGEST_PAUSE_S, CoordinatorSteps
from topics.producing.offered_runs import OfferedRuns
from topics.producing.step_errors import FailedProducerError, UnfinishedError
from topics.producing.transaction_requests import NOBODY, Place, ProducerIdentity
from topics.producing.transaction_sender import TransactionSender
from topics.producing.transactional_offsets import OffsetToCommit

logger = logging.getLogger(__name__)

STUCK_S: Final = 60.0
"""The longest time for the first and the last step of a transaction. All others have the time that is left
until the coordinator would abort the transaction.
"""

ABORT_S: Final = 5.0
"""The same for an abort, where waiting gains nothing: the next epoch ends the transaction, too."""

UNUSED_S: Final = 5.0
"""How long a transaction may be open without records or offsets. They follow within a commit interval, unless
the partitions that they were expected of have left the worker.
"""

_LOSSES: Final = (UnfinishedError, FailedProducerError, FencedError)
"""Errors after which only a new identity can send more."""


class TransactionFlow:
    """The transactions of one transactional id; all methods but `write_early` are coroutines."""

    def __init__(
        self,
        kafka: Mapping[str, Any],
        transactional_id: str,
        timeout_ms: int,
        offered: OfferedRuns,
        is_overdue: Callable[[], bool],
        topics: Collection[str] = (),
    ) -> None:
        """`kafka` holds client properties under librdkafka's names; raises BrokerError for a compression that
        Kafka does not have. `offered`: the records to send; `topics`: some of theirs; `is_overdue`: whether
        there is no reason to wait for the brokers any longer.
        """
        self._id = transactional_id
        self._codec = codec_of(str(kafka.get("compression.type", "lz4")))
        self._level = int(kafka.get("compression.level", -1))
        self._batch_bytes = int(kafka.get("batch.size", BATCH_BYTES))
        self._timeout_s = timeout_ms / 1000
        self._offered = offered
        self._is_overdue = is_overdue
        self._identity: ProducerIdentity = NOBODY
        self._sequences: dict[Place, int] = {}
        self._is_lost = False  # the outcome of a step is unknown, or the identity is used up
        self._has_begun = False
        self._is_used = False  # records of the transaction were written
        self._is_committing = False
        self._unused: asyncio.TimerHandle | None = None  # the time until it ends unused
        self._n_aborts = 0
        access = Access.of(kafka)
        self._brokers = BrokerConnections(kafka, topics)
        self._steps = CoordinatorSteps(self._brokers, transactional_id, timeout_ms, access, is_overdue)
        failures = DeliveryFailures(access)
        self._sender = TransactionSender(
            self._brokers,
            transactional_id,
            self._add,
            self._add_group,
            failures,
            offered.settled,
            is_overdue,
        )
        self._failure: BrokerError | None = None

    @property
    def call(self) -> int | None:
        """Number of the request that a step waits for, or None."""
        return self._steps.call

    @property
    def failure(self) -> BrokerError | None:
        """The reason why the transaction cannot be committed, or None."""
        return self._failure or self._sender.failure

    async def open(self) -> None:
        """Get an identity, which ends what earlier producers of the id have left open."""
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
            if self._is_overdue():
                message = f"transactional.id={self._id}: not opened before the stop: {reason}"
                raise AbortedError(message)
            logger.warning("transactional.id=%s: %s; trying again", self._id, reason)
            await self._brokers.close()  # the configured addresses may lead to other brokers
            self._steps.forget_coordinators()
            await asyncio.sleep(pause)
        self._is_lost = False
        self._failure = None
        self._sequences = {}

    def expect(self, places: Collection[Place], group: str) -> None:
        """Begin a transaction with these partitions and a group, whose records and offsets will follow.

        Has no effect during another transaction's end. If nothing follows within UNUSED_S, the transaction is
        ended: the coordinator would abort it later, and refuse the identity.
        """
        is_ending = self._is_committing or self._sender.ends_unused
        if is_ending or self._identity == NOBODY or self.failure is not None:
            return
        self._begin()
        self._sender.expect(places, group)
        if self._unused is None:
            self._unused = asyncio.get_running_loop().call_later(UNUSED_S, self._give_up_unused)

    def _give_up_unused(self) -> None:
        self._unused = None
        if self._has_begun and not self._is_used and not self._is_committing and self.failure is None:
            self._sender.end_unused(self._end_unused())

    def _forget_unused(self) -> None:
        if self._unused is not None:
            self._unused.cancel()
            self._unused = None

    async def _end_unused(self) -> None:
        await self._sender.flush()
        await self._steps.end(self._identity, committed=True, seconds=STUCK_S)
        self._has_begun = False

    def write_early(self) -> None:
        """Write and begin to send the offered records; a failure is kept."""
        if self._sender.ends_unused:  # the commit writes them
            return
        try:
            self._write_offered()
        except Exception as error:  # noqa: BLE001 - records that are taken and not written must not be forgotten
            self._note(error)

    async def flush(self) -> None:
        """Return when all offered records are delivered; raise AbortedError or BrokerError."""
        await self._noted(self._flush())

    async def commit(self, positions: Mapping[Place, OffsetToCommit], member: GroupMember | None) -> None:
        """Commit all offered records with positions of a group's member."""
        self._is_committing = True
        self._forget_unused()
        try:
            await self._noted(self._commit(positions, member))
        finally:
            self._is_committing = False

    async def abort(self) -> None:
        """End the transaction at the coordinator, if that is certain to leave nothing behind.

        If a request is not answered, a broker may append its batch later. Only a new epoch keeps that batch
        out, and `open` brings one. AbortedError if the caller wants to end: there is no next epoch.
        """
        self._forget_unused()
        is_answered = await self._sender.stop(ABORT_S) if self._has_begun else True
        self._forget_unused()  # that of an `expect` meanwhile
        is_lost = self._is_lost or not is_answered or isinstance(self._sender.failure, _LOSSES)
        has_begun, self._has_begun = self._has_begun, False
        identity, self._identity = self._identity, NOBODY
        self._failure = self._sender.failure = None
        self._n_aborts += 1
        if is_lost and self._is_overdue():
            message = f"transactional.id={self._id}: a transaction was not ended before the stop"
            raise AbortedError(message)
        if is_lost or not has_begun:
            return
        try:
            await self._steps.end(identity, committed=False, seconds=ABORT_S)
        except FailedProducerError as error:  # nothing was added: the coordinator has no transaction
            logger.debug("transactional.id=%s: nothing to abort: %s", self._id, error)
        except BrokerError as error:
            if self._is_overdue():
                raise
            logger.warning("transactional.id=%s: %s; a new epoch ends it", self._id, error)

    async def close(self) -> None:
        """Send nothing more, and close the connections."""
        await self._sender.stop(0.0)
        await self._brokers.close()

    async def _noted(self, work: Awaitable[None]) -> None:
        """Run a step; keep its failure until the transaction is aborted."""
        n_aborts = self._n_aborts
        try:
            await work
        except Exception as error:
            if self._n_aborts == n_aborts:  # else the step belongs to a transaction that is over
                self._note(error)
            raise

    def _note(self, error: Exception) -> None:
        self._is_lost |= isinstance(error, _LOSSES)
        if self._failure is None:
            self._failure = error if isinstance(error, BrokerError) else AbortedError(repr(error))

    async def _add(self, places: Sequence[Place]) -> None:
        await self._steps.add_partitions(self._identity, places, self._sender.seconds_left)

    async def _add_group(self, group: str) -> None:
        await self._steps.add_group(self._identity, group, self._sender.seconds_left)

    def _begin(self) -> None:
        if self._identity == NOBODY:
            message = f"transactional.id={self._id}: open must come before records and offsets"
            raise AbortedError(message)
        if not self._has_begun:
            self._sender.begin(self._timeout_s)
            self._has_begun = True
            self._is_used = False

    def _write_offered(self) -> None:
        """Write the offered records as batches, and begin to send them."""
        runs = self._offered.take()
        if not runs:
            return
        self._begin()
        self._is_used = True
        if self._sender.failure is not None:
            raise self._sender.failure
        identity = self._identity
        form = BatchForm(identity.producer, identity.epoch, self._batch_bytes, self._codec, level=self._level)
        batches: list[WrittenBatch] = []
        for topic, of_topic in runs.items():
            batches += write_runs(topic, of_topic, self._sequences, form)
        self._offered.written(batches)
        self._sender.put(batches)

    async def _flush(self) -> None:
        self._raise_failure()
        await self._sender.unused_ended()
        self._write_offered()
        await self._sender.flush()

    def _raise_failure(self) -> None:
        """Raise the failure of an early write: its records are missing."""
        if self._failure is not None:
            raise self._failure

    async def _commit(self, positions: Mapping[Place, OffsetToCommit], member: GroupMember | None) -> None:
        await self._sender.unused_ended()
        self._begin()
        self._write_offered()
        if positions and member is not None:
            await self._sender.added(member.group)
        await self._flush()
        if positions and member is not None:
            # Not at the same time: a broker verifies batches and offsets at the coordinator, and refuses one
            # of both if they come together (KIP-890), which would be repeated after a pause.
            await self._steps.send_offsets(self._identity, member, positions, self._sender.seconds_left)
        self._raise_failure()
        if positions or self._sender.has_partitions:
            await self._steps.end(self._identity, committed=True, seconds=STUCK_S)
        self._has_begun = False
