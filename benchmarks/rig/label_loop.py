"""Label loop: from a request that a reader sees on its topic to its answer, learned and committed.

A real worker answers instances at a steady rate and requests a label, or features, for each of them. Every
request is answered at once. The loop of a request ends when the offset of its answer is committed by the
worker's group, as a read_committed reader sees it on `__consumer_offsets`: no clock of the worker takes part.

people: this process answers with labels, as a page for annotators does.
demo: `grove oracle` answers with labels, as in `grove demo`.
features: this process answers requests for features, several for an instance; each answer is a loop.
"""

from __future__ import annotations

import csv
import json
import struct
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import numpy as np
import orjson
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from benchmarks.rig.broker import topics
from benchmarks.rig.measure import START_SECONDS
from benchmarks.rig.process import Child
from benchmarks.rig.stream import NAMES, generate, model_keys
from benchmarks.rig.systems import Options, worker_command, worker_environment
from benchmarks.rig.visible import Cluster
from topics.clients.partitioner import partition_of
from topics.definitions import TopicNames

KINDS: Final = ("people", "demo", "features")
PARTITIONS: Final = 8
WARM: Final = 0.25
"""Share of the loops, at the start, that is not counted."""
END_SECONDS: Final = 30.0
"""Longest wait for the loops that are open when the last instance is sent."""
BOUGHT: Final = 3
"""Features of an instance that a model of features has to request."""

_OFFSETS: Final = "__consumer_offsets"
_SHORT, _INT, _OFFSET = struct.Struct(">h"), struct.Struct(">i"), struct.Struct(">hq")
_LABELS: Final = {
    "learner": {"name": "h-tree", "leaf_model": "mc"},
    "query": "always",
    "budget": {"name": "count", "limit": 1.0},
}
_FEATURES: Final = {
    "learner": {"name": "ufodt", "hypotheses": 20},
    "query": "never",
    "acquire": {"name": "utility", "timeout_ms": 600_000},
}


@dataclass(frozen=True)
class LoopPlan:
    """What is measured."""

    kind: str
    guarantee: str
    commit_ms: int
    rate: int  # instances a second
    seconds: float


class Answer(NamedTuple):
    """An answer in the log."""

    partition: int
    offset: int


@dataclass
class Loops:
    """Times of the loops in ns of the monotonic clock, by the name of the request."""

    requested: dict[str, int] = field(default_factory=dict)  # when the reader saw the request
    answered: dict[str, int] = field(default_factory=dict)  # when it was answered, demo: seen
    open: dict[int, dict[int, str]] = field(default_factory=dict)  # partition -> offset -> name
    ended: dict[str, int] = field(default_factory=dict)
    commits: dict[int, list[tuple[int, int]]] = field(default_factory=dict)  # partition -> offsets and times

    def answer(self, name: str, place: Answer, at: int) -> None:
        """Note the answer of a request; its place in the log may become known after its commit."""
        self.answered[name] = at
        for offset, time_ns in self.commits.get(place.partition, ()):
            if offset > place.offset:
                self.ended[name] = time_ns
                return
        self.open.setdefault(place.partition, {})[place.offset] = name

    @property
    def gap_ms(self) -> float:
        """The time between two commits of a partition, the median."""
        gaps = [np.diff([time_ns for _, time_ns in commits]) for commits in self.commits.values()]
        return float(np.median(np.concatenate(gaps))) / 1e6

    def commit(self, partition: int, offset: int, now: int) -> None:
        """Note a commit: the loops of all answers before the offset have ended."""
        self.commits.setdefault(partition, []).append((offset, now))
        waiting = self.open.get(partition, {})
        for at in [at for at in waiting if at < offset]:
            self.ended[waiting.pop(at)] = now


def measure_loop(bootstrap: str, plan: LoopPlan) -> dict[str, Any]:
    """Return the figures of one kind of loop."""
    cluster = Cluster(bootstrap)
    with topics(bootstrap, cluster, PARTITIONS) as names, ExitStack() as stack:
        place = Path(stack.enter_context(TemporaryDirectory(prefix="grove-bench-")))
        group = f"bench-{uuid.uuid4().hex[:8]}"
        run = _Run(bootstrap, names, group, plan)
        spec = json.dumps(_FEATURES if plan.kind == "features" else _LABELS)
        options = Options(bootstrap, spec=spec, guarantee=plan.guarantee, commit_ms=plan.commit_ms)
        environment = worker_environment(options, names, PARTITIONS, group, place / "state")
        worker = stack.enter_context(Child(worker_command(), place / "worker", environment))
        children = {"worker": worker}
        if plan.kind == "demo":
            children["oracle"] = stack.enter_context(_oracle(bootstrap, names, run, place))
        run.make_models()
        _await_group(cluster, group, children)
        run.follow(children)
        spent = worker.cpu_seconds() - run.cpu_before
        return run.figures(spent)


