"""Source watch: whether the source topics are still the same as at the worker's start.

A deleted topic cannot be consumed, and a topic with more partitions spreads the records of a model over
several tasks. Kafka Streams shuts down in these cases, and so does a worker: if it continued with the
remaining topics, it would look healthy and answer nothing. If a broker's metadata lacks a topic for a moment,
the worker waits for the topic.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, Final

from streamapp.errors import StreamappError

TIMEOUT_S: Final = 5.0  # seconds a topic may be missing
LOOK_AGAIN: Final = 0.25  # seconds between checks of a missing topic


class SourceTopicError(StreamappError):
    """A source topic was deleted, is forbidden, or has another number of partitions than before."""


class SourceWatch:
    """Listens to aiokafka's metadata, in the loop of the consumer's thread."""

    def __init__(
        self,
        topics: Iterable[str],
        refresh: Callable[[], Any],
        report: Callable[[SourceTopicError], None],
        partitions: int | None = None,
    ) -> None:
        """`refresh` requests metadata from the broker; `report` is called once, when waiting is useless;
        `partitions`: number of each topic's partitions before the worker joined the group.
        """
        self._topics = tuple(topics)
        self._refresh = refresh
        self._report = report
        self._partitions = partitions
        self._began: dict[str, int] = {}  # partitions of each topic when it was first seen
        self._missing: dict[str, str] = {}  # topic -> its last known state
        self._waiting: asyncio.Task[None] | None = None
        self._error: SourceTopicError | None = None

    @property
    def suspects(self) -> bool:
        """Whether a topic is missing, for the moment or for good."""
        return bool(self._missing) or self._error is not None

    def check(self) -> None:
        """Raise an error for a permanent change."""
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        """Stop waiting."""
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def compare(self, cluster: Any) -> None:
        """Compare aiokafka's fresh metadata with the first metadata."""
        counts = {topic: len(cluster.partitions_for_topic(topic) or ()) for topic in self._topics}
        for topic, n in counts.items():
            if n:
                self._began.setdefault(topic, n if self._partitions is None else self._partitions)
        changed = {t: n for t, n in counts.items() if n and n != self._began[t]}
        forbidden = cluster.unauthorized_topics
        self._missing = {
            topic: "must be readable: this client has lost its rights"
            if topic in forbidden
            else "was deleted"
            for topic in self._began
            if not counts[topic]
        }
        if changed:
            self._fail(_changed(changed, self._began))
        elif self._missing and self._waiting is None and self._error is None:
            self._waiting = asyncio.ensure_future(self._wait())

    async def _wait(self) -> None:
        """Check again until the topics are back, or the time is over."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + TIMEOUT_S
        while self._missing and loop.time() < deadline:
            await asyncio.sleep(LOOK_AGAIN)
            await self._refresh()
        self._waiting = None
        if self._missing:
            self._fail(_missing(self._missing))

    def _fail(self, message: str) -> None:
        if self._error is None:
            self._error = SourceTopicError(message)
            self._report(self._error)


def _missing(topics: dict[str, str]) -> str:
    what = "; ".join(f"topic {topic!r} {fate}" for topic, fate in sorted(topics.items()))
    return (
        f"{what}. A worker does not go on without a source: create the topics with 'grove topics create' (or "
        "grant Describe and Read), then start the workers again; 'grove models restore' keeps the models of "
        "a partition whose source was created again"
    )


def _changed(topics: dict[str, int], before: dict[str, int]) -> str:
    what = "; ".join(f"topic {t!r} has {n} partitions, it had {before[t]}" for t, n in sorted(topics.items()))
    return (
        f"{what}. A key's records are now in another partition than its model: stop the producers and move "
        "the models with 'grove migrate' to topics of another prefix (docs/operations.md#changing-the-"
        "partition-count)"
    )
