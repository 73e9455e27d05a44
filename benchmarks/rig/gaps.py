"""Gaps in the answers of each partition, as a reader sees them."""

from __future__ import annotations

import itertools
import threading
import time
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from types import TracebackType
from typing import Any, Self

import orjson
from confluent_kafka import Consumer, KafkaException, TopicPartition


@dataclass(frozen=True)
class Gap:
    """The longest gap of some partitions, in seconds.

    A silence is the time between two answers of a partition. A delay is the time from producing a record to
    its visible answer; it does not count pauses of the producer itself.
    """

    partitions: int
    silence: float | None
    delay: float | None

    def to_dict(self) -> dict[str, Any]:
        return {n: None if v is None else round(v, 3) for n, v in asdict(self).items()}


class AnswerWatch:
    """Reads all answers (read_committed) in a thread; an id is the time at which its record was produced
    (paced.py).
    """

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "unused",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "fetch.wait.max.ms": 10,
            }
        )
        self._consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
        self._seen: dict[int, list[tuple[int, int]]] = defaultdict(list)  # (seen, produced), ns
        self._stopped = threading.Event()
        self._failed: KafkaException | None = None
        self._thread = threading.Thread(target=self._run, name="answers")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopped.set()
        self._thread.join()
        self._consumer.close()
        if self._failed is not None and kind is None:
            raise self._failed

    def _run(self) -> None:
        while not self._stopped.is_set():
            message = self._consumer.poll(0.1)
            if message is None:
                continue
            if message.error() is not None:
                self._failed = KafkaException(message.error())
                return
            partition, value = message.partition(), message.value()
            assert partition is not None and value is not None
            handed_over = int(orjson.loads(value)["id"])
            self._seen[partition].append((time.monotonic_ns(), handed_over))

    @property
    def newest(self) -> dict[int, int]:
        """Return, by partition, when the newest answered record was produced (monotonic ns)."""
        return {partition: seen[-1][1] for partition, seen in list(self._seen.items())}

    def gap(self, partitions: Collection[int], since: int) -> Gap:
        """Return the longest gap of `partitions` that ends after `since` (monotonic ns)."""
        return worst([list(self._seen[partition]) for partition in partitions], since)


def worst(answers: Sequence[Sequence[tuple[int, int]]], since: int) -> Gap:
    """Return the longest gap of some partitions; each has (seen, produced) of its answers in order, in ns.

    A silence that began before `since` counts whole if it ended after it.
    """
    if not answers:
        return Gap(0, None, None)
    silence = delay = 0
    for seen in answers:
        pairs = itertools.pairwise(seen)
        silence = max([silence, *(b - a for (a, _), (b, _) in pairs if b > since)])
        delay = max([delay, *(at - handed_over for at, handed_over in seen if at > since)])
    return Gap(len(answers), silence / 1e9, delay / 1e9)
