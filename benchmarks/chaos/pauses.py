"""How long answers stop: the silences of each partition, as a read_committed reader sees them."""

from __future__ import annotations

import itertools
import statistics
import threading
import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from types import TracebackType
from typing import Final, Self

from confluent_kafka import Consumer, TopicPartition

POLL_S: Final = 0.1


class AnswerTimes:
    """The times (time.monotonic()) at which answers of each partition come, read in a thread."""

    def __init__(self, servers: str, topic: str, partitions: int) -> None:
        self.seen: dict[int, list[float]] = defaultdict(list)
        self._consumer = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": "chaos-answers",
                "enable.auto.commit": False,
                "fetch.wait.max.ms": 50,
                # Faster than the workers' clients, so that what it sees is a pause of theirs.
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 100,
                "fetch.error.backoff.ms": 20,
                "topic.metadata.refresh.fast.interval.ms": 20,
                "socket.timeout.ms": 5000,
                "log_level": 0,
            }
        )
        self._consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="answers", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()
        self._consumer.close()

    def have_begun(self, partitions: Set[int]) -> bool:
        """Whether each of the partitions has answered: before, there is no answer that could stop."""
        return partitions <= self.seen.keys()

    def _run(self) -> None:
        while not self._ended.is_set():
            now_seen = {
                message.partition()
                for message in self._consumer.consume(1000, POLL_S)
                if message.error() is None
            }
            now = time.monotonic()
            for number in now_seen:
                assert number is not None
                self.seen[number].append(now)


def pauses(seen: Mapping[int, Sequence[float]], began: float, ended: float) -> list[float]:
    """Return the longest silence of each partition that touches a time; a silence counts whole."""
    longest = []
    for times in seen.values():
        first = max(0, bisect_left(times, began) - 1)
        last = min(len(times), bisect_left(times, ended) + 1)
        of_partition = times[first:last]
        if len(of_partition) > 1:
            longest.append(max(b - a for a, b in itertools.pairwise(of_partition)))
    return longest


def report(
    seen: Mapping[int, Sequence[float]], faults: Iterable[tuple[str, float, float]]
) -> dict[str, dict[str, float]]:
    """Return, for each kind of fault, p50 and p99 in seconds over its faults and the partitions."""
    by_kind: dict[str, list[float]] = defaultdict(list)
    for kind, began, ended in faults:
        by_kind[kind] += pauses(seen, began, ended)
    return {
        kind: {"p50": round(statistics.median(seconds), 2), "p99": round(percentile(seconds, 0.99), 2)}
        for kind, seconds in sorted(by_kind.items())
        if seconds
    }


def percentile(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]
