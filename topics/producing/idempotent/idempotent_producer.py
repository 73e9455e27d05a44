"""Idempotent producer: records that count at once, in one request to each broker, by Kafka's protocol.

A record is delivered at least once and in the order of its partition. Twice only if a broker has lost the
numbers of earlier batches.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

import numpy as np
from confluent_kafka import KafkaError, KafkaException

from topics.clients.access import Access
from topics.clients.delivery_failures import DeliveryFailures
from topics.clients.sender import DEFAULTS
from topics.clients.stop_deadline import STOP_S
from topics.columns.records import Ints64
from topics.errors import AbortedError, DeliveryError
from topics.producing.batch_encoder import Run
from topics.producing.batch_producer import BatchProducer
from topics.producing.idempotent.delivery_flow import DeliveryFlow
from topics.producing.idempotent.delivery_terms import DeliveryTerms
from topics.producing.loop_thread import CLOSED, LoopThread

logger = logging.getLogger(__name__)

RECORD_ROOM: Final = 36
"""Bytes of a record beside its key, value and headers, at most."""

HEADER_ROOM: Final = 10
"""Bytes of a header beside its name and value, at most."""

QUEUE: Final = ("queue.buffering.max.messages", "queue.buffering.max.kbytes")


class IdempotentProducer(BatchProducer):
    """A producer without transactions, which counts the records that were not delivered.

    All methods raise DeliveryError or BrokerError once a record was not delivered.
    """

    def __init__(
        self,
        kafka: Mapping[str, Any],
        stopped: Callable[[], bool] = lambda: False,
        topics: Collection[str] = (),
    ) -> None:
        """`kafka` holds client properties under librdkafka's names; raises BrokerError for a wrong one.

        `topics`: some that will be written to; without any, the first metadata are of all topics of the
        cluster. Brokers are waited for as long as `delivery.timeout.ms` allows, but only STOP_S seconds once
        `stopped()` is true.
        """
        terms = DeliveryTerms.of(kafka)
        super().__init__({name: DEFAULTS[name] for name in QUEUE} | dict(kafka), stopped)
        self._most = terms.record_bytes
        self._failures = DeliveryFailures(Access.of(kafka))
        self._flow = DeliveryFlow(kafka, terms, self._offered, self._failures, self._deadline.is_over, topics)
        self._loop = LoopThread("outputs")
        self._loop.soon(self._flow.begin)

    @property
    def failed(self) -> int:
        """Return how many records were not delivered."""
        return self._failures.failed

    def hand_over(self) -> None:
        """Let the offered records be written and sent; never wait, and raise earlier failures."""
        self.check()
        if self._offered.has_runs and not self._flow.is_told:
            self._flow.is_told = True
            self._loop.soon(self._flow.handed_over)

    def drain(self) -> None:
        """Return when the producer is not full; raise earlier failures."""
        self.check()
        if self.is_full:
            self._flow_to_end(self._flow.make_room)

    def flush(self) -> None:
        """Return when everything is delivered; raise if a record cannot be delivered."""
        self.check()
        self._flow_to_end(self._flow.flush)

    def check(self) -> None:
        """Raise if any record could not be delivered, or the producer is closed."""
        self._failures.check()
        if self._is_closed:
            raise DeliveryError(CLOSED)

    def close(self) -> None:
        """Give up undelivered records; call `flush` first if they matter.

        Threads that wait in `drain` or `flush` get an error.
        """
        if self._is_closed:
            return
        self._is_closed = True
        if n := self.n_queued:
            self._failures.failed += n
            self._failures.given_up(f"{n} records were not delivered: the producer was closed")
        if not self._loop.close(self._flow.close(), STOP_S):
            logger.warning("producer: connections did not close")
        self._offered.clear()

    def _flow_to_end(self, wait: Callable[[], Any]) -> None:
        try:
            self._loop.run(wait())
        except AbortedError:  # closed by another thread
            self.check()
            raise DeliveryError(CLOSED) from None
        self.check()

    def _take(self, topic: str, run: Run) -> None:
        """Keep a run, up to the first record that is too large."""
        n = len(run.values)
        if run.n_bytes + n * RECORD_ROOM > self._most:
            n = self._n_that_fit(run)
        if n == len(run.values):
            self._offered.offer(topic, run)
            return
        if n:
            self._offered.offer(topic, run.where(np.arange(n)))
            self.hand_over()
        raise self._refusal(topic, run, n)

    def _n_that_fit(self, run: Run) -> int:
        """Return how many records come before the first one that is larger than `message.max.bytes`."""
        sizes: Ints64 = np.maximum(run.values.lengths, 0) + np.maximum(run.keys.lengths, 0) + RECORD_ROOM
        if run.headers is not None:
            names = np.array([len(name.encode()) for name in run.headers.names] or [0])
            ends = np.zeros(len(run.headers.name) + 1, dtype=np.int64)
            of_each = names[run.headers.name] + np.maximum(run.headers.values.lengths, 0) + HEADER_ROOM
            np.cumsum(of_each, out=ends[1:])
            sizes += ends[run.headers.first[1:]] - ends[run.headers.first[:-1]]
        too_large = np.flatnonzero(sizes > self._most)
        return int(too_large[0]) if len(too_large) else len(run.values)

    def _refusal(self, topic: str, run: Run, at: int) -> DeliveryError:
        code = KafkaError.MSG_SIZE_TOO_LARGE
        error = KafkaError(code, f"Unable to produce message: {KafkaError(code).str()}")
        value = run.values[at] or b""
        return self._failures.refused(topic, int(run.partitions[at]), value, KafkaException(error))
