"""Transactional sender: outputs become visible together with the committed offsets of their inputs.

    open ──> send … send ──> commit(offsets)        all of it, or
                        └──> abort                  nothing of it

A process has one transactional producer. Its id is fixed, so a restart ends the open transaction of its
predecessor.
"""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from topics.client_calls import CHECK_S, MAX_CHECKS, AbandonedCallError, ClientCalls
from topics.clients.access import Access, denied_kind
from topics.clients.group_member import GroupMember
from topics.clients.sender import Sender
from topics.columns.records import Headers, Ints64
from topics.errors import AbortedError, BrokerError, FencedError

logger = logging.getLogger(__name__)

TIMEOUT_MS: Final = 40_000
"""How long a dead producer's open transaction hides later records, if no producer takes over its id.

No record may wait longer for its broker. If a replica dies, the leader waits for it until the controllers
give it up (`broker.session.timeout.ms`, 9 s) and the partition has fewer replicas in sync. If a connection
between brokers dies, the end of the last transaction waits until they notice (`request.timeout.ms`, 30 s).
With less time than that and some more, such a failure would abort a transaction.
"""

SOCKET_MS: Final = 10_000
"""How long a request may be unanswered before its connection is taken for dead, and the request is repeated.

librdkafka's own value would be that of the whole transaction.
"""

STEP_S: Final = 5.0

OFFSETS_S: Final = 15.0
"""Time for the step that cannot be repeated: if the group's coordinator does not take the offsets in this
time, librdkafka fails the transaction. The coordinator, too, waits for a dead replica to be given up.
"""

NOTHING: Final[Mapping[tuple[str, int], str]] = {}
NO_OFFSETS: Final[Mapping[tuple[str, int], int]] = {}

STUCK_S: Final = 60.0
"""The longest time for a step while the broker answers. During a broker's shutdown librdkafka 2.16 may lose
the transaction coordinator for good, in the middle of a step. A new client finds it again and ends the old
client's transaction.
"""

ABORT_S: Final = STEP_S
"""The same for an abort, where waiting gains nothing: a new client ends the transaction, too."""

PAUSE_S: Final = 0.1
"""Pause between two attempts: most steps wait for the broker themselves, but some errors come at once."""

RECOVERY: Final = {"metadata.recovery.strategy": "none"}
"""When no broker answers, librdkafka 2.16 starts again with the configured addresses, but keeps a handle of
the group's coordinator that is no longer valid: it would never commit offsets again.
"""

QUICK_RETRIES: Final = {"retry.backoff.ms": 5}
"""The coordinator refuses the first step of a transaction while it still writes the end of the previous one,
which takes milliseconds. librdkafka's default first wait of 100 ms would be most of such a commit (`python -m
benchmarks.transactions`). Further waits double up to `retry.backoff.max.ms`, so a broker that is away gets
hardly more requests.
"""

_FENCED = (KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH)  # noqa: SLF001


class StuckError(AbortedError):
    """A step of a transaction that does not end."""


