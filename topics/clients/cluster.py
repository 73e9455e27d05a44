"""Cluster: Kafka's administration client; whether it is reachable, and which topics there are.

Every call is bounded in time, and a cluster that does not answer is one clear error instead of librdkafka's
endless attempts and lines on stderr. If no broker listens, that error comes within ten seconds. A busy broker
that accepts connections and does not answer is tried again, with a line in the log every few seconds.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from typing import Any, TypeVar

from confluent_kafka import (
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    OffsetSpec,
    ResourceType,
)

from topics.clients.access import Access, Kind, denied_kind
from topics.errors import BrokerError, CatalogueError, TokenError, UnansweredError
from topics.patience import LEAST_S, Patience
from topics.tokens.sign_in import CALLBACK, source_in, wait_for_token

logger = logging.getLogger(__name__)

TIMEOUT_S = 8.0  # bound of one request; a person waits at most ten seconds for "not there"

_Answer = TypeVar("_Answer")

# Answers of a broker that is still getting ready: leaders of new topics, the coordinator of a first group.
NOT_YET = (
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError._NOENT,  # noqa: SLF001 - librdkafka's code for the first ones, see `refresh_metadata`
)

STALE = (
    KafkaError._NOENT,  # noqa: SLF001 - librdkafka's own codes look so
    KafkaError._TIMED_OUT,  # noqa: SLF001
    KafkaError._TRANSPORT,  # noqa: SLF001
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.UNKNOWN_LEADER_EPOCH,
)
"""Failures that may come from a client's cached metadata: another broker leads by now, or leads again."""

NONE_IS_DOWN = "0/"
"""How librdkafka 2.16 reports that 0 of several slow brokers are down, under the code for all of them."""

UNANSWERED = (
    KafkaError._TIMED_OUT,  # noqa: SLF001 - librdkafka's own codes look so
    KafkaError._TIMED_OUT_QUEUE,  # noqa: SLF001
    KafkaError._TRANSPORT,  # noqa: SLF001
    KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError.NOT_CONTROLLER,
    KafkaError.BROKER_NOT_AVAILABLE,
    KafkaError.NETWORK_EXCEPTION,
    KafkaError.THROTTLING_QUOTA_EXCEEDED,
)
"""Errors of a request that may have been carried out, or may be soon: it is sent again."""

# librdkafka's own errors (no broker answered) have negative codes, errors from a broker have positive codes.
_ADMIN_PROPERTIES = (
    "bootstrap.servers",
    "client.id",
    "security.",
    "sasl.",
    "ssl.",
    "socket.",
    "broker.",
    CALLBACK,
)


def refresh_metadata(client: Any, failure: KafkaException, topic: str, timeout: float = TIMEOUT_S) -> None:
    """Make a client fetch a topic's metadata after a failure that comes from what it has cached.

    librdkafka 2.16 caches a missing topic: once a client has requested the offsets of a topic that did not
    exist yet, or was not yet in the broker's metadata, it answers `list_offsets` with `_NOENT`, "No leaders
    found", for ever and without a request. And it waits for the controller that it knows, "Timed out waiting
    for controller", also while that broker is away and another one is the controller. And after a change of
    the leader and back, it sends the leader's old epoch again and again. A request for a topic's metadata
    clears all of this.
    """
    if failure.args[0].code() in STALE:
        with contextlib.suppress(KafkaException):  # then the next answer reports it
            client.list_topics(topic, timeout=timeout)


def listed_offset(answer: Future[Any], seconds: float) -> int:
    """Return the offset in an answer to `list_offsets`; KafkaException if the leader has not answered.

    librdkafka 2.16 reports success with the offset -1001 for a partition whose leader dies during the
    request, or does not answer in time. `seconds`: longest wait for the answer.
    """
    offset = int(answer.result(seconds).offset)
    if offset < 0:
        error = KafkaError(KafkaError.LEADER_NOT_AVAILABLE, "the partition's leader did not answer")
        raise KafkaException(error)
    return offset


def serve_events(client: Any) -> None:
    """Serve the events of a client's connections; call it after each request of a client that lives long.

    librdkafka keeps an event for each failed connection and each request without an answer, until the client
    is polled: about 3 KB for each request while no broker listens.
    """
    client.poll(0)


class _Complaint:
    """The last error that the client reported.

    This is a separate object because the client holds its callback: a method of `Cluster` would create a
    reference cycle, and the client with its threads would live until the garbage collector runs.
    """

    def __init__(self) -> None:
        self.text = ""
        self.of_credentials = False  # the broker answers, but refuses the credentials
        self.of_all = False  # no broker can be reached

    def clear(self) -> None:
        """Forget the error: a broker has answered since."""
        self.text, self.of_credentials, self.of_all = "", False, False

    def __call__(self, error: KafkaError) -> None:
        if error.str().startswith(NONE_IS_DOWN):
            return
        refused = error.code() == KafkaError._AUTHENTICATION  # noqa: SLF001 - librdkafka's own codes look so
        down = error.code() == KafkaError._ALL_BROKERS_DOWN  # noqa: SLF001
        self.of_all = self.of_all or refused or down
        if down and self.text:
            return  # keep the more specific reason
        if refused or not self.of_credentials:
            self.text, self.of_credentials = error.str().split(" (after ")[0], refused


