"""Topic catalogue: name, direction, key, cleanup, retention, size limits, co-partition group.

All code that creates, checks or names a topic uses this module; a new topic is one declaration in
`TopicNames`. All topics are in one co-partition group, with the same number of partitions, because an output
goes to the partition of its input. The key of a topic is the model key, partitioned by murmur2, except in
`journal`, `snapshots` and `audit`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, overload

Direction = Literal["in", "out", "internal"]

DEFAULT_PREFIX = "grove."
DEFAULT_PARTITIONS = 16

MODEL_KEY = "model key"
LEARNING = "learning"  # name of the co-partition group

HOUR_MS = 3600 * 1000
DAY_MS = 24 * HOUR_MS
UNLIMITED = -1
BLOCK_BYTES = 8 * 1024 * 1024  # a block record may carry thousands of rows; Kafka's own limit is 1 MiB
BROKER_BYTES = 1024 * 1024 + 12  # Kafka's own limit, for topics that set none
ROOM_BYTES = 64 * 1024  # room for additions to a record that an output repeats, such as headers
SEGMENT_BYTES = 64 * 1024 * 1024  # the last segment of a partition is never compacted; Kafka's own: 1 GiB


def retention(milliseconds: int) -> str:
    """Return a retention in words: such as ``7 days``, ``90 minutes``, ``1500 ms``, ``for ever``."""
    if milliseconds < 0:
        return "for ever"
    for unit, length in (("day", DAY_MS), ("hour", HOUR_MS), ("minute", 60_000)):
        n, rest = divmod(milliseconds, length)
        if n and not rest:
            return f"{n} {unit}{'s' * (n > 1)}"
    return f"{milliseconds} ms"


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic of the catalogue, without prefix and partition count, which belong to an installation."""

    name: str
    direction: Direction
    value: str  # the content of a record, in words
    retention_ms: int  # -1: for ever
    cleanup: Literal["delete", "compact"] = "delete"
    key: str = MODEL_KEY
    group: str = LEARNING
    max_message_bytes: int | None = None  # None: the broker's default
    delete_retention_ms: int = DAY_MS  # of a compacted topic: how long the marks of deleted records stay
    optional: bool = False  # needed by models that acquire features; other models run without it
    of_web: bool = False  # written only by `grove web`: workers run without it

    @property
    def config(self) -> dict[str, str]:
        """Return the topic configuration under Kafka's names, as `create` sets and `check` expects it."""
        config = {
            "cleanup.policy": self.cleanup,
            "retention.ms": str(self.retention_ms),
            "compression.type": "producer",  # the broker keeps the producer's batches as they are
            "message.timestamp.type": "CreateTime",  # the timestamp of a record is event time
        }
        if self.max_message_bytes is not None:
            config["max.message.bytes"] = str(self.max_message_bytes)
        if self.cleanup == "compact":
            config["delete.retention.ms"] = str(self.delete_retention_ms)
            config["segment.bytes"] = str(SEGMENT_BYTES)
        return config

    @overload
    def __get__(self, names: None, owner: type[TopicNames]) -> Topic: ...
    @overload
    def __get__(self, names: TopicNames, owner: type[TopicNames]) -> str: ...
    def __get__(self, names: TopicNames | None, owner: type[TopicNames]) -> Topic | str:
        """Return the definition for the class, the full name for the names of an installation."""
        return self if names is None else names.of(self)


