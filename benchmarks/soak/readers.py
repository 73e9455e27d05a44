"""Readers: clients that read a topic in a thread, and are replaced by new clients from time to time."""

from __future__ import annotations

import heapq
import random
import threading
import time
from collections import Counter
from types import TracebackType
from typing import Final, Self

import orjson
from confluent_kafka import Consumer, KafkaError, Message, TopicPartition
from confluent_kafka.admin import OffsetSpec

from benchmarks.chaos.fleet import ChaosError, wait_until
from benchmarks.chaos.installation import DRAIN_S, PARTITIONS
from benchmarks.soak.traffic import Producing
from topics.clients.cluster import Cluster

POLL_S: Final = 0.1


class TopicReader:
    """Hands all committed records of a topic to `take`, in a thread, while the block lasts."""

    def __init__(self, servers: str, topic: str, reconnect_s: float) -> None:
        self.reconnects = 0
        self._servers, self._topic, self._reconnect_s = servers, topic, reconnect_s
        self._next = dict.fromkeys(range(PARTITIONS), 0)
        self._ended = threading.Event()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name=f"reader-{topic}", daemon=True)

    def __enter__(self) -> Self:
        self._consumer = self._open()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()
        self._consumer.close()

    def check(self) -> None:
        """Raise the failure that has ended the thread, if there is one."""
        if self._failure is not None:
            message = f"{self._topic} is read no more: {self._failure}"
            raise ChaosError(message) from self._failure

    def read_to_end(self) -> None:
        """Return when the reader is at the end that each log has at the call; ChaosError if it fails."""
        latest = OffsetSpec.latest()
        partitions = [TopicPartition(self._topic, number) for number in range(PARTITIONS)]
        ends = Cluster({"bootstrap.servers": self._servers}).offsets(partitions, latest)

        def is_there() -> bool:
            self.check()
            return all(self._next[number] >= end for (_, number), end in ends.items())

        wait_until(is_there, DRAIN_S, lambda: f"{self._topic} is read to {self._next}, and ends at {ends}")

    def take(self, message: Message) -> None:
        """Process a record."""
        raise NotImplementedError

    def between(self) -> None:
        """Do what is due; called at least ten times a second."""

    def _run(self) -> None:
        opened = time.monotonic()
        try:
            while not self._ended.is_set():
                for message in self._consumer.consume(1000, POLL_S):
                    self._take(message)
                self.between()
                if time.monotonic() - opened >= self._reconnect_s:
                    self._consumer.close()
                    self._consumer = self._open()
                    self.reconnects += 1
                    opened = time.monotonic()
        except Exception as failure:  # noqa: BLE001 - `check` raises it
            self._failure = failure

    def _take(self, message: Message) -> None:
        error = message.error()
        if error is None:
            self._next[int(message.partition() or 0)] = int(message.offset() or 0) + 1
            self.take(message)
        elif error.code() == KafkaError._PARTITION_EOF:
            self._next[int(message.partition() or 0)] = int(message.offset() or 0)  # behind markers, too
        elif not (error.retriable() or error.code() == KafkaError._ALL_BROKERS_DOWN):
            raise ChaosError(error.str())

    def _open(self) -> Consumer:
        consumer = Consumer(
            {
                "bootstrap.servers": self._servers,
                "group.id": "soak-reader",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "enable.partition.eof": True,
                "log_level": 0,
            }
        )
        consumer.assign([TopicPartition(self._topic, number, at) for number, at in self._next.items()])
        return consumer


class Labels(TopicReader):
    """Answers label requests late: after an exponential delay, and some never."""

    def __init__(
        self, servers: str, requests: str, labels: str, *, delay_s: float, reconnect_s: float, seed: int
    ) -> None:
        super().__init__(servers, requests, reconnect_s)
        self.requests = 0
        self.answered = 0
        self._labels, self._delay_s = labels, delay_s
        self._draw = random.Random(seed)
        self._producer = Producing(servers)
        self._due: list[tuple[float, str, str]] = []  # time of `time.monotonic`, key, id

    @property
    def waiting(self) -> int:
        """Return how many labels are not sent yet."""
        return len(self._due)

    def take(self, message: Message) -> None:
        self.requests += 1
        name = str(orjson.loads(message.value() or b"{}")["instance_id"])
        if self._draw.random() >= NEVER_SHARE:
            at = time.monotonic() + self._draw.expovariate(1 / self._delay_s)
            heapq.heappush(self._due, (at, (message.key() or b"").decode(), name))

    def between(self) -> None:
        now = time.monotonic()
        while self._due and self._due[0][0] <= now:
            _, key, name = heapq.heappop(self._due)
            value = orjson.dumps({"id": name, "label": name.partition("-")[2]})
            self._producer.send(self._labels, key, value)
            self.answered += 1
        self._producer.poll()


NEVER_SHARE: Final = 0.1


class Answers(TopicReader):
    """Counts how often each instance was answered."""

    def __init__(self, servers: str, topic: str, *, reconnect_s: float) -> None:
        super().__init__(servers, topic, reconnect_s)
        self.distinct = 0
        self.doubled = 0
        self.right = 0
        self._counts = bytearray()  # by the number of the instance

    def take(self, message: Message) -> None:
        answer = orjson.loads(message.value() or b"{}")
        number, _, label = str(answer["id"]).partition("-")
        at = int(number)
        if at >= len(self._counts):
            self._counts.extend(bytes(max(at + 1 - len(self._counts), 1 << 16)))
        self.distinct += not self._counts[at]
        self.doubled += bool(self._counts[at])
        self._counts[at] = 1
        self.right += answer["label"] == label


class Births(TopicReader):
    """Collects the keys whose models were created by a control.

    The control and the first instance of a key are in separate topics. A worker that reads the instance first
    creates the model, and refuses the control.
    """

    def __init__(self, servers: str, topic: str, controls: str, *, reconnect_s: float) -> None:
        """`topic`: of the model events; `controls`: the topic of the controls."""
        super().__init__(servers, topic, reconnect_s)
        self.keys: set[str] = set()
        self._controls = controls

    def take(self, message: Message) -> None:
        event = orjson.loads(message.value() or b"{}")
        if (event["event"], event["topic"]) == ("created", self._controls):
            self.keys.add((message.key() or b"").decode())


class DeadLetters(TopicReader):
    """Counts dead letters by their reason."""

    def __init__(self, servers: str, topic: str, *, reconnect_s: float) -> None:
        super().__init__(servers, topic, reconnect_s)
        self.reasons: Counter[str] = Counter()

    def take(self, message: Message) -> None:
        headers = dict(message.headers() or [])
        reason = headers["grove-dlq-reason"]
        self.reasons[reason.decode() if isinstance(reason, bytes) else str(reason)] += 1
