"""The measured systems: our worker and its peers, each as a command over the same backlog."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from benchmarks.peers.java_peers import FORMATS, STREAMS, loop, streams
from benchmarks.peers.job import COMMIT_MS, LINGER_MS, Job
from benchmarks.rig.backlog import Backlog
from benchmarks.rig.process import python
from streamapp.worker.reserved_ports import free_ports
from topics.definitions import TopicNames

OURS = "streamgrove"


Command = Callable[[Job, Path], list[str]]


@dataclass(frozen=True)
class System:
    """A name for the tables, the function that starts it (None: our worker) and its part of the backlog."""

    name: str
    command: Command | None
    most_rows: int | None = None  # None: all rows
    learns: bool = True
    formats: tuple[str, ...] = ("json", "packed", "arrow")
    guarantees: tuple[str, ...] = ("at_least_once",)
    own_answers: bool = (
        False  # River's peers write their own JSON; all other systems answer as in docs/records.md
    )

    def rows_per_answer(self, backlog: Backlog) -> int:
        """Return the rows of an answer: echoes and our worker answer a block with a block, River's peers
        answer row by row.
        """
        return 1 if self.own_answers else backlog.rows_per_record


def in_python(module: str) -> Command:
    return lambda job, _: python(*job.command(module))


GUARANTEES = ("at_least_once", "exactly_once")
WORKER = System(OURS, None, formats=("json", "packed", "avro", "arrow"), guarantees=GUARANTEES)
PEERS = {
    "streams": (System(f"streams {STREAMS[2]}", streams, formats=FORMATS, guarantees=GUARANTEES),),
    "loop": (System("loop", loop, formats=FORMATS, guarantees=GUARANTEES),),
    "echo": (
        System("echo confluent-kafka", in_python("benchmarks.peers.echo_confluent"), learns=False),
        System("echo aiokafka", in_python("benchmarks.peers.echo_aiokafka"), learns=False),
    ),
    "river": (
        System(
            "confluent-kafka + River",
            in_python("benchmarks.peers.river_confluent"),
            most_rows=200_000,
            own_answers=True,
        ),
    ),
    "faust": (
        System(
            "stock Faust + River",
            in_python("benchmarks.peers.river_faust"),
            most_rows=20_000,
            own_answers=True,
        ),
    ),
}


@dataclass(frozen=True)
class Options:
    """The settings of our worker for a measurement."""

    bootstrap: str
    leaf: str = "nba"
    spec: str = ""
    """Spec of our models that replaces the H-Tree."""
    headers: Literal["minimal", "full"] = "minimal"
    guarantee: str = "at_least_once"
    settings: Mapping[str, str] = field(default_factory=dict)  # further GROVE_ variables
    compat: str | None = None
    """Compatibility of that H-Tree: "moa" for the same results as MOA, record by record."""
    threads: int = 1
    """Threads of Kafka Streams."""
    commit_ms: int = COMMIT_MS
    """Time between commits: our default, also for the peers."""

    @property
    def model_spec(self) -> str:
        return self.spec or spec(self.leaf, self.compat)


def spec(leaf: str, compat: str | None = None) -> str:
    """Return the model spec of an H-Tree that corresponds to the peers' trees of MOA or River."""
    learner = {
        "name": "h-tree",
        "leaf_model": leaf,
        "grace_period": 200,
        "delta": 1e-7,
        "tau": 0.05,
        "compat": compat,
    }
    return json.dumps({"learner": learner, "query": {"name": "never"}})


def worker_command() -> list[str]:
    return [str(Path(sys.executable).with_name("grove")), "worker"]


def worker_environment(
    options: Options, names: TopicNames, partitions: int, group: str, state: Path
) -> dict[str, str]:
    return {
        "GROVE_KAFKA_BOOTSTRAP_SERVERS": options.bootstrap,
        "GROVE_APPLICATION_ID": group,
        "GROVE_KAFKA_GROUP_INSTANCE_ID": "bench-0",
        "GROVE_TOPICS_PREFIX": names.prefix,
        "GROVE_TOPICS_PARTITIONS": str(partitions),
        "GROVE_STATE_DIR": str(state),
        "GROVE_WEB_PORT": str(free_ports()),
        "GROVE_MODEL_SPEC": options.model_spec,
        "GROVE_OUTPUT_HEADERS": options.headers,
        "GROVE_PROCESSING_GUARANTEE": options.guarantee,
        "GROVE_COMMIT_INTERVAL_MS": str(options.commit_ms),
        **options.settings,
    }


def peer_job(options: Options, backlog: Backlog, sink: str, group: str) -> Job:
    return job_of(options, backlog.topic, sink, group, backlog.format)


def job_of(
    options: Options,
    source: str,
    sink: str,
    group: str,
    form: str,
    *,
    low_latency: bool = False,
    linger_ms: float = LINGER_MS,
    partition: int | None = None,
) -> Job:
    return Job(
        options.bootstrap,
        source,
        sink,
        group,
        form,
        options.leaf,
        low_latency=low_latency,
        linger_ms=linger_ms,
        guarantee=options.guarantee,
        threads=options.threads,
        commit_ms=options.commit_ms,
        partition=partition,
    )