class TransactionalSender(Sender):
    """A sender whose records count only once their transaction is committed."""

    def __init__(
        self,
        kafka: Mapping[str, Any],
        transactional_id: str,
        stopped: Callable[[], bool] = lambda: False,
        timeout_ms: int = TIMEOUT_MS,
        native: bool = False,
    ) -> None:
        """Open the producer; after `timeout_ms` the broker aborts a transaction on its own."""
        super().__init__(
            {
                **RECOVERY,
                **QUICK_RETRIES,
                "socket.timeout.ms": min(SOCKET_MS, timeout_ms),
                **kafka,
                "transactional.id": transactional_id,
                "transaction.timeout.ms": timeout_ms,
            },
            stopped,
            native,
        )
        self.transactional_id = transactional_id
        self._access = Access.of(kafka)
        self.in_transaction = False
        self.is_open = False
        self._opening = threading.Lock()
        self._client_calls = ClientCalls()
        self._calls = itertools.count(1)
        self.call: int | None = None
        """Number of the client call that a step waits for, or None."""

    def open(self) -> None:
        """End the transaction that another producer with this id has left open, and fence it; waits for the
        broker.

        Concurrent callers wait for each other: the client takes one call at a time.
        """
        with self._opening:
            while not self.is_open:
                try:
                    self._patiently(lambda: self._wait(STEP_S, self._producer.init_transactions))
                    self.is_open = True
                except StuckError as error:
                    self._replace(error)

    def offer_run(
        self,
        topic: str,
        partition: int | Ints64,
        values: Sequence[bytes | None],
        keys: Sequence[bytes | None],
        timestamps: Sequence[int],
        headers: Sequence[Headers] | None = None,
    ) -> None:
        """Produce records as a part of the transaction; raise AbortedError if it cannot be committed any
        more.
        """
        self._begin()
        super().offer_run(topic, partition, values, keys, timestamps, headers)

    def commit(
        self,
        offsets: Mapping[tuple[str, int], int] = NO_OFFSETS,
        member: GroupMember | None = None,
        metadata: Mapping[tuple[str, int], str] = NOTHING,
    ) -> None:
        """Commit the sent records, and offsets (topic, partition → position; may be empty) for a group's
        member.

        `metadata` is committed with the offsets. Raises AbortedError
        if the transaction has to be aborted (the group moved on, records expired, another producer has the
        same id).
        """
        self.drain()
        self._begin()
        positions = [
            TopicPartition(topic, partition, at, metadata=metadata.get((topic, partition), ""))
            for (topic, partition), at in offsets.items()
        ]
        if positions:
            if member is None:
                message = "member must be given with offsets"
                raise ValueError(message)
            name = member.for_librdkafka()
            self._patiently(
                lambda: self._wait(OFFSETS_S, self._producer.send_offsets_to_transaction, positions, name)
            )
        self._patiently(lambda: self._wait(STEP_S, self._producer.commit_transaction))
        self.in_transaction = False
        self.check()

    def close(self) -> None:
        """Give up undelivered records, and end the thread of the client's calls."""
        super().close()
        self._client_calls.end()

    def abort(self) -> None:
        """Discard everything sent since the last commit; call `open` again before sending more."""
        with self._handing_over:
            self._forget_offered()
        try:
            if self.in_transaction:
                self._patiently(lambda: self._wait(STEP_S, self._producer.abort_transaction), ABORT_S)
            if self._failures.fatal is not None:
                raise self._failures.fatal
        except BrokerError as error:
            if self.is_overdue():
                raise
            self._replace(error)
        self.in_transaction = False
        self._failures.forget()

    def _replace(self, why: BrokerError) -> None:
        """Replace a client that can no longer do anything.

        librdkafka fails for good once the broker has ended a transaction on its own, as it does after an
        outage, and it cannot distinguish this from another producer with the same id. The group can: only the
        member that owns the name joins it again, and only that member opens the new client.
        """
        logger.warning("transactional.id=%s: a new producer is needed: %s", self.transactional_id, why)
        self._purge()
        old = [self._producer]
        self._failures, self._producer = self._new_client()
        self.is_open = False
        threading.Thread(target=old.clear, name="producer-end", daemon=True).start()  # this may take long

    def check(self) -> None:
        """Raise if the transaction cannot be committed."""
        try:
            super().check()
        except AbortedError:
            raise
        except BrokerError as error:
            raise AbortedError(str(error)) from None

    def _begin(self) -> None:
        if not self.in_transaction:
            self._patiently(self._producer.begin_transaction)
            self.in_transaction = True

    def _patiently(self, step: Callable[[], None], timeout_s: float = STUCK_S) -> None:
        """Run a step of the transaction protocol, repeatedly while the broker is slow or away.

        Raises AbortedError if only `abort` is possible (StuckError if the step did not succeed for
        `timeout_s` seconds), and BrokerError if the broker refuses the step.
        """
        reason, began = "", time.monotonic()
        while True:
            self.call = next(self._calls)
            try:
                step()
            except KafkaException as failure:
                error = failure.args[0]
                if error.fatal() or error.code() in _FENCED:
                    raise self._end(error) from None
                if error.txn_requires_abort() or error.code() == KafkaError._STATE:  # noqa: SLF001
                    raise AbortedError(error.str()) from None
                if error.code() == KafkaError._CONFLICT:  # noqa: SLF001 - comes at once, again and again
                    message = f"a step that has not come to an end is in the way: {error.str()}"
                    raise StuckError(message) from None
                if not error.retriable():
                    message = f"transactional.id={self.transactional_id}: {self._explain(error)}"
                    raise BrokerError(message) from None
                if reason != (reason := error.str()):
                    logger.warning("transactional.id=%s: %s; trying again", self.transactional_id, reason)
                self._check_stopping()
                if time.monotonic() - began > timeout_s:
                    message = f"the transaction coordinator was not heard of for {timeout_s:g} s: {reason}"
                    raise StuckError(message) from None
                self._poll(PAUSE_S)
            else:
                return
            finally:
                self.call = None

    def _wait(self, seconds: float, call: Callable[..., object], *arguments: object) -> None:
        """Run a call that waits for the broker for at most `seconds`, its last argument; StuckError if it
        never returns.
        """
        try:
            self._client_calls.run(lambda: call(*arguments, seconds))
        except AbandonedCallError:
            self._client_calls.end()  # a call that returns after all must not leave a waiting thread
            self._client_calls = ClientCalls()
            message = (
                f"the Kafka client has not returned from a call for {MAX_CHECKS * CHECK_S:g} s, though it "
                f"was given {seconds:g}"
            )
            raise StuckError(message) from None

    def _check_stopping(self) -> None:
        """Raise if there is no reason to wait for the broker any longer."""
        if self.is_overdue():
            message = "a transaction was not finished before the worker stopped: the broker is away"
            raise AbortedError(message)

    def _end(self, error: KafkaError) -> AbortedError:
        if error.code() in _FENCED:
            self._failures.fatal = FencedError(
                f"transactional.id={self.transactional_id}: the broker has ended the transaction, or another "
                f"producer has this id ({error.str()})"
            )
        else:
            self._failures.fatal = AbortedError(f"the producer has failed for good: {self._explain(error)}")
        return self._failures.fatal

    def _explain(self, error: KafkaError) -> str:
        if denied_kind(error.code()) == "transactional-id":
            return self._access.denied("transactional-id", self.transactional_id, "Write,Describe")
        return self._failures.explain(error)

    def _refused(self, topic: str, partition: int, value: bytes, failure: KafkaException) -> BrokerError:
        cause = failure.args[0]
        if cause.code() == KafkaError._STATE:  # noqa: SLF001 - the transaction failed before
            return AbortedError(f"{topic}[{partition}]: {self._failures.reason or cause.str()}")
        if cause.code() == KafkaError._FATAL:  # noqa: SLF001 - fenced; `check` says it the same way
            return AbortedError(str(self._failures.fatal or cause.str()))
        return super()._refused(topic, partition, value, failure)
