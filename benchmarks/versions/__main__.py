"""`python -m benchmarks.versions --json`: workers of the last tag and of this tree in one group, under load.

1. All workers are of the old release; then each is upgraded in turn (SIGTERM, start, ready).
2. In between, while both releases are in the group, workers leave it and come back, so that partitions move
   from the new release to the old one and back.
3. All workers go back to the old release in turn.
4. One worker is upgraded; one of its models is reset to a learner that the old release lacks, and this worker
   leaves the group. The old release must stop that partition alone, until it is upgraded, too.

Then everything is drained, and checked as by `benchmarks.chaos`.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Producer

from benchmarks.bounded_numbers import number_within
from benchmarks.chaos import pauses
from benchmarks.chaos.__main__ import wrong
from benchmarks.chaos.checker import check, log_ends
from benchmarks.chaos.fleet import READY_MOST_S, ChaosError, Fleet, Worker, wait_until
from benchmarks.chaos.installation import CHALLENGES, MODELS, PARTITIONS, SPEC, Installation
from benchmarks.chaos.load import Load
from benchmarks.chaos.pauses import AnswerTimes
from benchmarks.chaos.reference import Reference
from benchmarks.chaos.source_tape import SourceTape
from benchmarks.chaos.tape import Tape, values
from benchmarks.rig.terminated import unwound_by_terminate
from benchmarks.versions.installed import Installed, NoReleaseError, newest_release, of_release, of_this_tree
from benchmarks.versions.newest_word import declare, newest_learner
from core.spec import Spec
from core.state_version import ALIKE_SINCE
from streamapp.embedded import EmbeddedBroker
from streamapp.worker.compile_ahead import warm_kernels
from streamapp.worker.task.sources import SourceName
from topics.clients.partitioner import partition_of

SESSION_S: Final = 150.0  # static members: a worker that starts again within it keeps its partitions
WORKERS: Final = 2
DRAIN: Final = signal.SIGUSR2
LIVE: Final = re.compile(r"partition-(\d+) ok: live")
STOPPED: Final = re.compile(r"partition-(\d+) failed: stopped: (.*)")


def main() -> int:
    """Run and print; return an exit code that shows whether anything was wrong."""
    options = parse()
    with tempfile.TemporaryDirectory(prefix="versions-") as name:
        directory = options.keep or Path(name)
        directory.mkdir(parents=True, exist_ok=True)
        old, new = releases(options.old or newest_release(), directory)
        with EmbeddedBroker(Path(name) / "broker") as broker:
            report = run(options, directory, broker, old, new)
    print(json.dumps(report) if options.json else "\n".join(f"{k:24} {v}" for k, v in report.items()))
    return int(bool(broken(report)))


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line (default: sys.argv)."""
    parser = argparse.ArgumentParser(prog="benchmarks.versions", description=__doc__)
    parser.add_argument("--old", default="", help="a tag; default: the newest release")
    parser.add_argument(
        "--seconds", type=number_within(float, 1.0), default=5.0, help="of load in each state of the group"
    )
    parser.add_argument("--rate", type=number_within(float, 0.001), default=300.0, help="rows a second")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--guarantee", choices=["exactly_once", "at_least_once"], default="exactly_once")
    parser.add_argument("--keep", type=Path, help="an empty directory for wheels and logs, which stay")
    parser.add_argument("--json", action="store_true", help="one object instead of lines")
    return parser.parse_args(arguments)


def releases(release: str, directory: Path) -> tuple[Installed, Installed]:
    """Return a release and the present tree's, with compiled kernels."""
    with phase("wheels"):
        old, new = of_release(release, directory), of_this_tree(directory)
    specs: list[Any] = [SPEC, *(challenge["spec"] for challenge in CHALLENGES.values())]
    with phase(f"kernels of {old.name}"):
        old.warm(*specs)
    learner = newest_learner(state_version_of(old))
    if learner is not None:
        specs.append({"learner": learner})
    with phase(f"kernels of {new.name}"):
        new.warm(*specs)
    with phase("kernels of the check's replay"):  # numba keeps a cache for each place of the sources
        warm_kernels(*map(Spec.parse, specs))
    return old, new


@contextmanager
def phase(name: str) -> Iterator[None]:
    """Print to standard error when a part of the program begins, and how long it took."""
    print(f"{name} ...", file=sys.stderr, flush=True)
    began = time.monotonic()
    yield
    print(f"{name}: {time.monotonic() - began:.1f} s", file=sys.stderr, flush=True)


