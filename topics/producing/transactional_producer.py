"""Transactional producer: the records of a transaction in one request to each broker, by Kafka's protocol.

    open ──> offer … offer ──> commit(offsets)      all of it, or
                          └──> abort                nothing of it

Records wait for the commit, so that all of them go together; above `EARLY_BYTES` they are sent before it.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from topics.clients.group_member import GroupMember
from topics.clients.offered import partition_of_each
from topics.clients.sender import STOP_S
from topics.columns.header_columns import HeaderColumns
from topics.columns.records import Headers, Ints64
from topics.columns.spans import Spans
from topics.errors import AbortedError
from topics.producing.batch_encoder import Run
from topics.producing.loop_thread import CLOSED, LoopThread
from topics.producing.offered_runs import OfferedRuns
from topics.producing.transaction_flow import TransactionFlow
from topics.producing.transaction_requests import Place
from topics.producing.transactional_offsets import OffsetToCommit
from topics.tokens.sign_in import wait_for_token

logger = logging.getLogger(__name__)

EARLY_BYTES: Final = 1 << 20
"""Bytes of records that are sent without waiting for the commit."""

HELD_BYTES: Final = 16 << 20
"""Bytes of the buffers of records, with the same effect."""

TIMEOUT_MS: Final = 40_000
"""How long a dead producer's open transaction hides later records, if no producer takes over its id.

No record may wait longer for its broker. If a replica dies, the leader waits for it until the controllers
give it up (`broker.session.timeout.ms`, 9 s) and the partition has fewer replicas in sync. If a connection
between brokers dies, the end of the last transaction waits until they notice (`request.timeout.ms`, 30 s).
With less time than that and some more, such a failure would abort a transaction.
"""

NO_OFFSETS: Final[Mapping[Place, int]] = {}
NOTHING: Final[Mapping[Place, str]] = {}


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
        topics: Collection[str] = (),
    ) -> None:
        """`kafka` holds client properties under librdkafka's names; after `timeout_ms` the broker aborts a
        transaction on its own. `topics`: some that will be written to; without any, the first metadata are of
        all topics of the cluster. Waits for a token if one is needed; may raise TokenError.

        Brokers are waited for, but only STOP_S seconds once `stopped()` is true.
        """
        wait_for_token(kafka)
        self.transactional_id = transactional_id
        self.in_transaction = False
        self.is_open = False
        self._stopped = stopped
        self._give_up_at = float("inf")
        self._offered = OfferedRuns.of(kafka)
        self._gathers = False
        self._is_closed = False
        self._flow = TransactionFlow(
            kafka, transactional_id, timeout_ms, self._offered, self.is_overdue, topics
        )
        self._opening = threading.Lock()
        self._loop = LoopThread("producer")

    @property
    def call(self) -> int | None:
        """Number of the request that a step waits for, or None."""
        return self._flow.call

    # -- offering -------------------------------------------------------------------------------------------

    def expect(self, places: Collection[Place], group: str) -> None:
        """Prepare the next commit, of records for these partitions and of offsets of a group; never wait.

        Partitions and group become a part of the transaction while the caller computes the records, so that
        the commit has fewer steps.
        """
        if not self._is_closed:
            self._loop.soon(lambda: self._flow.expect(places, group))

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
        if self._offered.n_bytes >= EARLY_BYTES or self._offered.n_held_bytes >= HELD_BYTES:
            self._loop.soon(self._flow.write_early)

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
        if self._is_closed:
            raise AbortedError(CLOSED)
        failure = self._flow.failure
        if failure is not None:
            raise failure if isinstance(failure, AbortedError) else AbortedError(str(failure))

    # -- steps ----------------------------------------------------------------------------------------------

    def open(self) -> None:
        """End the transaction that another producer with this id has left open, and fence it.

        Waits for the brokers; concurrent callers wait for each other.
        """
        with self._opening:
            if not self.is_open:
                self._loop.run(self._flow.open())
                self.is_open = True

    def flush(self) -> None:
        """Return when all offered records are delivered; raise if a record cannot be delivered."""
        self.check()
        self._loop.run(self._flow.flush())

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
        self._loop.run(self._flow.commit(positions, member))
        self.in_transaction = False

    def abort(self) -> None:
        """Discard everything since the last commit; call `open` again before offering more."""
        try:
            self._loop.run(self._flow.abort())
        finally:
            self._offered.clear()
        self.in_transaction = self.is_open = False

    def close(self) -> None:
        """Give up undelivered records and close the connections; call `flush` or `commit` first."""
        if not self._is_closed:
            self._is_closed = True
            if not self._loop.close(self._flow.close(), STOP_S):
                logger.warning("transactional.id=%s: connections did not close", self.transactional_id)
        self._offered.clear()  # not before: a commit that has just begun would count without its records

    def is_overdue(self) -> bool:
        """Whether the caller wants to end, and has waited for the broker long enough."""
        if not self._stopped():
            return False
        now = time.monotonic()
        self._give_up_at = min(self._give_up_at, now + STOP_S)
        return now >= self._give_up_at
