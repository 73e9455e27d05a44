"""A topic recorded from its beginning: keeps records that workers trim or compact later.

All committed records are kept in memory, by partition, in the order of the log. Records that workers trimmed
before they were read are noted and left out: if these were more than the marks of a transaction, the checker
finds a hole.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Self

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from benchmarks.chaos.fleet import ChaosError, Wait

POLL_S = 0.2
ANSWER_S = 30.0  # until the broker must have returned the start of a log
END_S = 300.0  # without a record or an end of a partition


@dataclass(frozen=True, slots=True)
class Kept:
    """A record of a log."""

    time_ms: int  # timestamp of its producer
    key: bytes | None
    value: bytes | None


class Tape:
    """All committed records of a topic, read in a thread while the block lasts."""

    def __init__(self, servers: str, topic: str, partitions: int, *, with_values: bool = True) -> None:
        """With `with_values`, the records' values are kept; otherwise b"" replaces each value."""
        self.records: dict[int, list[Kept]] = {number: [] for number in range(partitions)}
        self._topic = topic
        self._with_values = with_values
        self.overtaken: list[tuple[int, int, int]] = []
        """Partition, next offset to read, first offset that the log still had."""
        self._next = dict.fromkeys(self.records, 0)
        self._servers = servers
        self._ended = threading.Event()
        self._given_up = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="tape", daemon=True)

    def __enter__(self) -> Self:
        self._consumer = self._open()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop reading at any position."""
        self._given_up.set()
        self._ended.set()
        self._thread.join()

    def stop(self) -> None:
        """Read up to the end of the logs; raise ChaosError if something could not be read."""
        self._ended.set()
        self._thread.join()
        if self._failure is not None:
            message = f"{self._topic}: {self._failure}"
            raise ChaosError(message)

    def _run(self) -> None:
        try:
            self._read()
        except BaseException as failure:  # noqa: BLE001 - it is `stop` that tells
            self._failure = failure
        finally:
            self._consumer.close()

    def _open(self) -> Consumer:
        consumer = Consumer(
            {
                "bootstrap.servers": self._servers,
                "group.id": "chaos-tape",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "error",
                "reconnect.backoff.ms": 20,  # it must reconnect before workers do, and trim
                "reconnect.backoff.max.ms": 50,
                "fetch.error.backoff.ms": 20,
                "topic.metadata.refresh.fast.interval.ms": 20,
                "log_level": 0,
            }
        )
        self._assign(consumer)
        return consumer

    def _read(self) -> None:
        while not self._ended.is_set():
            self._take()
        # A consumer reports the end of a partition once, and after a new assignment not always again.
        self._consumer.close()
        self._consumer = self._open()
        at_end: set[int] = set()
        wait = Wait()
        moved, farthest = wait.began, (0, 0)
        while len(at_end) < len(self.records) and not self._given_up.is_set():
            at_end |= self._take()
            wait.tell(partial(self._left, at_end))
            now, reached = time.monotonic(), (len(at_end), sum(self._next.values()))
            if reached > farthest:
                farthest, moved = reached, now
            elif now - moved > END_S:
                message = f"nothing to read for {END_S:.0f} s: {self._left(at_end)}"
                raise ChaosError(message)

    def _left(self, at_end: Set[int]) -> str:
        """Return which partitions are not read to their end, with the next offset of each."""
        positions = {number: at for number, at in self._next.items() if number not in at_end}
        return f"{self._topic} is not read to its end, next offsets by partition: {positions}"

    def _take(self) -> set[int]:
        """Read on; return the partitions that have been read to their end."""
        at_end, overtaken = set(), set()
        for message in self._consumer.consume(1000, POLL_S):
            number, error = int(message.partition() or 0), message.error()
            if error is None:
                self._keep(number, message)
            elif error.code() == KafkaError._PARTITION_EOF:
                at_end.add(number)
                # After the last record come the marks of its transaction; workers trim up to after them.
                self._next[number] = max(self._next[number], int(message.offset() or 0))
            elif error.code() == KafkaError._AUTO_OFFSET_RESET:
                overtaken.add(number)
            elif not error.retriable():
                raise ChaosError(error.str())
        if overtaken:
            self._go_on(sorted(overtaken))
        return at_end

    def _go_on(self, overtaken: Iterable[int]) -> None:
        """Continue reading these partitions where their logs begin now."""
        for number in overtaken:
            first, _ = self._consumer.get_watermark_offsets(
                TopicPartition(self._topic, number), timeout=ANSWER_S
            )
            self.overtaken.append((number, self._next[number], first))
            self._next[number] = first
        self._assign(self._consumer)

    def _assign(self, consumer: Consumer) -> None:
        consumer.assign([TopicPartition(self._topic, number, at) for number, at in self._next.items()])

    def _keep(self, number: int, message: Message) -> None:
        value = message.value()
        kept = value if self._with_values or value is None else b""
        self.records[number].append(Kept(message.timestamp()[1], message.key(), kept))
        self._next[number] = int(message.offset() or 0) + 1


def values(records: Mapping[int, Sequence[Kept]]) -> dict[int, list[bytes]]:
    return {number: [kept.value or b"" for kept in those] for number, those in records.items()}