class Cluster:
    """The administration side of a Kafka cluster.

    `kafka` holds client properties under Kafka's names (`bootstrap.servers`, `security.protocol`, …);
    properties that only producers or consumers have are left out.
    """

    def __init__(
        self, kafka: Mapping[str, Any], timeout: float = TIMEOUT_S, patience_s: float = LEAST_S
    ) -> None:
        """Open no connection yet: librdkafka does that with the first request. Waits for a token if one is
        needed; may raise TokenError.

        `timeout` bounds one request, in seconds; after `patience_s` seconds a request to a busy broker is not
        repeated.
        """
        self.address = str(kafka.get("bootstrap.servers", "")).strip()
        if not self.address:
            message = "bootstrap.servers must be set, for example bootstrap.servers=localhost:9092"
            raise BrokerError(message)
        self.kafka = kafka
        self.timeout = timeout
        self._patience_s = patience_s
        self.access = Access.of(kafka)
        self._complaint = _Complaint()
        self._tokens = source_in(kafka)
        wait_for_token(kafka)
        self._client = AdminClient(self.properties(kafka) | {"error_cb": self._complaint})

    @staticmethod
    def properties(kafka: Mapping[str, Any]) -> dict[str, Any]:
        """Return the properties that every kind of client has, with logging to stderr turned off."""
        return {key: value for key, value in kafka.items() if key.startswith(_ADMIN_PROPERTIES)} | {
            "log_level": 0
        }

    @property
    def client(self) -> Any:
        """Return the confluent-kafka AdminClient."""
        return self._client

    @property
    def complaint(self) -> str:
        """The client's reason why it can reach no broker; empty if it reaches one, or has not tried yet."""
        self._client.poll(0)  # serves error_cb
        return self._complaint.text if self._complaint.of_all else ""

    def partition_counts(self, names: Iterable[str] | None = None) -> dict[str, int]:
        """Return topic → number of partitions of those topics in `names` (default: all) that exist."""
        metadata = self.topics()
        asked = metadata if names is None else names
        return {name: len(metadata[name].partitions) for name in asked if name in metadata}

    def partition_count(self, name: str) -> int:
        """Return the number of partitions of a topic that must exist."""
        counts = self.partition_counts([name])
        if name not in counts:
            if self.hidden([name]):
                raise CatalogueError(self.access.denied("topic", name, "Describe"))
            message = (
                f"topic {name!r} does not exist at {self.address}; create it with 'grove topics create' "
                f"or set topics.prefix to the prefix in use"
            )
            raise CatalogueError(message)
        return counts[name]

    @property
    def id(self) -> str | None:
        """The cluster's id, which does not depend on its address; None before Kafka 0.10.1."""
        metadata = self._answer(lambda: self._client.list_topics(timeout=self.timeout))
        cluster_id: str | None = metadata.cluster_id
        return cluster_id

    def topics(self) -> dict[str, Any]:
        """Return topic → metadata (partitions with leader, replicas, in-sync replicas) of all topics."""
        return dict(self._answer(lambda: self._client.list_topics(timeout=self.timeout)).topics)

    def _answer(self, ask: Callable[[], _Answer]) -> _Answer:
        """Return the answer to a request, which is repeated while the broker is there and too busy for it."""
        patience = Patience(self._patience_s, logger.warning)
        while True:
            try:
                answer = ask()
            except KafkaException as failure:
                is_busy = failure.args[0].code() in UNANSWERED and not self.complaint
                if not is_busy or patience.is_over:
                    raise self.error(failure) from None
            else:
                self._complaint.clear()
                return answer
            self._client.poll(patience.pause(f"bootstrap.servers={self.address} does not answer yet"))

    def hidden(self, names: Iterable[str]) -> list[str]:
        """Return those of these invisible topics that may exist and be hidden from this client."""
        asked = list(names)
        if not asked:
            return []
        return self._answer(lambda: self._hidden(asked))

    def _hidden(self, asked: list[str]) -> list[str]:
        futures = self._client.describe_topics(TopicCollection(asked), request_timeout=self.timeout)
        hidden = []
        for name, future in futures.items():
            try:
                future.result(timeout=self.timeout + 1)
            except KafkaException as failure:
                code = failure.args[0].code()
                if code == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                    hidden.append(name)
                elif code != KafkaError.UNKNOWN_TOPIC_OR_PART:
                    raise
        return hidden

    def offsets(
        self,
        partitions: Iterable[TopicPartition],
        spec: OffsetSpec,
        isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
    ) -> dict[tuple[str, int], int]:
        """Return the offset that `spec` selects in each partition, such as the first or the end.

        The metadata names a leader for a new topic before that broker acts as one, and leaders move: requests
        for such partitions are repeated, as are requests to a busy broker.
        """
        offsets: dict[tuple[str, int], int] = {}
        patience = Patience(self._patience_s, logger.warning)
        unanswered = list(partitions)
        while unanswered:
            futures = self._client.list_offsets(
                dict.fromkeys(unanswered, spec), isolation_level=isolation_level, request_timeout=self.timeout
            )
            unanswered = []
            for tp, future in futures.items():
                try:
                    offsets[tp.topic, tp.partition] = listed_offset(future, self.timeout + 1)
                except KafkaException as failure:
                    code = failure.args[0].code()
                    is_early = code in NOT_YET or (code in UNANSWERED and not self.complaint)
                    if not is_early or patience.is_over:
                        raise self.error(failure, tp.topic, "Describe", "topic") from None
                    refresh_metadata(self._client, failure, tp.topic, self.timeout)
                    unanswered.append(tp)
            if unanswered:
                self._client.poll(
                    patience.pause(f"{len(unanswered)} partitions have no leader that answers yet")
                )
        return offsets

    def configs(self, names: Iterable[str]) -> dict[str, dict[str, str]]:
        """Return topic → its configuration under Kafka's names, with defaults, for visible topics."""
        return self._configs(names, lambda entry: True)  # noqa: ARG005 - all of them

    def overrides(self, names: Iterable[str]) -> dict[str, dict[str, str]]:
        """Return topic → its own settings under Kafka's names, without defaults, for visible topics."""
        own = ConfigSource.DYNAMIC_TOPIC_CONFIG.value
        return self._configs(names, lambda entry: ConfigSource(entry.source).value == own)

    def _configs(
        self, names: Iterable[str], is_listed: Callable[[ConfigEntry], bool]
    ) -> dict[str, dict[str, str]]:
        resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]
        if not resources:
            return {}
        return self._answer(lambda: self._described(resources, is_listed))

    def _described(
        self, resources: list[ConfigResource], is_listed: Callable[[ConfigEntry], bool]
    ) -> dict[str, dict[str, str]]:
        futures = self._client.describe_configs(resources, request_timeout=self.timeout)
        answers = {}
        for resource, future in futures.items():
            try:
                entries = future.result(timeout=self.timeout + 1)
            except KafkaException as failure:
                if failure.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                    continue
                raise
            answers[resource.name] = {
                key: str(entry.value) for key, entry in entries.items() if is_listed(entry)
            }
        return answers

    def message_limits(self, names: Iterable[str]) -> dict[str, int]:
        """Return topic → the largest batch it takes, in bytes."""
        return {name: int(config["max.message.bytes"]) for name, config in self.configs(names).items()}

    def result(self, future: Any, name: str = "", operation: str = "", kind: Kind | None = None) -> Any:
        """Return the result of a request's future; its errors are raised as ours (`error` explains the
        names).
        """
        try:
            return future.result(timeout=self.timeout + 1)
        except KafkaException as failure:
            raise self.error(failure, name, operation, kind) from None

    def error(
        self, failure: KafkaException, name: str = "", operation: str = "", kind: Kind | None = None
    ) -> BrokerError:
        """Return the exception for a failed request.

        `name` and `operation` are the topic or group, if there is one, and the operation on it; `kind` is
        topic or group.
        """
        cause = failure.args[0]
        denied = denied_kind(cause.code())
        if denied is not None and operation and kind in (None, denied):
            return BrokerError(self.access.denied(denied, name, operation))
        self._client.poll(0)  # serves error_cb: only it gets the reason for a timeout
        if cause.code() < 0 and self._complaint.of_credentials:
            if self._tokens is not None and self._tokens.status.failure:
                return TokenError(self._tokens.status.failure)
            remedy = "sasl.mechanism, sasl.username and sasl.password"
            if self._tokens is not None:
                remedy = (
                    f"what the broker and {self._tokens.place} expect: issuer, audience, scope and clocks"
                )
            message = (
                f"bootstrap.servers={self.address} does not let this client in ({self._complaint.text}); "
                f"correct {remedy}"
            )
            return BrokerError(message)
        if cause.code() < 0:
            reason = f" ({self._complaint.text})" if self._complaint.text else ""
            message = (
                f"bootstrap.servers={self.address} did not answer within "
                f"{self.timeout if reason else max(self.timeout, self._patience_s):g} s{reason}; "
                f"start a broker there (for example 'grove broker') or set bootstrap.servers to one that runs"
            )
            return UnansweredError(message)
        return BrokerError(f"bootstrap.servers={self.address} refused the request: {cause.str()}")