@contextmanager
def _oracle(bootstrap: str, names: TopicNames, run: _Run, place: Path) -> Iterator[Child]:
    data = place / "rows.csv"
    with data.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*NAMES, "class"])
        writer.writerows([*x, y] for x, y in zip(run.rows.x.tolist(), run.rows.y.tolist(), strict=True))
    command = [worker_command()[0], "oracle", "--data", str(data), "--target", "class", "--header"]
    environment = {"GROVE_KAFKA_BOOTSTRAP_SERVERS": bootstrap, "GROVE_TOPICS_PREFIX": names.prefix}
    with Child(command, place / "oracle", environment) as child:
        yield child


def _await_group(cluster: Cluster, group: str, children: Mapping[str, Child]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not cluster.has_assignment(group):
        for child in children.values():
            child.check()
        if time.monotonic() > deadline:
            message = f"group {group} has no member with partitions after {START_SECONDS:.0f} s"
            raise TimeoutError(message)
        time.sleep(0.1)


class _Run:
    """One measurement: instances, answers, and the times of the loops."""

    def __init__(self, bootstrap: str, names: TopicNames, group: str, plan: LoopPlan) -> None:
        self.plan, self._names, self._group = plan, names, group
        self.rows = generate(int(plan.rate * plan.seconds), model_keys(PARTITIONS, PARTITIONS))
        self._keys = [key.encode() for key in self.rows.keys]
        self._places = [partition_of(key, PARTITIONS) for key in self._keys]
        self._loops, self._sent = Loops(), 0
        self.cpu_before = 0.0
        buys = plan.kind == "features"
        self._asked = names.feature_requests if buys else names.label_requests
        self._answers = names.feature_values if buys else names.labels
        self._features = [dict(zip(NAMES, x, strict=True)) for x in self.rows.x.tolist()]
        properties = {"bootstrap.servers": bootstrap, "linger.ms": 0, "log_level": 0}
        self._producer = Producer({**properties, "enable.idempotence": True})
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": f"{group}-reader",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "log_level": 0,
            }
        )
        self._bootstrap = bootstrap

    def make_models(self) -> None:
        """Create the model of each key with its schema: no instance brings all features."""
        attributes = [{"name": name, "range": [0, 10]} for name in NAMES]
        spec = _FEATURES if self.plan.kind == "features" else _LABELS
        body = {"command": "create", "spec": spec}
        body["schema"] = {"attributes": attributes, "classes": ["0", "1"]}
        for key, place in zip(self._keys, self._places, strict=True):
            self._producer.produce(self._names.controls, orjson.dumps(body), key, place)
        if n_left := self._producer.flush(END_SECONDS):
            message = f"{n_left} controls were not delivered"
            raise RuntimeError(message)

    def follow(self, children: Mapping[str, Child]) -> None:
        """Send instances and answer requests until every loop has ended."""
        self._read_from_now()
        self.cpu_before = children["worker"].cpu_seconds()
        sender = threading.Thread(target=self._send)
        sender.start()
        quiet_since = time.monotonic()
        while sender.is_alive() or not self._is_over() or self._sent < len(self.rows.y):
            first = self._consumer.poll(0.005)  # returns with the first message, `consume` with the last
            messages = [] if first is None else [first, *self._consumer.consume(500, 0.0)]
            now = time.monotonic_ns()
            for message in messages:
                if message.error() is not None:
                    raise KafkaException(message.error())
                self._take(message, now)
            self._producer.poll(0)
            for child in children.values():
                child.check()
            if messages or sender.is_alive():
                quiet_since = time.monotonic()
            if time.monotonic() - quiet_since > END_SECONDS:
                raise children["worker"].failed(f"{len(self._loops.ended)} loops have ended")
        sender.join()
        self._consumer.close()

    def _is_over(self) -> bool:
        loops = self._loops
        n = len(self.rows.y) * (BOUGHT if self.plan.kind == "features" else 1)
        return len(loops.ended) >= n or (
            self.plan.kind == "features" and len(loops.ended) == len(loops.requested) > 0 and self._settled()
        )

    def _settled(self) -> bool:
        """Whether no request came in the last second."""
        return time.monotonic_ns() - max(self._loops.requested.values()) > 1_000_000_000

    def _read_from_now(self) -> None:
        """Assign the reader the ends of its topics, and return when it reads them."""
        places = []
        for topic in (self._asked, self._answers, _OFFSETS):
            metadata = self._consumer.list_topics(topic, timeout=60).topics[topic]
            for partition in metadata.partitions:
                _, end = self._consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=60)
                places.append(TopicPartition(topic, partition, end))
        self._consumer.assign(places)

    def _send(self) -> None:
        producer = Producer({"bootstrap.servers": self._bootstrap, "linger.ms": 0, "log_level": 0})
        start = time.monotonic()
        while self._sent < len(self.rows.y):
            due = min(len(self.rows.y), int((time.monotonic() - start) * self.plan.rate))
            for number in range(self._sent, due):
                key, features = int(self.rows.key[number]), self._features[number]
                if self.plan.kind == "features":
                    features = {**features, **dict.fromkeys(NAMES[:BOUGHT])}
                value = orjson.dumps({"id": str(number), "features": features})
                producer.produce(self._names.instances, value, self._keys[key], self._places[key])
            self._sent = due
            producer.poll(0.002)
        if n_left := producer.flush(END_SECONDS):
            message = f"{n_left} instances were not delivered"
            raise RuntimeError(message)

    def _take(self, message: Any, now: int) -> None:
        topic = message.topic()
        if topic == _OFFSETS:
            self._take_commit(message, now)
        elif topic == self._asked:
            document = orjson.loads(message.value())
            name = document["request_id"] if self.plan.kind == "features" else document["instance_id"]
            self._loops.requested[name] = now
            if self.plan.kind != "demo":
                self._answer(document, name, message)
        elif self.plan.kind == "demo":
            name = orjson.loads(message.value())["id"]
            self._loops.answer(name, Answer(message.partition(), message.offset()), now)

    def _answer(self, document: dict[str, Any], name: str, message: Any) -> None:
        row = int(document["instance_id"])
        body: dict[str, Any] = {"id": document["instance_id"]}
        if self.plan.kind == "features":
            body["features"] = {feature: self._features[row][feature] for feature in document["features"]}
        else:
            body["label"] = str(self.rows.y[row])

        sent = time.monotonic_ns()

        def delivered(error: Any, report: Any) -> None:
            if error is not None:
                raise KafkaException(error)
            self._loops.answer(name, Answer(report.partition(), report.offset()), sent)

        value, key, place = orjson.dumps(body), message.key(), message.partition()
        self._producer.produce(self._answers, value, key, place, on_delivery=delivered)

    def _take_commit(self, message: Any, now: int) -> None:
        place = committed_place(message.key())
        if place is None or message.value() is None or place[:2] != (self._group, self._answers):
            return
        _, offset = _OFFSET.unpack_from(message.value())
        self._loops.commit(place[2], offset, now)

    def figures(self, cpu_seconds: float) -> dict[str, Any]:
        """Return percentiles in ms and in commit intervals."""
        plan, loops = self.plan, self._loops
        names = [name for name in loops.requested if name in loops.ended]
        names = names[int(len(names) * WARM) :]
        times = np.array(
            [(loops.requested[name], loops.answered[name], loops.ended[name]) for name in names], dtype=float
        )
        whole = (times[:, 2] - times[:, 0]) / 1e6
        p50, p90, p99 = np.percentile(whole, (50, 90, 99)).tolist()
        gap = loops.gap_ms
        return {
            "loop": plan.kind,
            "guarantee": plan.guarantee,
            "commit_ms": plan.commit_ms,
            "instances_per_second": plan.rate,
            "loops": len(names),
            "p50": round(p50, 1),
            "p90": round(p90, 1),
            "p99": round(p99, 1),
            "p50_intervals": round(p50 / plan.commit_ms, 2),
            "p90_intervals": round(p90 / plan.commit_ms, 2),
            "p99_intervals": round(p99 / plan.commit_ms, 2),
            "commit_gap_p50": round(gap, 1),  # more than the interval if commits are slow
            "p50_gaps": round(p50 / gap, 2),
            "request_to_answer_p50": round(float(np.median(times[:, 1] - times[:, 0])) / 1e6, 1),
            "answer_to_commit_p50": round(float(np.median(times[:, 2] - times[:, 1])) / 1e6, 1),
            "worker_cpu_us_per_loop": round(cpu_seconds / max(len(loops.ended), 1) * 1e6),
        }


def committed_place(key: bytes) -> tuple[str, str, int] | None:
    """Return group, topic and partition of a record of `__consumer_offsets`; None: it is no commit."""
    (version,) = _SHORT.unpack_from(key)
    if version > 1:
        return None
    at, texts = _SHORT.size, []
    for _ in range(2):
        (n,) = _SHORT.unpack_from(key, at)
        texts.append(key[at + _SHORT.size : at + _SHORT.size + n].decode())
        at += _SHORT.size + n
    return texts[0], texts[1], _INT.unpack_from(key, at)[0]
