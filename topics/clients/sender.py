"""Sender: produces records by confluent-kafka's client and loses none silently.

The client reports only failed deliveries (a callback for each delivered record costs as much as producing
it); records that were produced and not reported are delivered once `flush` returns.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import repeat
from typing import Any

from confluent_kafka import KafkaException, Producer

from topics.client_calls import end_or_abandon
from topics.clients.access import Access
from topics.clients.delivery_failures import DeliveryFailures, reason_to_end
from topics.clients.stop_deadline import STOP_S, StopDeadline
from topics.columns.records import Headers
from topics.definitions import BLOCK_BYTES
from topics.errors import BrokerError
from topics.tokens.sign_in import wait_for_token

logger = logging.getLogger(__name__)

BATCH_BYTES = 256 * 1024  # size of a batch of records, before compression

# The caller's properties override these.
DEFAULTS: Mapping[str, Any] = {
    "acks": "all",
    "enable.idempotence": True,
    "compression.type": "lz4",
    "linger.ms": 5,
    "batch.size": BATCH_BYTES,
    "queue.buffering.max.messages": 200_000,
    "queue.buffering.max.kbytes": 256 * 1024,
    "message.max.bytes": BLOCK_BYTES,
    "partitioner": "murmur2_random",  # not used: every record has its partition
}

FLUSH_STEP_S = 0.5
ROOM_STEP_S = 0.05

Row = tuple[str, bytes | None, bytes | None, int, int, Any]
"""Topic, value, key, partition, timestamp and headers (a list of pairs, or None) of a record."""


class Sender:
    """An idempotent producer that counts records that were not delivered.

    `send` and `send_run` wait while the client's queue is full. All methods are called by one thread.
    """

    def __init__(self, kafka: Mapping[str, Any], stopped: Callable[[], bool] = lambda: False) -> None:
        """Open the producer; `kafka` holds client properties under Kafka's names.

        The sender waits for an unreachable broker as long as `delivery.timeout.ms` allows, but only STOP_S
        seconds once `stopped()` is true. Raises BrokerError for wrong properties, and TokenError if the
        properties sign in by a token and there is none.
        """
        self._deadline = StopDeadline(stopped)
        self._properties = {**DEFAULTS, **kafka}
        self._failures = DeliveryFailures(Access.of(kafka))
        self._producer = self._opened()

    def _opened(self) -> Producer:
        wait_for_token(self._properties)
        reports = {
            "delivery.report.only.error": True,
            "on_delivery": self._failures.delivered,
            "error_cb": self._failures.erred,
        }
        try:
            return Producer(self._properties | reports, logger=logger)
        except KafkaException as failure:
            message = f"the producer's properties are wrong: {failure.args[0].str()}; correct the setting"
            raise BrokerError(message) from None

    @property
    def failed(self) -> int:
        """Return how many records were not delivered."""
        return self._failures.failed

    def send(
        self,
        topics: Iterable[str],
        values: Iterable[bytes],
        keys: Iterable[bytes],
        partitions: Iterable[int],
        timestamps: Iterable[int],
    ) -> None:
        """Produce records given as columns, in order; raise earlier failures.

        Timestamps are in ms since the epoch, 0: time of sending.
        """
        self._produce(zip(topics, values, keys, partitions, timestamps, repeat(None), strict=False))

    def send_run(
        self,
        topic: str,
        partition: int,
        values: Sequence[bytes | None],
        keys: Sequence[bytes | None],
        timestamps: Sequence[int],
        headers: Sequence[Headers] | None = None,
    ) -> None:
        """Produce records of one partition in order, with or without headers; raise earlier failures.

        Timestamps are in ms since the epoch, 0: time of sending.
        """
        named = repeat(None) if headers is None else headers
        self._produce(zip(repeat(topic), values, keys, repeat(partition), timestamps, named, strict=False))

    def _produce(self, rows: Iterable[Row]) -> None:
        """Produce records in order; nothing is produced after a failure."""
        self.check()
        produce = self._producer.produce
        for topic, value, key, partition, timestamp, headers in rows:
            try:
                while True:
                    try:
                        produce(topic, value, key, partition, None, None, timestamp, headers)
                        break
                    except BufferError:
                        self._wait_for_room()
            except KafkaException as failure:
                raise self._refused(topic, partition, value or b"", failure) from None
        self._poll(0)
        self.check()

    def _wait_for_room(self) -> None:
        """Wait a little for room in the queue: its size is the back-pressure of a slow broker."""
        self._poll(ROOM_STEP_S)
        self._check_waiting()

    def check(self) -> None:
        """Raise if any record could not be delivered."""
        self._failures.check()

    def flush(self) -> None:
        """Return when everything is delivered; raise if a record cannot be delivered."""
        while self._flush(FLUSH_STEP_S):
            self._check_waiting()
        self.check()

    def close(self) -> None:
        """Give up undelivered records; call `flush` first if they matter.

        A client that is freed with records in its queue never frees their callbacks, and librdkafka's own
        close waits for the broker as long as `delivery.timeout.ms`.
        """
        end_or_abandon("the producer: close", self._give_up_waiting)

    def _give_up_waiting(self) -> None:
        """Give up the records in the client's queue, and let it report them."""
        self._producer.purge()
        self._flush(FLUSH_STEP_S)

    def _purge(self) -> None:
        """Give up the records in the client's queue; the client is not used any more."""
        end_or_abandon("the producer: purge", self._producer.purge)

    def _refused(self, topic: str, partition: int, value: bytes, failure: KafkaException) -> BrokerError:
        """Return the error for a record that the client did not take, or the error that ended the client."""
        self._poll(0)
        return self._failures.refused(topic, partition, value, failure)

    def _poll(self, seconds: float) -> None:
        """Serve the client's callbacks for this time."""
        self._serve(self._producer.poll, seconds)

    def _flush(self, seconds: float) -> int:
        """Return how many records still wait after `seconds`."""
        self._serve(self._producer.flush, seconds)
        return len(self._producer)

    def _serve(self, call: Callable[[float], int], seconds: float) -> None:
        """Call the client; its fatal error is raised here and not passed to `error_cb`."""
        try:
            call(seconds)
        except KafkaException as failure:
            self._failures.erred(failure.args[0])
        except SystemError:
            self._failures.ended(reason_to_end(self._properties))

    def _check_waiting(self) -> None:
        """Raise if there is no reason to wait for the broker any longer."""
        self.check()
        if self._deadline.is_over():
            waiting = len(self._producer)
            self._purge()
            message = (
                f"{waiting} records were not delivered within {STOP_S:g} s of the stop: the broker is away"
            )
            raise self._failures.given_up(message)