@dataclass(frozen=True, slots=True)
class TopicNames:
    """The topics, each declared once: its definition on the class, its full name in an installation.

    >>> TopicNames("fraud.").label_requests
    'fraud.label-requests'
    >>> TopicNames.label_requests.retention_ms // DAY_MS
    7
    """

    prefix: str = DEFAULT_PREFIX
    features: bool = True
    """Whether the topics of feature acquisition exist; an older installation may lack them."""

    instances = Topic(
        "instances",
        "in",
        "features, optional id, label and weight",
        retention_ms=7 * DAY_MS,
        max_message_bytes=BLOCK_BYTES,
    )
    labels = Topic(
        "labels",
        "in",
        "instance id and label, or declined; optional weight, annotator and features",
        retention_ms=7 * DAY_MS,
        max_message_bytes=BLOCK_BYTES,
    )
    feature_values = Topic(
        "feature-values",
        "in",
        "instance id, values of requested features, names of features that are not available",
        retention_ms=7 * DAY_MS,
        max_message_bytes=BLOCK_BYTES,
        optional=True,
    )
    # Kept without limit: the configuration of a model is the result of all its commands, however old.
    controls = Topic(
        "controls",
        "in",
        "a command to the model of this key",
        retention_ms=UNLIMITED,
        max_message_bytes=BLOCK_BYTES,
    )
    predictions = Topic(
        "predictions",
        "out",
        "id, label, class probabilities, model version",
        retention_ms=7 * DAY_MS,
        max_message_bytes=BLOCK_BYTES,
    )
    # A request repeats all features of its instance, which may be one record as large as the largest.
    label_requests = Topic(
        "label-requests",
        "out",
        "request id, instance id, features, prediction, strategy, utility, expiry",
        retention_ms=7 * DAY_MS,
        max_message_bytes=BLOCK_BYTES + ROOM_BYTES,
    )
    # A request repeats the known features of its instance.
    feature_requests = Topic(
        "feature-requests",
        "out",
        "request id, instance id, names of features, their cost, the known features, expiry",
        retention_ms=7 * DAY_MS,
        max_message_bytes=BLOCK_BYTES + ROOM_BYTES,
        optional=True,
    )
    drift_alerts = Topic(
        "drift-alerts", "out", "detector, level, error rate, node, action", retention_ms=30 * DAY_MS
    )
    model_events = Topic(
        "model-events",
        "out",
        "events of a model: created, split, revised, pruned, drift, reset, deleted, …",
        retention_ms=90 * DAY_MS,
        max_message_bytes=BLOCK_BYTES + ROOM_BYTES,
    )
    evaluations = Topic(
        "evaluations",
        "out",
        "prequential metrics of a model, every N labels",
        retention_ms=30 * DAY_MS,
        max_message_bytes=BLOCK_BYTES + ROOM_BYTES,
    )
    # The unchanged record plus headers: as large as the largest input, with room for the headers.
    dead_letters = Topic(
        "dead-letters",
        "out",
        "the unchanged record, with the reason in its headers",
        retention_ms=90 * DAY_MS,
        max_message_bytes=BLOCK_BYTES + ROOM_BYTES,
    )
    # Kept without limit: a worker deletes the entries before its newest snapshots, which replace them. It
    # repeats controls, so its records may be as large as theirs.
    journal = Topic(
        "journal",
        "internal",
        "the records that a commit processed, in their order",
        retention_ms=UNLIMITED,
        key="none",
        max_message_bytes=BLOCK_BYTES + ROOM_BYTES,
    )
    # The changelog of a table. Each snapshot has its own keys, so each part of a snapshot that is deleted
    # leaves a mark. A reader that misses a mark keeps a part that no snapshot names: a restore deletes it.
    snapshots = Topic(
        "snapshots",
        "internal",
        "parts of snapshots, as the journal names them",
        retention_ms=UNLIMITED,
        cleanup="compact",
        key="part of a snapshot",
        delete_retention_ms=HOUR_MS,
    )
    # Actions of users. The actions of one user stay in order, because they are in one partition.
    audit = Topic(
        "audit",
        "internal",
        "actions of the web application's users: the user, the time, the record",
        retention_ms=365 * DAY_MS,
        key="user",
        of_web=True,
    )

    def __post_init__(self) -> None:
        """Refuse a prefix that Kafka would refuse later."""
        bad = sorted({c for c in self.prefix if not (c.isascii() and (c.isalnum() or c in "._-"))})
        if bad:
            message = (
                f"topics.prefix={self.prefix!r} must consist of letters, digits, '.', '_' and '-'; "
                f"remove {' '.join(map(repr, bad))}"
            )
            raise ValueError(message)
        if len(self.prefix) > 200:
            message = f"topics.prefix={self.prefix[:20]!r}… must have at most 200 characters"
            raise ValueError(message)

    def of(self, topic: Topic) -> str:
        """Return the full name of a topic: prefix and name."""
        return self.prefix + topic.name

    def all(self) -> dict[str, Topic]:
        """Return full name → definition, in the order of the catalogue."""
        return {self.of(topic): topic for topic in CATALOGUE}


CATALOGUE: Final = tuple(topic for topic in vars(TopicNames).values() if isinstance(topic, Topic))
"""All topics, in the order of their declarations."""
