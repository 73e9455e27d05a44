"""Delivery failures: records that a producer did not deliver, and the error that ended its client."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, Producer

from topics.clients.access import Access, denied_kind
from topics.errors import BrokerError, DeliveryError

logger = logging.getLogger(__name__)

_REMEDIES: Final = {
    KafkaError.INVALID_RECORD: "; its timestamp may be too far from now (message.timestamp.after.max.ms)",
    KafkaError.INVALID_TIMESTAMP: "; it is too far from now (message.timestamp.after.max.ms, before.max.ms)",
    KafkaError.MSG_SIZE_TOO_LARGE: "; raise max.message.bytes of the topic, or send fewer rows a block",
    KafkaError.UNKNOWN_TOPIC_OR_PART: "; create the topic with 'grove topics create'",
    KafkaError._UNKNOWN_TOPIC: "; create the topic with 'grove topics create'",  # noqa: SLF001
}

PROBE_S: Final = 10.0
PROBE_STEP_S: Final = 0.5


class DeliveryFailures:
    """The client's reports: records that were not delivered, and the end of the client itself.

    This is a separate object because the client holds its callbacks: methods of `Sender` would create a
    reference cycle, and the client with its threads would live until the garbage collector runs.
    """

    def __init__(self, access: Access) -> None:
        self._access = access
        self.failed = 0
        self.reason = ""
        self.fatal: BrokerError | None = None
        self._reason_is_another = False

    def delivered(self, error: KafkaError | None, message: Any) -> None:
        """Note a record that was not delivered."""
        if error is None:
            return
        self.failed += 1
        # For most records librdkafka reports only that another record of their batch was refused.
        if not self.reason or (self._reason_is_another and not _blames_another(error)):
            self.reason = f"{message.topic()}[{message.partition()}]: {self.explain(error, message.topic())}"
            self._reason_is_another = _blames_another(error)

    def not_delivered(self, topic: str, partition: int, error: KafkaError, n: int) -> None:
        """Note n records of a partition that were not delivered."""
        self.failed += n
        self.reason = self.reason or f"{topic}[{partition}]: {self.explain(error, topic)}"

    @property
    def is_any(self) -> bool:
        """Whether a record was not delivered, or the client has ended."""
        return self.fatal is not None or self.failed > 0

    def check(self) -> None:
        """Raise if any record could not be delivered."""
        if self.fatal is not None:
            raise self.fatal
        if self.failed:
            count = "1 record was" if self.failed == 1 else f"{self.failed} records were"
            message = f"{count} not delivered; {self.reason}"
            raise DeliveryError(message)

    def refused(self, topic: str, partition: int, value: bytes, failure: KafkaException) -> DeliveryError:
        """Return the error for a record that the client did not take; there is no later report of it."""
        cause = failure.args[0]
        if cause.code() == KafkaError._FATAL and self.fatal is not None:  # noqa: SLF001 - librdkafka's own code
            return self.given_up(str(self.fatal))  # the record is not at fault: the client has failed
        message = f"{topic}[{partition}]: a record of {len(value)} bytes: {cause.str()}"
        return self.given_up(message)

    def given_up(self, message: str) -> DeliveryError:
        """Return the error for records that will not be delivered, and keep it for every later check."""
        self.fatal = self.fatal or DeliveryError(message)
        return DeliveryError(message)

    def erred(self, error: KafkaError) -> None:
        if error.fatal():
            self.ended(error)
        else:
            logger.warning("producer: %s", error.str())

    def ended(self, error: KafkaError | None) -> None:
        """Note the error that ended the client; None: unknown."""
        why = "see its lines in the log" if error is None else self.explain(error)
        self.fatal = self.fatal or BrokerError(f"the producer has failed for good: {why}")

    def explain(self, error: KafkaError, topic: str = "") -> str:
        """Return the client's message, with a remedy."""
        denied = denied_kind(error.code())
        if denied == "topic":
            return self._access.denied("topic", topic, "Write,Describe")
        if denied == "cluster":  # a producer that may write to no topic gets no id
            return f"{self._access.denied('cluster', '', 'IdempotentWrite')}, or grant Write on its topics"
        return f"{error.str()}{_REMEDIES.get(error.code(), '')}"


def reason_to_end(properties: Mapping[str, Any]) -> KafkaError | None:
    """Return the error that ends a client with these properties; None if none comes within PROBE_S.

    The client raises its fatal error from its C code, and only once. If it writes a log line in the same
    call, the exception is lost and a SystemError appears instead. A second client, whose log lines stay in a
    queue without a reader, meets the same error and can report it.
    """
    client = Producer({**properties, "log.queue": True})
    deadline = time.monotonic() + PROBE_S
    try:
        while time.monotonic() < deadline:
            client.poll(PROBE_STEP_S)
    except KafkaException as failure:
        error: KafkaError = failure.args[0]
        return error
    return None


def _blames_another(error: KafkaError) -> bool:
    return bool(error.code() == KafkaError._INVALID_DIFFERENT_RECORD)  # noqa: SLF001 - such are its own codes
