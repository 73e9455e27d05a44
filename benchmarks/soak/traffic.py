"""Traffic: instances of models that come and go, from a stream that drifts, by clients that reconnect.

An instance's id is its number and its label (`17-yes`), so that labels and answers can be checked without a
table. A key gets instances for a while; it is deleted some time after its last instance, and a new name takes
its place. A key whose model a control creates gets its first instance once the model is there.
"""

from __future__ import annotations

import heapq
import json
import random
import threading
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import orjson
from confluent_kafka import Producer

from benchmarks.chaos.fleet import ChaosError
from benchmarks.chaos.installation import PARTITIONS, SPEC
from core.streams.base import Generator, parse_address
from topics.clients.partitioner import partition_of
from topics.definitions import TopicNames

STEP_S: Final = 0.05
REST_S: Final = 10.0
"""From the last instance of a key to its deletion: instances and controls are separate topics."""

FLUSH_S: Final = 300.0
LABELLED_SHARE: Final = 0.1  # instances with their label
CREATED_SHARE: Final = 0.5  # keys whose model a control creates; an instance creates the others
SPECS: Final[Sequence[dict[str, object]]] = (
    SPEC,
    {**SPEC, "query": "random", "drift": "adwin"},
    {"learner": "naive-bayes", "query": "fixed_uncertainty", "budget": {"limit": 0.2}},
)
STREAMS: Final = tuple(f"gen:sea?function={number}&noise=0.05&seed={number}" for number in (1, 3, 2, 4))
"""One follows another, again and again."""


class Producing:
    """An idempotent producer that is replaced by a new one at each `reconnect`."""

    def __init__(self, servers: str) -> None:
        self.acknowledged = 0
        self.failed = 0
        self._servers = servers
        self.reconnect()

    def reconnect(self) -> None:
        """Continue with a new client, once all records of the old one are acknowledged."""
        if hasattr(self, "_producer"):
            self.flush()
        self._producer = Producer(
            {
                "bootstrap.servers": self._servers,
                "enable.idempotence": True,
                "linger.ms": 5,
                "delivery.timeout.ms": int(FLUSH_S * 1000),
                "on_delivery": self._delivered,
                "log_level": 0,
            }
        )

    def send(self, topic: str, key: str, value: bytes) -> None:
        partition = partition_of(key.encode(), PARTITIONS)
        while True:
            try:
                self._producer.produce(topic, value, key, partition)
            except BufferError:
                self._producer.poll(STEP_S)
            else:
                self._producer.poll(0)
                return

    def poll(self) -> None:
        self._producer.poll(0)

    def flush(self) -> None:
        if n_waiting := self._producer.flush(FLUSH_S):
            message = f"{n_waiting} records were not delivered within {FLUSH_S:.0f} s"
            raise ChaosError(message)

    def _delivered(self, error: Any, _message: Any) -> None:
        self.failed += error is not None
        self.acknowledged += error is None


@dataclass(order=True, slots=True)
class Deadline:
    """A key and the time at which it gets no more instances, or is deleted."""

    at: float  # of `time.monotonic`
    key: str = field(compare=False)
    has_model: bool = field(default=False, compare=False)  # an instance was sent, or a control made it


class DriftingRows:
    """Rows of several streams in turn, each for the same number of rows; endless."""

    def __init__(self, rows_each: int, addresses: Sequence[str] = STREAMS) -> None:
        self._generators: list[Generator] = [parse_address(address)[0] for address in addresses]
        self._rows_each = rows_each
        self._turn = 0
        self._row = rows_each
        schema = self._generators[0].schema
        self.names, self.classes = schema.names, schema.classes

    def take(self) -> tuple[dict[str, float], str]:
        """Return the features and the label of the next row."""
        if self._row == self._rows_each:
            generator = self._generators[self._turn % len(self._generators)]
            start = self._turn // len(self._generators) * self._rows_each
            x, y = generator.take(self._rows_each, start=start)
            self._x, self._y = x.round(4).tolist(), y.tolist()
            self._turn, self._row = self._turn + 1, 0
        at, self._row = self._row, self._row + 1
        return dict(zip(self.names, self._x[at], strict=True)), self.classes[self._y[at]]


