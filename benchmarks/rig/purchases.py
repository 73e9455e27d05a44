"""Latency of feature acquisition: instance to request and value to prediction, beside echoes of both topics.

One process produces instances at a rate; a share of them lacks one feature. This process answers every
request with the value as soon as it sees it, and receives the predictions. The echoes read the same two
topics. The clock is the machine's monotonic one; the id of a record is the time at which it was produced
(ns).
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
import orjson
from confluent_kafka import KafkaException, Producer

from benchmarks.peers.job import Job
from benchmarks.rig.latency import await_groups, open_outputs
from benchmarks.rig.measure import STALL_SECONDS
from benchmarks.rig.process import Child, python
from benchmarks.rig.stream import NAMES, model_keys
from benchmarks.rig.systems import OURS, Options, worker_command, worker_environment
from benchmarks.rig.visible import Cluster
from topics.clients.partitioner import partition_of
from topics.definitions import TopicNames

PARTITIONS: Final = 8
KEYS: Final = PARTITIONS
WARM: Final = 0.25
"""Share of the records, at the start, that is not counted."""
LACKS: Final = NAMES[-1]
VALUE: Final = 5.0


def measure_purchases(
    cluster: Cluster,
    names: TopicNames,
    bootstrap: str,
    spec: Mapping[str, Any],
    rate: int,
    records: int,
    share: float,
    guarantee: str,
) -> dict[str, Any]:
    """Return the figures of one run."""
    group = f"bench-{uuid.uuid4().hex[:8]}"
    options = Options(bootstrap, guarantee=guarantee)
    sinks = {
        names.instances: f"{names.prefix}echo-instances",
        names.feature_values: f"{names.prefix}echo-values",
    }
    cluster.create(*sinks.values(), partitions=PARTITIONS)
    _make_models(bootstrap, names, spec)
    with TemporaryDirectory(prefix="grove-bench-") as place:
        log = Path(place)
        environment = worker_environment(options, names, PARTITIONS, group, log / "state")
        jobs = [
            Job(
                bootstrap,
                source,
                sink,
                f"{group}-{number}",
                "json",
                options.leaf,
                low_latency=True,
                linger_ms=0.0,
            )
            for number, (source, sink) in enumerate(sinks.items())
        ]
        echo = "benchmarks.peers.echo_confluent"
        with (
            Child(worker_command(), log / "worker", environment) as worker,
            Child(python(*jobs[0].command(echo)), log / "echo-0") as first,
            Child(python(*jobs[1].command(echo)), log / "echo-1") as second,
        ):
            children = {OURS: worker, "echo-0": first, "echo-1": second}
            topics = [names.feature_requests, names.predictions, *sinks.values()]
            consumer = open_outputs(bootstrap, topics, PARTITIONS)
            groups = {OURS: group, "echo-0": f"{group}-0", "echo-1": f"{group}-1"}
            await_groups(cluster, children, groups)
            cpu = worker.cpu_seconds()
            words = ["--bootstrap", bootstrap, "--topic", names.instances, "--rate", str(rate)]
            words += ["--seconds", str(records / rate), "--keys", str(KEYS), "--partitions", str(PARTITIONS)]
            words += ["--lacking", str(share)]
            with Child(python("-m", "benchmarks.rig.paced", *words), log / "paced"):
                run = _Run(names, sinks, bootstrap)
                run.follow(consumer, records, children)
            spent = worker.cpu_seconds() - cpu
    return {
        "rate": rate,
        "records": records,
        "share_that_buys": share,
        "guarantee": guarantee,
        "requests": len(run.asked),
        "predictions_per_second": run.throughput(),
        "worker_cpu_us_per_record": round(spent / records * 1e6, 1),
        "instance_to_request_ms": _percentiles(run.asked),
        "instance_to_echo_ms": _percentiles(run.echoed[sinks[names.instances]]),
        "value_to_prediction_ms": _percentiles(run.predicted),
        "value_to_echo_ms": _percentiles(run.echoed[sinks[names.feature_values]]),
    }


def _make_models(bootstrap: str, names: TopicNames, spec: Mapping[str, Any]) -> None:
    attributes = [{"name": name, "range": [0, 10]} for name in NAMES]
    body = {"spec": spec, "schema": {"attributes": attributes, "classes": ["0", "1"]}}
    control = json.dumps({"command": "create", **body})
    producer = Producer({"bootstrap.servers": bootstrap})
    for key in model_keys(KEYS, PARTITIONS):
        producer.produce(names.controls, control, key, partition_of(key.encode(), PARTITIONS))
    if n_left := producer.flush(30):
        message = f"{n_left} controls were not delivered"
        raise RuntimeError(message)


class _Run:
    """Times of one run; pairs of (produced, seen) in ns."""

    def __init__(self, names: TopicNames, sinks: Mapping[str, str], bootstrap: str) -> None:
        self.asked: list[tuple[int, int]] = []
        self.predicted: list[tuple[int, int]] = []
        self.echoed: dict[str, list[tuple[int, int]]] = {sink: [] for sink in sinks.values()}
        self._answers: list[int] = []  # times at which predictions were seen
        self._sent: dict[str, int] = {}  # values, by id
        self._names, self._sinks = names, sinks
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "linger.ms": 0, "enable.idempotence": True, "log_level": 0}
        )

    def follow(self, consumer: Any, records: int, children: Mapping[str, Child]) -> None:
        """Answer requests until every record has its prediction and its echoes."""
        last = time.monotonic()
        instances, values = (self.echoed[self._sinks[t]] for t in self._sinks)
        while len(self._answers) < records or len(instances) < records or len(values) < len(self._sent):
            message = consumer.poll(1.0)
            now = time.monotonic_ns()
            self._producer.poll(0)
            if message is None:
                for child in children.values():
                    child.check()
                if time.monotonic() - last > STALL_SECONDS:
                    raise children[OURS].failed(f"{len(self._answers)} of {records} predictions")
                continue
            if message.error() is not None:
                raise KafkaException(message.error())
            self._take(message, now)
            last = time.monotonic()
        consumer.close()

    def _take(self, message: Any, now: int) -> None:
        topic, document = message.topic(), orjson.loads(message.value())
        if topic == self._names.feature_requests:
            name = document["instance_id"]
            self.asked.append((int(name), now))
            body = orjson.dumps({"id": name, "features": {LACKS: VALUE}})
            self._sent[name] = time.monotonic_ns()
            self._producer.produce(self._names.feature_values, body, message.key(), message.partition())
        elif topic == self._names.predictions:
            self._answers.append(now)
            if document["id"] in self._sent:
                self.predicted.append((self._sent[document["id"]], now))
        else:
            is_value = topic == self._sinks[self._names.feature_values]
            handed = self._sent[document["id"]] if is_value else int(document["id"])
            self.echoed[topic].append((handed, now))

    def throughput(self) -> int:
        """Return predictions per second, from the first quarter of them to the last."""
        first = self._answers[int(len(self._answers) * WARM)]
        n = len(self._answers) - int(len(self._answers) * WARM)
        return round(n / max((self._answers[-1] - first) / 1e9, 1e-9))


def _percentiles(pairs: list[tuple[int, int]]) -> dict[str, float] | None:
    if not pairs:
        return None
    steady = np.array(sorted(pairs)[int(len(pairs) * WARM) :])
    ms = (steady[:, 1] - steady[:, 0]) / 1e6
    p50, p99 = np.percentile(ms, (50, 99)).round(1).tolist()
    return {"p50": p50, "p99": p99, "most": round(float(ms.max()), 1)}
