"""Installation under test: topics, settings of the workers, and the check that all is processed."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from confluent_kafka import Producer

from benchmarks.chaos import acquiring
from benchmarks.chaos.counts import parse
from benchmarks.chaos.fleet import READY_S, ChaosError, Fleet, wait_until, wait_while_it_falls
from benchmarks.rig.stream import NAMES
from topics.clients import admin
from topics.clients.partitioner import partition_of
from topics.definitions import TopicNames
from topics.fetching.group_description import describe_group

PARTITIONS: Final = 8
MODELS: Final = 16
SESSION_S: Final = 6.0
DRAIN_S: Final = 300.0  # without any decrease of the lag

SPEC: Final[dict[str, object]] = {
    "learner": {"name": "h-tree", "grace_period": 100, "delta": 1e-3, "tau": 0.1, "leaf_model": "nba"},
    "query": "variable_uncertainty",
    "budget": {"name": "count", "limit": 0.3},
    "drift": "ddm",
}

SCHEMA: Final = {"attributes": [{"name": name} for name in NAMES]}
CHALLENGES: Final[dict[str, dict[str, object]]] = {
    "model-00": {"spec": {"learner": "naive-bayes"}, "alpha": 0.5, "warm_up": 20},
    "model-01": {"spec": {"learner": "majority-class"}, "max_labels": 20, "warm_up": 5},
    "model-02": {"spec": {"learner": "naive-bayes"}, "decide": "person", "warm_up": 0},
}
"""Keys whose models are challenged before their first instance: by the rule, or until the end."""

WITH_LEAF_TABLE: Final = ("boct",)
"""Learners whose models distribute their labels over leaves."""

SNAPSHOTS: Final = {"GROVE_SNAPSHOT_MAX_REPLAY_MS": "200", "GROVE_SNAPSHOT_INTERVAL_MS": "3000"}
"""Far more snapshots than in production, so that faults meet them."""


def compile_kernels() -> None:
    """Compile the kernels before any worker starts: otherwise all workers would, side by side and after each
    kill.
    """
    subprocess.run([sys.executable, "-m", "streamapp", "warm"], check=True, stdout=subprocess.DEVNULL)


@dataclass(frozen=True, slots=True)
class Installation:
    """A group of workers with its own topics."""

    servers: str
    prefix: str
    group: str
    models_max_bytes: int = 0  # 0: all models stay in memory
    standbys: int = 0
    learner: str = ""  # name of a learner in place of SPEC's
    features: bool = False  # some models buy features

    @property
    def spec(self) -> dict[str, object]:
        if self.learner in WITH_LEAF_TABLE:
            return {**SPEC, "learner": self.learner, "query": "boct_al"}
        return {**SPEC, "learner": self.learner} if self.learner else SPEC

    @property
    def names(self) -> TopicNames:
        return TopicNames(self.prefix)

    def create_topics(self) -> None:
        admin.create({"bootstrap.servers": self.servers}, self.names, PARTITIONS, tell=on_stderr)

    @property
    def buying(self) -> tuple[str, ...]:
        """The keys of the models that buy features."""
        return acquiring.KEYS if self.features else ()

    def make_models(self) -> None:
        """Send the controls that create the models that buy features, and those that have challengers; other
        models are created by their first instance.
        """
        producer = Producer({"bootstrap.servers": self.servers, "log_level": 0})
        for key, challenge in CHALLENGES.items():
            for control in ({"command": "create", "schema": SCHEMA}, {"command": "challenge"} | challenge):
                partition = partition_of(key.encode(), PARTITIONS)
                producer.produce(self.names.controls, json.dumps(control), key, partition)
        for key in self.buying:
            partition = partition_of(key.encode(), PARTITIONS)
            producer.produce(self.names.controls, acquiring.controls()[key], key, partition)
        if left_over := producer.flush(DRAIN_S):
            message = f"{left_over} controls were not delivered"
            raise ChaosError(message)

    def oracles(self, data: Path, *options: str) -> list[list[str]]:
        """Return the options of the oracles; two oracles send each value, equal, one early and one late."""
        options_of_oracles = [["--data", str(data), *options]]
        for number, delay in enumerate(("~50ms", "~1s") if self.features else ()):
            words = ["--features", "--unavailable", "0.1", "--delay", delay]
            options_of_oracles.append(
                ["--data", str(data), *words, "--group", f"{self.group}-values-{number}"]
            )
        return options_of_oracles

    def environment(self, guarantee: str) -> Mapping[str, str]:
        return {
            "GROVE_KAFKA_BOOTSTRAP_SERVERS": self.servers,
            "GROVE_APPLICATION_ID": self.group,
            "GROVE_TOPICS_PREFIX": self.prefix,
            "GROVE_PROCESSING_GUARANTEE": guarantee,
            "GROVE_KAFKA_SESSION_TIMEOUT_MS": str(int(SESSION_S * 1000)),
            "GROVE_MODEL_SPEC": json.dumps(self.spec),
            "GROVE_MODELS_MAX_BYTES": str(self.models_max_bytes),
            "GROVE_NUM_STANDBY_REPLICAS": str(self.standbys),
            **SNAPSHOTS,
            "GROVE_LOG_FORMAT": "text",
        }

    def drain(self, fleet: Fleet) -> float:
        """Start everything, stop the oracles when they have answered, and wait until all is processed."""
        for worker in fleet.workers:
            worker.freeze(False)
            worker.start()
        fleet.wait_until_ready()
        inputs = self.names.instances, self.names.feature_values
        seconds = wait_while_it_falls(lambda: self.lag(*inputs), DRAIN_S, lambda: "instances wait")
        seconds += wait_while_it_falls(lambda: open_episodes(fleet), DRAIN_S, lambda: "episodes are open")
        fleet.stop_oracles()
        return seconds + wait_while_it_falls(self.lag, DRAIN_S, lambda: "labels wait")

    def lag(self, *topics: str) -> int:
        """Return the number of records of the input topics without a commit of the group."""
        names = self.names
        sources = topics or (names.instances, names.feature_values, names.labels, names.controls)
        described = admin.describe({"bootstrap.servers": self.servers}, names, self.group)
        return sum(
            left(partition) for topic in described if topic.name in sources for partition in topic.partitions
        )

    def models(self, fleet: Fleet, keys: Sequence[str]) -> dict[str, bytes]:
        """Return the models by key, each from the worker to which the group gave its partition.

        A worker that was frozen for longer than its session serves the old models of lost partitions until
        its next heartbeat, and a rebalance may go on although nothing lags. A worker that has joined the
        group again is not ready before its models are those of the committed offsets.
        """
        workers = {worker.name: worker for worker in fleet.workers}
        pages_by_key: dict[str, bytes] = {}

        def complete() -> bool:
            owners = self.owners()
            ready = {name for name in set(owners.values()) if workers[name].runs and workers[name].is_ready()}
            for key in set(keys) - pages_by_key.keys():
                owner = owners.get(partition_of(key.encode(), PARTITIONS))
                page = workers[owner].page(f"/models/{key}") if owner in ready else None
                if page is not None:
                    pages_by_key[key] = page
            return len(pages_by_key) == len(keys)

        wait_until(complete, READY_S, lambda: f"no worker has {sorted(set(keys) - pages_by_key.keys())}")
        return pages_by_key

    def owners(self) -> dict[int, str]:
        """Return the name of the worker of each partition; none while the group rebalances."""
        group = describe_group({"bootstrap.servers": self.servers}, self.group, DRAIN_S)
        return {
            number: member.group_instance_id
            for member in group.members
            for number in member.partitions.get(self.names.instances, ())
            if group.state == "Stable" and member.group_instance_id is not None
        }


def on_stderr(line: str) -> None:
    """Print a line of progress; standard output has the report."""
    print(line, file=sys.stderr)


def open_episodes(fleet: Fleet) -> int:
    """Return how many records wait for features; a worker that does not answer counts as having one."""
    pages = [worker.page("/metrics") for worker in fleet.workers]
    metric = {"open": "grove_open_episodes"}
    return int(sum(1 if page is None else parse(page.decode(), metric)["open"] for page in pages))


def left(partition: admin.PartitionDescription) -> int:
    """Return how much of a partition is not committed; an unknown end does not count as a lag of 0."""
    if partition.lag is not None:
        return partition.lag
    if partition.end is None or partition.start is None:
        return 1
    return partition.end - partition.start