def broken(report: Mapping[str, Any]) -> dict[str, Any]:
    """Return the figures of a report that violate its guarantee."""
    flaws = wrong(dict(report))
    word = report["new_word"]
    if word["stopped"] != [word["partition"]]:
        flaws["stopped"] = word["stopped"]
    if report["workers_that_ended"]:
        flaws["workers_that_ended"] = report["workers_that_ended"]
    return flaws


class Group:
    """The workers, their releases, and the steps of an operator."""

    def __init__(self, fleet: Fleet, old: Installed, new: Installed) -> None:
        self._fleet = fleet
        self.releases = {"old": old, "new": new}
        self.steps: list[tuple[str, float, float]] = []
        """Name, begin and end (time.monotonic()) of each step."""

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Note when a step begins and ends."""
        began = time.monotonic()
        with phase(name):
            yield
        self.steps.append((name, began, time.monotonic()))

    def change(self, number: int, release: str, *, ready: bool = True) -> None:
        """Let a worker go on as one of another release; it stays a member of the group."""
        worker = self._fleet.workers[number]
        worker.terminate()
        self.set(worker, release)
        worker.start()
        if ready:
            self._fleet.wait_until_ready()

    def set(self, worker: Worker, release: str) -> None:
        """Set the release of the next start."""
        worker.command = [self.releases[release].grove, "worker"]

    def leave(self, number: int) -> None:
        """Let a worker leave the group, and return when it has ended."""
        worker = self._fleet.workers[number]
        worker.signal(DRAIN)
        wait_until(lambda: not worker.runs, READY_MOST_S, lambda: f"{worker.name} does not end: {worker.log}")

    def visit(self, number: int) -> None:
        """Let a worker leave the group, which moves its partitions to the other worker, and come back."""
        self.leave(number)
        other = self._fleet.workers[1 - number]
        wait_until(lambda: len(live(other)) == PARTITIONS, READY_MOST_S, lambda: said_by(other))
        self._fleet.workers[number].start()
        self._fleet.wait_until_ready()


def live(worker: Worker) -> set[int]:
    """Return the partitions that are live on a worker."""
    return {int(number) for number in LIVE.findall(worker.readiness())}


def stopped(worker: Worker) -> dict[int, str]:
    """Return the partitions that are stopped on a worker, with the reason."""
    return {int(number): reason for number, reason in STOPPED.findall(worker.readiness())}


def environment(place: Installation, guarantee: str) -> dict[str, str]:
    """Return the settings of the workers."""
    return {
        **place.environment(guarantee),
        "GROVE_KAFKA_SESSION_TIMEOUT_MS": str(int(SESSION_S * 1000)),
        "GROVE_TRANSACTION_TIMEOUT_MS": str(int(SESSION_S * 1000)),
    }


def run(
    options: argparse.Namespace, directory: Path, broker: EmbeddedBroker, old: Installed, new: Installed
) -> dict[str, Any]:
    """Run the load and the steps, drain, and check."""
    old_version = state_version_of(old)
    if old_version < ALIKE_SINCE:
        message = f"{old.name} reads state version {old_version}, this tree writes {ALIKE_SINCE}: no way back"
        raise ChaosError(message)
    learner = newest_learner(old_version)
    stands_in = learner is None
    learner = learner or declare(new)
    servers = broker.bootstrap_servers
    place = Installation(servers, "versions.", "versions")
    place.create_topics()
    place.make_models()
    names = place.names
    load = Load(servers, names.instances, PARTITIONS, MODELS, options.rate, options.seed)
    data = directory / "data.csv"
    with phase("data set"):
        load.write_data(data, int(options.rate * READY_MOST_S), options.seed)
    oracles = place.oracles(data, "--delay", "~500ms", "--loss", "0.1")
    with (
        Tape(servers, names.journal, PARTITIONS) as journal,
        SourceTape(servers, names.instances, PARTITIONS) as instances,
        SourceTape(servers, names.labels, PARTITIONS) as labels,
        started(Fleet(environment(place, options.guarantee), directory, WORKERS, oracles), old) as fleet,
        AnswerTimes(servers, names.predictions, PARTITIONS) as answers,
    ):
        group = Group(fleet, old, new)
        with phase("first start"):
            fleet.wait_until_ready()
        load.start()
        try:
            roll(group, options.seconds)
            word = new_word(group, fleet, place, load.keys, learner, options.seconds)
        finally:
            with phase("end of the load"):
                load.stop()
        with phase("drain"):
            drained = place.drain(fleet)
        with phase("models and logs"):
            live_models = place.models(fleet, load.keys)
            journal.stop()
            logs: dict[SourceName, SourceTape] = {"instances": instances, "labels": labels}
            for source, tape in logs.items():
                tape.wait_for(dict(enumerate(log_ends(servers, getattr(names, source), PARTITIONS))))
    with phase("check"):
        findings = check(servers, place.prefix, PARTITIONS, load.sent, values(journal.records))
    with phase("replay"):
        undisturbed = Reference(names, values(journal.records), logs).models()
    return {
        "old": old.name,
        "guarantee": options.guarantee,
        "rate": options.rate,
        "seed": options.seed,
        **{name: value for name, value in dataclasses.asdict(findings).items() if name != "examples"},
        "state_equal": live_models == {key: undisturbed.get(key) for key in load.keys},
        "models": len(live_models),
        "new_word": {**word, "stands_in": stands_in},
        "pauses": pauses.report(answers.seen, group.steps),
        "workers_that_ended": {
            worker.name: worker.ended_by_itself for worker in fleet.workers if worker.ended_by_itself
        },
        "drain_seconds": round(drained, 1),
        "examples": findings.examples,
    }


@contextmanager
def started(fleet: Fleet, release: Installed) -> Iterator[Fleet]:
    """Start a fleet whose workers are of a release."""
    for worker in fleet.workers:
        worker.command = [release.grove, "worker"]
    with fleet:
        yield fleet


def roll(group: Group, seconds: float) -> None:
    """Upgrade the workers and take them back, one by one, with partitions that move in between."""
    time.sleep(seconds)  # the load of each state, here and below
    with group.step("upgrade"):
        group.change(0, "new")
    for number, name in ((0, "new leaves and returns"), (1, "old leaves and returns")):
        with group.step(name):
            group.visit(number)
        time.sleep(seconds)
    with group.step("upgrade"):
        group.change(1, "new")
    time.sleep(seconds)
    for number in range(WORKERS):
        with group.step("rollback"):
            group.change(number, "old")
        time.sleep(seconds)


def new_word(
    group: Group, fleet: Fleet, place: Installation, keys: Sequence[str], learner: str, seconds: float
) -> dict[str, Any]:
    """Let a model of a mixed group use a learner that the old release lacks; return what happens."""
    new, old = fleet.workers
    group.change(0, "new")
    homes = {key: partition_of(key.encode(), PARTITIONS) for key in keys if key.startswith("model-1")}
    own = live(new)
    key, number = next((key, number) for key, number in homes.items() if number in own)
    producer = Producer({"bootstrap.servers": place.servers, "log_level": 0})
    control = json.dumps({"command": "reset", "spec": {"learner": learner}})
    producer.produce(place.names.controls, control, key, number)
    producer.flush()
    wait_until(lambda: is_of(new, key, learner), READY_MOST_S, lambda: f"no {learner}: {said_by(new)}")
    time.sleep(seconds)
    with group.step("the new word meets the old release"):
        group.leave(0)
        wait_until(
            lambda: len(live(old)) + len(stopped(old)) == PARTITIONS,
            READY_MOST_S,
            lambda: said_by(old),
        )
    reasons = stopped(old)
    time.sleep(seconds)
    if stopped(old) != reasons:
        message = f"other partitions stopped, too: {said_by(old)}"
        raise ChaosError(message)
    with group.step("upgrade after the stop"):
        group.change(1, "new", ready=False)
        new.start()
        fleet.wait_until_ready()
    return {
        "learner": learner,
        "partition": number,
        "stopped": sorted(reasons),
        "line": next(iter(reasons.values()), ""),
    }


def said_by(worker: Worker) -> str:
    """Return the state of a worker's partitions, and the end of its log."""
    return worker.readiness() + worker.log[-3000:]


def is_of(worker: Worker, key: str, learner: str) -> bool:
    """Return whether a worker has a model of a key with this learner."""
    page = worker.page(f"/models/{key}") or b""
    return f'"name":"{learner}"'.encode() in page[:4096]


def state_version_of(release: Installed) -> int:
    """Return the newest state version that a release reads."""
    command = [str(release.grove), "version", "--json"]
    printed = subprocess.run(command, env=os.environ, capture_output=True, text=True, check=True)
    return int(json.loads(printed.stdout)["state version"])


if __name__ == "__main__":
    try:
        with unwound_by_terminate():
            sys.exit(main())
    except (ChaosError, NoReleaseError) as error:
        sys.exit(f"versions: {error}")
