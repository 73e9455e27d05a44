"""Stops of answers while brokers fail: our worker and Kafka Streams on the same faults, exactly once.

    python -m benchmarks.outages --json
    python -m benchmarks.outages --kinds "leader killed" "slow broker" --turns 3

Three brokers with three replicas of each partition. Both systems read the same topic at the same time, so
that each fault (benchmarks/chaos/broker_faults.py) meets both. A fault begins when all partitions of both
answer. One line for each kind and system: the time without answers, p50 and p99 over faults and partitions,
as a read_committed reader sees it; it waits for `--patience` seconds at most, and the exit code is 1 if our
worker has not answered by then. A peer that has ended is counted for the fault before (`ends`) and started
again; its silence until then counts. Kafka Streams has its default
session timeout (45 s), our worker has its own (15 s); no process dies, so neither matters much.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.bounded_numbers import number_within
from benchmarks.chaos import pauses
from benchmarks.chaos.broker_faults import KINDS, BrokerFaults
from benchmarks.chaos.network import Network
from benchmarks.chaos.pauses import AnswerTimes
from benchmarks.peers.java_peers import streams
from benchmarks.peers.job import Job
from benchmarks.rig.member import Member
from benchmarks.rig.process import Child, ChildFailed, python
from benchmarks.rig.systems import OURS, Options, spec
from benchmarks.rig.terminated import unwound_by_terminate
from streamapp.embedded import EmbeddedBroker, EmbeddedCluster
from streamapp.worker.compile_ahead import warm_kernels
from streamapp.worker.task.task_config import TaskConfig
from topics.clients.admin import create
from topics.definitions import TopicNames

PARTITIONS: Final = 8
REPLICAS: Final = 3
CREATE_S: Final = 120.0
START_S: Final = 900.0  # until both answer for the first time
LOOK_S: Final = 0.1
PEER: Final = "Kafka Streams"
SINK: Final = "streams-answers"


class Outages:
    """Both systems on one cluster, under a steady load."""

    def __init__(self, flags: argparse.Namespace, cluster: EmbeddedCluster, network: Network) -> None:
        self._flags, self._servers = flags, cluster.bootstrap_servers
        self._names = TopicNames(f"outages-{uuid.uuid4().hex[:6]}.")
        self._group = f"outages-{uuid.uuid4().hex[:6]}"
        self._faults = BrokerFaults(
            cluster, network, self._names.instances, PARTITIONS, self._group, flags.seed
        )
        self._times: list[tuple[str, float, float]] = []
        self.silent: dict[str, int] = {}
        """Faults after which a system did not answer in all partitions within the patience."""
        self.peer_ends: dict[str, int] = {}
        """How often the peer ended by itself, by the kind of the last fault."""

    def run(self, place: Path) -> Iterator[dict[str, Any]]:
        """Yield a line for each system and kind."""
        kafka = {"bootstrap.servers": self._servers}
        create(kafka, self._names, PARTITIONS, REPLICAS, CREATE_S)
        admin = AdminClient(kafka | {"log_level": 0})
        admin.create_topics([NewTopic(SINK, PARTITIONS, REPLICAS)])[SINK].result(CREATE_S)
        with ExitStack() as stack:
            member = Member(
                "ours",
                Options(self._servers, guarantee="exactly_once"),
                self._names,
                PARTITIONS,
                self._group,
                place,
            )
            stack.enter_context(member)
            job = Job(
                self._servers,
                self._names.instances,
                SINK,
                f"{self._group}-streams",
                "json",
                "nba",
                low_latency=False,
                guarantee="exactly_once",
            )
            peer = stack.enter_context(LastingPeer(streams(job, place / "streams"), place))
            stack.enter_context(Child(self._load(), place / "load.log"))
            answers = {
                OURS: stack.enter_context(AnswerTimes(self._servers, self._names.predictions, PARTITIONS)),
                PEER: stack.enter_context(AnswerTimes(self._servers, SINK, PARTITIONS)),
            }
            for _ in range(self._flags.turns):
                for kind in self._flags.kinds:
                    self._await_answers(answers, "", peer)
                    began = time.monotonic()
                    self._faults.by_kind[kind]()
                    self._times.append((kind, began, time.monotonic()))
                    self._await_answers(answers, kind, peer)
        for system, times in answers.items():
            for kind, stops in pauses.report(times.seen, self._times).items():
                yield {
                    "system": system,
                    "kind": kind,
                    "faults": self._flags.turns,
                    **stops,
                    "silent_for_good": self.silent.get(f"{system}: {kind}", 0),
                    **({"ends": self.peer_ends.get(kind, 0)} if system == PEER else {}),
                }

    def _load(self) -> list[str]:
        flags = self._flags
        words = ["--bootstrap", self._servers, "--topic", self._names.instances, "--keys", str(flags.keys)]
        words += ["--rate", str(flags.rate), "--seconds", str(flags.feed_seconds)]
        return python("-m", "benchmarks.rig.paced", *words, "--partitions", str(PARTITIONS))

    def _await_answers(self, answers: Mapping[str, AnswerTimes], after: str, peer: LastingPeer) -> None:
        """Return when each partition of both systems has answered from now on, or after the patience."""
        began = time.monotonic()
        for system, times in answers.items():
            while not _have_answered(times, began):
                if peer.start_again() and self._times:
                    kind = self._times[-1][0]
                    self.peer_ends[kind] = self.peer_ends.get(kind, 0) + 1
                if time.monotonic() - began > (self._flags.patience if after else START_S):
                    if not after:
                        message = f"{system} does not answer in all partitions"
                        raise ChildFailed(message)
                    name = f"{system}: {after}"
                    self.silent[name] = self.silent.get(name, 0) + 1
                    break
                time.sleep(LOOK_S)


class LastingPeer:
    """A peer under a supervisor: it can be started again after it has ended by itself."""

    def __init__(self, command: Sequence[str], place: Path) -> None:
        """`place`: a folder for a log of each start, `peer-1.log` and so on."""
        self._command, self._place = command, place
        self._n_starts = 0
        self._child: Child | None = None

    def __enter__(self) -> Self:
        self._start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._child is not None
        self._child.__exit__(kind, error, trace)

    def start_again(self) -> bool:
        """Start the peer again if it has ended; return whether it had."""
        assert self._child is not None
        try:
            self._child.check()
        except ChildFailed as end:
            print(end, file=sys.stderr, flush=True)
            self._start()
            return True
        return False

    def _start(self) -> None:
        self._n_starts += 1
        self._child = Child(self._command, self._place / f"peer-{self._n_starts}.log").__enter__()


def _have_answered(answers: AnswerTimes, since: float) -> bool:
    seen = list(answers.seen.values())
    return len(seen) == PARTITIONS and all(times[-1] > since for times in seen)


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line (default: sys.argv)."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.outages", description=__doc__.splitlines()[0])
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=KINDS, help="default: all")
    parser.add_argument("--turns", type=number_within(int, 1), default=1, help="faults of each kind")
    parser.add_argument("--rate", type=number_within(int, 1), default=200, help="records per second")
    parser.add_argument("--keys", type=number_within(int, 1), default=64, help="models")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--patience", type=number_within(float, 1.0), default=240.0, help="seconds to wait for answers"
    )
    parser.add_argument(
        "--feed-seconds",
        type=number_within(float, 1.0),
        default=3600.0,
        help="how long there is load at most",
    )
    parser.add_argument("--keep", type=Path, help="an empty directory for the logs, which stay")
    parser.add_argument("--json", action="store_true", help="one line for each system and kind")
    return parser.parse_args(words)


def main() -> int:
    flags = arguments()
    warm_kernels(TaskConfig(model_spec=spec("nba")).default_spec())
    nodes: dict[int, EmbeddedBroker] = {}
    with (
        tempfile.TemporaryDirectory(prefix="grove-bench-") as name,
        Network(lambda node: nodes[node].process_group) as network,
    ):
        place = flags.keep or Path(name)
        place.mkdir(parents=True, exist_ok=True)
        cluster = EmbeddedCluster(REPLICAS, Path(name) / "brokers", through=network.through)
        nodes |= cluster.nodes
        with cluster:
            lines = []
            for line in Outages(flags, cluster, network).run(place):
                print(json.dumps(line, indent=None if flags.json else 2), flush=True)
                lines.append(line)
    return int(is_silent(lines))


def is_silent(lines: Iterable[Mapping[str, Any]]) -> bool:
    """Whether our worker did not answer again after some fault."""
    return any(line["system"] == OURS and line["silent_for_good"] for line in lines)


if __name__ == "__main__":
    with unwound_by_terminate():
        sys.exit(main())
