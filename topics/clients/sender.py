"""Sender: produces records at full speed and loses none silently.

The client reports only failed deliveries (a callback for each delivered record costs as much as producing
it); records that were produced and not reported are delivered once `flush` returns.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from confluent_kafka import KafkaException, Producer

from topics.client_calls import end_or_abandon
from topics.clients import librdkafka
from topics.clients.access import Access
from topics.clients.delivery_failures import DeliveryFailures, reason_to_end
from topics.clients.native_client import can_carry
from topics.clients.native_producer import NativeProducer
from topics.clients.offered import Offered, joined_where_small
from topics.columns.records import Headers, Ints64
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
STOP_S = 10.0


class Sender:
    """An idempotent producer that counts records that were not delivered.

    `send` and `send_run` wait while the client's queue is full. An event loop must not wait: it offers its
    records, and while the sender `is_full` another thread may `drain` it. One thread sends or offers;
    other threads may call `drain`, `flush` and `close`.

    A `native` sender uses librdkafka's client, if it can be bound, and a kernel that produces the records of
    a run in one call. Otherwise the client is confluent-kafka's, which is faster for single records.
    """

    def __init__(
        self,
        kafka: Mapping[str, Any],
        stopped: Callable[[], bool] = lambda: False,
        native: bool = False,
    ) -> None:
        """Open the producer; `kafka` holds client properties under Kafka's names.

        The sender waits for an unreachable broker as long as `delivery.timeout.ms` allows, but only STOP_S
        seconds once `stopped()` is true.
        """
        self._is_native = native
        self._stopped = stopped
        self._give_up_at = float("inf")
        self._offered: deque[Offered] = deque()  # in the order in which they were offered
        self._in_hand: deque[Offered] = deque()  # records that go before those; held by the producing thread
        self._gathers = False  # offered records wait for more
        self._has_room = True  # the client took all records at the last call
        self._handing_over = threading.Lock()  # its holder takes records from `_offered`
        self._kafka = kafka
        self._failures, self._producer = self._new_client()

    def _new_client(self) -> tuple[DeliveryFailures, Producer | NativeProducer]:
        failures = DeliveryFailures(Access.of(self._kafka))
        properties = {**DEFAULTS, **self._kafka}
        library = librdkafka.bound() if self._is_native else None
        try:
            if library is not None and can_carry(properties):
                from topics.clients.produce import produce_records  # loads the compiler

                reports = failures.delivered, failures.erred
                return failures, NativeProducer(library, properties, *reports, logger, produce_records)
            # A native client gets its token later: a client that takes the place of another ends no worker.
            wait_for_token(properties)
            properties |= {
                "delivery.report.only.error": True,
                "on_delivery": failures.delivered,
                "error_cb": failures.erred,
            }
            return failures, Producer(properties, logger=logger)
        except KafkaException as failure:
            message = f"the producer's properties are wrong: {failure.args[0].str()}; correct the setting"
            raise BrokerError(message) from None

    @property
    def failed(self) -> int:
        """Return how many records were not delivered."""
        return self._failures.failed

    @property
    def n_queued(self) -> int:
        """Return how many records and reports wait in the client's queue."""
        return len(self._producer)

    def send(
        self,
        topics: Iterable[str],
        values: Iterable[bytes],
        keys: Iterable[bytes],
        partitions: Iterable[int],
        timestamps: Iterable[int],
    ) -> None:
        """Produce records given as columns (timestamp 0: time of sending); raise earlier failures."""
        produce = self._producer.produce
        for topic, value, key, partition, timestamp in zip(
            topics, values, keys, partitions, timestamps, strict=False
        ):
            try:
                produce(topic, value, key, partition, None, None, timestamp)
            except BufferError:
                self._produce_when_there_is_room(topic, value, key, partition, timestamp)
            except KafkaException as failure:
                raise self._refused(topic, partition, value, failure) from None
        self._poll(0)
        self.check()

    def send_run(
        self,
        topic: str,
        partition: int | Ints64,
        values: Sequence[bytes | None],
        keys: Sequence[bytes | None],
        timestamps: Sequence[int],
        headers: Sequence[Headers] | None = None,
    ) -> None:
        """Produce records in order, as fast as the client can; raise earlier failures.

        `partition`: one for all records, or int64[n]. Waits while the client has no room.
        """
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
        """Produce records as `send_run` does, but never wait: records without room are kept, in order.

        `partition` is one for all records, or int64[n].
        """
        self._offered.append(Offered(topic, partition, values, keys, timestamps, headers))
        if not self._gathers:
            self.hand_over()

    @contextlib.contextmanager
    def gathering(self) -> Iterator[None]:
        """Keep records that are offered in this block for `hand_over`: small runs of several partitions take
        one call.

        A drain, a flush or a commit within the block sends them, too.
        """
        former, self._gathers = self._gathers, True
        try:
            yield
        finally:
            self._gathers = former

    def hand_over(self) -> None:
        """Produce offered records, as far as there is room; never wait."""
        if self._handing_over.acquire(blocking=False):  # else the draining thread will send them
            try:
                self._produce_offered()
            finally:
                self._handing_over.release()
        self._poll(0)
        self.check()

    @property
    def is_full(self) -> bool:
        """Whether records wait for room in the client's queue."""
        return self._is_waiting and not (self._gathers and self._has_room)

    @property
    def _is_waiting(self) -> bool:
        """Whether the client has not taken all offered records."""
        return bool(self._offered or self._in_hand)

    def drain(self) -> None:
        """Return when the client has taken all offered records; raise earlier failures."""
        if not self._is_waiting:
            return
        with self._handing_over:
            while not self._produce_offered():
                self._poll(ROOM_STEP_S)
                self._check_waiting()

    def _produce_offered(self) -> bool:
        """Produce offered records until there is no room; return whether all are taken.

        Nothing is produced after a failure.
        """
        self.check()
        while self._is_waiting:
            if not self._in_hand:
                self._take_in_hand()
            rest, producer = self._in_hand[0], self._producer
            if isinstance(producer, NativeProducer):
                n_taken, error = rest.hand_to_native(producer)
            else:
                n_taken, error = rest.hand_to(producer)
            if error is not None:
                value = rest.values[n_taken] or b""
                raise self._refused(rest.topic, rest.partition_of(n_taken), value, KafkaException(error))
            if n_taken < len(rest.values):
                rest.forget(n_taken)
                self._has_room = False
                return False
            self._in_hand.popleft()
        self._has_room = True
        return True

    def _take_in_hand(self) -> None:
        """Take the offered records, while another thread may offer more: each record is in at least one of
        the two queues.
        """
        offered = list(self._offered)
        self._in_hand = deque(
            joined_where_small(offered) if isinstance(self._producer, NativeProducer) else offered
        )
        for _ in offered:
            self._offered.popleft()

    def _produce_when_there_is_room(
        self, topic: str, value: bytes, key: bytes, partition: int, timestamp: int
    ) -> None:
        """Wait for room in the queue: its size is the back-pressure of a slow broker."""
        produce = self._producer.produce
        while True:
            self._poll(ROOM_STEP_S)
            self._check_waiting()
            try:
                produce(topic, value, key, partition, None, None, timestamp)
            except BufferError:
                continue
            except KafkaException as failure:
                raise self._refused(topic, partition, value, failure) from None
            return

    def check(self) -> None:
        """Raise if any record could not be delivered."""
        self._failures.check()

    def flush(self) -> None:
        """Return when everything is delivered; raise if a record cannot be delivered."""
        self.drain()
        while self._flush(FLUSH_STEP_S):
            self._check_waiting()
        self.check()

    def close(self) -> None:
        """Give up undelivered records; call `flush` first if they matter. A thread in `drain` gets an error.

        A client that is freed with records in its queue never frees their callbacks, and librdkafka's own
        close waits for the broker as long as `delivery.timeout.ms`.
        """
        n_undelivered = self._n_waiting()
        if n_undelivered:
            self._failures.given_up(f"{n_undelivered} records were not delivered: the producer was closed")
        with self._handing_over:
            self._forget_offered()
        end_or_abandon("the producer: close", self._give_up_waiting)

    def _give_up_waiting(self) -> None:
        """Give up the records in the client's queue, and let it report them."""
        self._producer.purge()
        self._flush(FLUSH_STEP_S)

    def _purge(self) -> None:
        """Give up the records in the client's queue; the client is not used any more."""
        end_or_abandon("the producer: purge", self._producer.purge)

    def _n_waiting(self) -> int:
        """Return how many offered records the client has not taken."""
        return sum(len(rest.values) for rest in (*self._in_hand, *self._offered))

    def _forget_offered(self) -> None:
        """Forget the records that the client has not taken; the caller must hold `_handing_over`."""
        self._offered.clear()
        self._in_hand.clear()

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
            self._failures.ended(reason_to_end({**DEFAULTS, **self._kafka}))

    def is_overdue(self) -> bool:
        """Whether the caller wants to end, and has waited for the broker long enough."""
        if not self._stopped():
            return False
        now = time.monotonic()
        self._give_up_at = min(self._give_up_at, now + STOP_S)
        return now >= self._give_up_at

    def _check_waiting(self) -> None:
        """Raise if there is no reason to wait for the broker any longer."""
        self.check()
        if self.is_overdue():
            waiting = len(self._producer) + self._n_waiting()
            self._purge()
            message = (
                f"{waiting} records were not delivered within {STOP_S:g} s of the stop: the broker is away"
            )
            raise self._failures.given_up(message)