class Traffic:
    """Sends instances and controls at a fixed rate in its own thread, until it is stopped."""

    def __init__(
        self,
        servers: str,
        names: TopicNames,
        *,
        rate: float,
        models: int,
        life_s: float,
        drift_rows: int,
        reconnect_s: float,
        seed: int,
        born: Collection[str],
    ) -> None:
        """`models`: keys that get instances at a time; `life_s`: mean time for which a key gets them;
        `born`: the keys whose models were created by a control, which another thread adds to.
        """
        self.sent = 0
        self.created = 0  # keys
        self.deleted = 0
        self.reconnects = 0
        self._names = names
        self._rate, self._life_s, self._reconnect_s = rate, life_s, reconnect_s
        self._draw = random.Random(seed)
        self._rows = DriftingRows(drift_rows)
        self._producer = Producing(servers)
        self._models = models
        self._born = born
        self._awaited: list[Deadline] = []
        self._living: list[Deadline] = []
        self._resting: list[Deadline] = []
        self._stopped = threading.Event()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="traffic", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End producing; return when all records are acknowledged."""
        self._stopped.set()
        self._thread.join()
        if self._failure is not None:
            message = f"the load ended early: {self._failure}"
            raise ChaosError(message) from self._failure
        self._producer.flush()
        if self._producer.failed:
            message = f"{self._producer.failed} records of the load were not delivered"
            raise ChaosError(message)

    def _run(self) -> None:
        try:
            began = reconnected = time.monotonic()
            for _ in range(self._models):  # ages differ from the start on
                self._give_life(began + self._draw.random() * self._life_s)
            while not self._stopped.wait(STEP_S):
                now = time.monotonic()
                self._turn_over(now)
                due = int((now - began) * self._rate)
                while self.sent < due and self._living and not self._stopped.is_set():
                    self._send()
                self._producer.poll()
                if now - reconnected >= self._reconnect_s:
                    self._producer.reconnect()
                    self.reconnects += 1
                    reconnected = now
        except Exception as failure:  # noqa: BLE001 - `stop` raises it
            self._failure = failure

    def _send(self) -> None:
        features, label = self._rows.take()
        document: dict[str, Any] = {"id": f"{self.sent}-{label}", "features": features}
        if self._draw.random() < LABELLED_SHARE:
            document["label"] = label
        chosen = self._draw.choice(self._living)
        chosen.has_model = True
        self._producer.send(self._names.instances, chosen.key, orjson.dumps(document))
        self.sent += 1

    def _turn_over(self, now: float) -> None:
        """Let new keys take the places of those whose time is over, and delete keys that have rested."""
        for waiting in [awaited for awaited in self._awaited if awaited.key in self._born]:
            waiting.has_model = True
            self._awaited.remove(waiting)
            heapq.heappush(self._living, waiting)
        while self._living and self._living[0].at <= now:
            gone = heapq.heappop(self._living)
            heapq.heappush(self._resting, Deadline(now + REST_S, gone.key, gone.has_model))
            self._give_life(now + self._life_s * self._draw.uniform(0.5, 1.5))
        while self._resting and self._resting[0].at <= now:
            gone = heapq.heappop(self._resting)
            if gone.has_model:
                self._producer.send(self._names.controls, gone.key, b'{"command":"delete"}')
                self.deleted += 1

    def _give_life(self, until: float) -> None:
        key = f"model-{self.created:06d}"
        self.created += 1
        if self._draw.random() < CREATED_SHARE:
            schema = {"attributes": [{"name": name} for name in self._rows.names]}
            control = {"command": "create", "schema": schema, "spec": self._draw.choice(SPECS)}
            self._producer.send(self._names.controls, key, json.dumps(control).encode())
            self._awaited.append(Deadline(until, key))
        else:
            heapq.heappush(self._living, Deadline(until, key))
