"""Delivery flow: writes offered records as batches at the right time, in one event loop.

A trickle is written at once. While a request is in flight and the next batches are written already, further
records wait for them and make larger batches; so their number follows the broker, and not the callers.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from confluent_kafka import KafkaError as Codes

from topics.clients.access import denied_kind
from topics.clients.delivery_failures import DeliveryFailures
from topics.clients.sender import FLUSH_STEP_S
from topics.clients.stop_deadline import STOP_S
from topics.errors import BrokerError
from topics.producing.batch_encoder import BatchForm, WrittenBatch, write_runs
from topics.producing.batch_sender import MERGE_S
from topics.producing.broker_connections import BrokerConnections, LostAnswerError
from topics.producing.idempotent.backlog import Backlog
from topics.producing.idempotent.delivery_sender import DeliverySender
from topics.producing.idempotent.delivery_terms import DeliveryTerms
from topics.producing.offered_runs import OfferedRuns
from topics.producing.step_errors import Verdict, verdict_on
from topics.producing.transaction_requests import InitProducerId, Place, ProducerIdentity

logger = logging.getLogger(__name__)

EARLY_BYTES: Final = 1 << 20
"""Bytes of records that are written even while other batches wait."""

MOST_WAITING: Final = 4
"""Batches of a partition from which on its further records are not written."""

NO_TIMEOUT_MS: Final = (1 << 31) - 1
"""The time limit of transactions, which a producer without them does not have."""


class DeliveryFlow:
    """The deliveries of one producer; to be used in one event loop."""

    def __init__(
        self,
        kafka: Mapping[str, Any],
        terms: DeliveryTerms,
        offered: OfferedRuns,
        failures: DeliveryFailures,
        is_overdue: Callable[[], bool],
        topics: Collection[str] = (),
    ) -> None:
        """`kafka` holds client properties under librdkafka's names. `offered`: the records to send; `topics`:
        some of theirs; `is_overdue`: whether there is no reason to wait for the brokers any longer.
        """
        self._terms = terms
        self._offered = offered
        self._failures = failures
        self._is_overdue = is_overdue
        self._backlog = Backlog()
        self._sequences: dict[Place, int] = {}
        self._since = float("inf")
        """Time of the event loop since which offered records wait to be written."""
        self._n_flushes = 0
        self._timer: asyncio.TimerHandle | None = None
        self._is_closed = False
        self.is_told = False
        """Whether a call of `handed_over` is on its way."""
        self._brokers = BrokerConnections(kafka, topics, terms.request_ms)
        self._sender = DeliverySender(
            self._brokers, terms, failures, offered, self._new_identity, self._write_when_due
        )

    def begin(self) -> None:
        """Connect to the brokers, before there are records."""
        self._sender.begin()

    def handed_over(self) -> None:
        """Write the offered records, now or once they have waited for others."""
        self.is_told = False
        self._since = min(self._since, asyncio.get_running_loop().time())
        self._write_when_due()

    async def flush(self) -> None:
        """Return when no record waits, or there is a failure; raise DeliveryError before a stop."""
        self._n_flushes += 1
        try:
            self._write_when_due()
            while self._offered.n_records and not self._failures.is_any:
                await self._move()
        finally:
            self._n_flushes -= 1

    async def make_room(self) -> None:
        """Return when there is room for more records, or there is a failure."""
        while not self._offered.has_room and not self._failures.is_any:
            await self._move()

    async def close(self) -> None:
        """Send nothing more, and close the connections."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        await self._sender.stop(0.0)
        await self._brokers.close()

    async def _move(self) -> None:
        """Return when something may have happened; give up if the caller has waited long enough."""
        await self._sender.move(FLUSH_STEP_S)
        if self._is_overdue() and (waiting := self._offered.n_records):
            await self._sender.stop(0.0)
            message = (
                f"{waiting} records were not delivered within {STOP_S:g} s of the stop: the broker is away"
            )
            raise self._failures.given_up(message)

    # -- writing --------------------------------------------------------------------------------------------

    def _write_when_due(self) -> None:
        """Write the offered records, or have this called again when they are due."""
        if self._is_closed or self._failures.is_any:
            return
        if self._backlog.n_runs and self._backlog.has_others(self._sender.crowded(MOST_WAITING)):
            self._write()
        if not self._offered.has_runs:
            return
        loop = asyncio.get_running_loop()
        now = loop.time()
        self._since = min(self._since, now)
        due = self._since
        if not self._n_flushes and self._offered.n_bytes < self._terms.batch_bytes:
            due += self._terms.linger_s
        if self._sender.is_behind and self._offered.n_bytes < EARLY_BYTES:
            due = max(due, self._since + MERGE_S)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if due > now:
            self._timer = loop.call_at(due, self._write_when_due)
            return
        self._write()

    def _write(self) -> None:
        """Write the offered records, except for those of partitions with many batches."""
        self._since = float("inf")
        try:
            self._sender.put(self._written())
        except Exception as error:  # noqa: BLE001 - records that are taken and not written must not be forgotten
            self._failures.given_up(f"records cannot be written: {error!r}")

    def _written(self) -> list[WrittenBatch]:
        """Return the offered records as batches."""
        identity = self._sender.identity
        terms = self._terms
        form = BatchForm(
            identity.producer,
            identity.epoch,
            terms.batch_bytes,
            terms.codec,
            is_transactional=False,
            level=terms.level,
            deadline=asyncio.get_running_loop().time() + terms.delivery_s,
        )
        runs, crowded = self._offered.take(), self._sender.crowded(MOST_WAITING)
        if crowded or self._backlog.n_runs:
            runs = self._backlog.to_write(runs, crowded)
            self._offered.n_kept_bytes = self._backlog.n_bytes
        batches: list[WrittenBatch] = []
        for topic, of_topic in runs.items():
            batches += write_runs(topic, of_topic, self._sequences, form)
        self._offered.written(batches)
        return batches

    # -- identity -------------------------------------------------------------------------------------------

    async def _new_identity(self) -> ProducerIdentity:
        """Connect if necessary, and return the identity that a broker gives; a refusal ends the producer."""
        pause, told = self._terms.pause_s, ""
        while True:
            try:
                return await self._requested_identity()
            except LostAnswerError as error:
                if str(error) != told:
                    logger.warning("producer: %s; trying again", error)
                    told = str(error)
            await asyncio.sleep(pause)
            pause = min(2 * pause, self._terms.longest_pause_s)

    async def _requested_identity(self) -> ProducerIdentity:
        """Return a new identity; raise LostAnswerError if another attempt may succeed."""
        await self._brokers.open()
        if (node := self._brokers.any_node()) is None:
            await self._brokers.reopen()
            message = "no broker is known"
            raise LostAnswerError(message)
        try:
            answer = await self._brokers.send(node, InitProducerId(None, NO_TIMEOUT_MS))
        except LostAnswerError:
            await self._brokers.reopen()  # the configured addresses may lead to other brokers
            raise
        code = answer.error_code
        if denied_kind(code) is not None:
            self._failures.ended(Codes(code))
            message = "the producer has got no identity"
            raise BrokerError(message)
        if verdict_on("InitProducerId", [code])[0] is not Verdict.DONE:
            raise LostAnswerError(Codes(code).str())
        return ProducerIdentity(answer.producer_id, answer.producer_epoch)
