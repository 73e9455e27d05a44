"""Transactional producer: the records of a transaction in one request to each broker, by Kafka's protocol.

    open ──> offer … offer ──> commit(offsets)      all of it, or
                          └──> abort                nothing of it

Records wait for the commit, so that all of them go together; above `EARLY_BYTES` they are sent before it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from topics.clients.group_member import GroupMember
from topics.clients.stop_deadline import STOP_S
from topics.errors import AbortedError
from topics.producing.batch_encoder import Run
from topics.producing.batch_producer import BatchProducer
from topics.producing.loop_thread import CLOSED, LoopThread
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


class TransactionalProducer(BatchProducer):
    """A producer whose records count only once their transaction is committed.

    All methods raise AbortedError if the transaction cannot be committed any more.
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
        super().__init__(kafka, stopped)
        wait_for_token(kafka)
        self.transactional_id = transactional_id
        self.is_open = False
        self._flow = TransactionFlow(
            kafka, transactional_id, timeout_ms, self._offered, self._deadline.is_over, topics
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

    def _take(self, topic: str, run: Run) -> None:
        """Make records a part of the transaction."""
        self._offered.offer(topic, run)

    def hand_over(self) -> None:
        """Begin to send the offered records if they are many; never wait."""
        self.check()
        if self._offered.n_bytes >= EARLY_BYTES or self._offered.n_held_bytes >= HELD_BYTES:
            self._loop.soon(self._flow.write_early)

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
        self._loop.run(self._flow.commit(positions, member))

    def abort(self) -> None:
        """Discard everything since the last commit; call `open` again before offering more."""
        try:
            self._loop.run(self._flow.abort())
        finally:
            self._offered.clear()
        self.is_open = False

    def close(self) -> None:
        """Give up undelivered records and close the connections; call `flush` or `commit` first."""
        if not self._is_closed:
            self._is_closed = True
            if not self._loop.close(self._flow.close(), STOP_S):
                logger.warning("transactional.id=%s: connections did not close", self.transactional_id)
        self._offered.clear()  # not before: a commit that has just begun would count without its records
