"""Gaps in the answers when a worker is killed and started again, and when workers are added.

    python -m benchmarks.restart --json
    python -m benchmarks.restart --guarantees exactly_once --rate 2000 --keys 64

Runs once for each guarantee, under a steady load: of two workers one gets SIGKILL and is started again at
once with its name and disk; then two more join (2 → 4). Each line has the time without answers for the
partitions of the killed worker, for those that moved, and for the rest (benchmarks/rig/gaps.py), and the part
of it that the start of a process took. The group waits for the name: no other worker takes over, unless the
start takes longer than the session timeout.

Then two workers run under one parent (`grove worker --workers 2`), which keeps a prepared process: one worker
gets SIGKILL, and all are restarted one by one (`grove worker restart`). These lines have the steps by the
log, in seconds from the signal. `cpu_seconds` is the CPU time of the new process until it is ready, which
also holds on a busy machine.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from benchmarks.rig.broker import broker, topics
from benchmarks.rig.gaps import AnswerWatch
from benchmarks.rig.member import PATIENCE_SECONDS, Member
from benchmarks.rig.parent import ParentMember
from benchmarks.rig.process import Child, cpu_of, python
from benchmarks.rig.systems import GUARANTEES, Options, spec
from benchmarks.rig.visible import Cluster
from streamapp.worker.compile_ahead import warm_kernels
from streamapp.worker.task.task_config import TaskConfig
from topics.definitions import TopicNames

LOOK_SECONDS = 0.1
WORKERS_IN_PATIENCE = 4  # that start within the patience for one worker, on a busy machine


class Trial:
    """Workers of one guarantee under load."""

    def __init__(
        self,
        flags: argparse.Namespace,
        bootstrap: str,
        names: TopicNames,
        guarantee: str,
        place: Path,
        more: Mapping[str, str] | None = None,
    ) -> None:
        """`more` holds further variables of the workers."""
        settings = {
            "GROVE_KAFKA_SESSION_TIMEOUT_MS": str(flags.session_ms),
            "GROVE_COMMIT_INTERVAL_MS": str(flags.commit_ms),
            **(more or {}),
        }
        self._given, self._names = flags, names
        self._options = Options(bootstrap, guarantee=guarantee, settings=settings)
        self.group = f"bench-{uuid.uuid4().hex[:8]}"
        self._place = place
        self._stack = contextlib.ExitStack()
        self.members: list[Member] = []

    def __enter__(self) -> Trial:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def partitions(self) -> int:
        count: int = self._given.partitions
        return count

    def add(self, count: int) -> list[Member]:
        """Start workers; they are not ready yet."""
        partitions = self._given.partitions
        first = len(self.members)
        new = [
            Member(f"bench-{number}", self._options, self._names, partitions, self.group, self._place)
            for number in range(first, first + count)
        ]
        for member in new:
            self._stack.enter_context(member)
        self.members += new
        return new

    def add_parent(self, workers: int) -> ParentMember:
        """Start a parent of several workers; they are not ready yet."""
        partitions = self._given.partitions
        parent = ParentMember(
            "bench", self._options, self._names, partitions, self.group, self._place, workers
        )
        self._stack.enter_context(parent)
        self.members.append(parent)
        return parent

    def wait_until_ready(self) -> None:
        """Return when every partition is live on one of the present workers."""

        def ready() -> bool:
            for member in self.members:
                member.check()
            owned = [member.owned() for member in self.members]
            return sum(map(len, owned)) == self._given.partitions and all(
                member.page("/readyz") is not None for member in self.members
            )

        patience = PATIENCE_SECONDS * max(1.0, len(self.members) / WORKERS_IN_PATIENCE)
        self.members[0].wait(ready, "and the other workers did not share all partitions", patience)

    def feed(self) -> None:
        """Start a producer that runs longer than the trial."""
        flags, names = self._given, self._names
        words = ["--bootstrap", self._options.bootstrap, "--topic", names.instances]
        words += ["--rate", str(flags.rate), "--seconds", str(flags.feed_seconds), "--keys", str(flags.keys)]
        command = python("-m", "benchmarks.rig.paced", *words, "--partitions", str(flags.partitions))
        self._stack.enter_context(Child(command, self._place / "paced"))

    def watch(self) -> AnswerWatch:
        bootstrap = self._options.bootstrap
        return self._stack.enter_context(
            AnswerWatch(bootstrap, self._names.predictions, self._given.partitions)
        )

    def settle(self, watch: AnswerWatch, since: int) -> None:
        """Return when every partition answers records that were produced `calm` seconds after `since`."""
        calm, deadline = since + int(self._given.calm * 1e9), time.monotonic() + PATIENCE_SECONDS
        while True:
            newest = watch.newest
            if len(newest) == self._given.partitions and min(newest.values()) > calm:
                return
            for member in self.members:
                member.check()
            if time.monotonic() > deadline:
                message = f"not every partition answers again: {newest}"
                raise TimeoutError(message)
            time.sleep(LOOK_SECONDS)


def run(flags: argparse.Namespace, bootstrap: str, guarantee: str) -> Iterator[dict[str, Any]]:
    """Yield the results of the restart and of the scale-up."""
    cluster = Cluster(bootstrap)
    with (
        topics(bootstrap, cluster, flags.partitions) as names,
        tempfile.TemporaryDirectory(prefix="grove-bench-") as place,
        Trial(flags, bootstrap, names, guarantee, Path(place)) as trial,
    ):
        killed, _ = trial.add(2)
        trial.wait_until_ready()
        watch = trial.watch()
        trial.feed()
        trial.settle(watch, time.monotonic_ns())
        head = {"guarantee": guarantee, "rate": flags.rate, "session_seconds": flags.session_ms / 1000}
        yield head | restart(trial, watch, killed)
        yield head | scale_up(trial, watch)


def restart(trial: Trial, watch: AnswerWatch, killed: Member) -> dict[str, Any]:
    lost = killed.owned()
    others = set(range(trial._given.partitions)) - lost
    at = time.monotonic_ns()
    killed.kill()
    killed.start()
    killed.wait_until_ready()
    spent = killed.cpu_seconds()
    trial.settle(watch, time.monotonic_ns())
    start = killed.began()
    return {
        "what": "restart",
        "killed": watch.gap(lost, at).to_dict(),
        "others": watch.gap(others, at).to_dict(),
        "start_up_seconds": round(start.assigned, 3),
        "cpu_seconds": round(spent, 2),
        "assigned_to_live_seconds": round(start.live - start.assigned, 3),
        "records_replayed": start.replayed,
    }


def run_parent(flags: argparse.Namespace, bootstrap: str, guarantee: str) -> Iterator[dict[str, Any]]:
    """Yield the results of a killed worker and of a rolling restart under a parent."""
    with (
        topics(bootstrap, Cluster(bootstrap), flags.partitions) as names,
        tempfile.TemporaryDirectory(prefix="grove-bench-") as place,
        Trial(flags, bootstrap, names, guarantee, Path(place)) as trial,
    ):
        parent = trial.add_parent(2)
        trial.wait_until_ready()
        watch = trial.watch()
        trial.feed()
        trial.settle(watch, time.monotonic_ns())
        head = {"guarantee": guarantee, "rate": flags.rate, "session_seconds": flags.session_ms / 1000}
        parent.wait(lambda: parent.prepared() == 1, "had no prepared process")
        yield head | replace(trial, watch, parent)
        parent.wait(lambda: parent.prepared() == 2, "had no second prepared process")
        yield head | restart_all(trial, watch, parent)


def replace(trial: Trial, watch: AnswerWatch, parent: ParentMember) -> dict[str, Any]:
    killed = parent.workers[0]
    lost = parent.owned(killed)
    at = time.monotonic_ns()
    spare = parent.prepared_process()
    spent = cpu_of(spare)
    since = parent.kill_worker(killed)
    parent.wait(lambda: "live" in parent.steps(killed, since), "had no replacement")
    trial.wait_until_ready()
    spent = cpu_of(spare) - spent
    trial.settle(watch, time.monotonic_ns())
    return {
        "what": "killed under a parent",
        "killed": watch.gap(lost, at).to_dict(),
        "others": watch.gap(set(range(trial.partitions)) - lost, at).to_dict(),
        "cpu_seconds": round(spent, 2),
        "steps": parent.steps(killed, since),
    }


def restart_all(trial: Trial, watch: AnswerWatch, parent: ParentMember) -> dict[str, Any]:
    at, since = time.monotonic_ns(), time.time()
    parent.grove("worker", "restart")
    trial.settle(watch, time.monotonic_ns())
    return {
        "what": "rolling restart under a parent",
        "all": watch.gap(set(range(trial.partitions)), at).to_dict(),
        "seconds": round(time.time() - since, 1),
        "steps": {worker: parent.steps(worker, since) for worker in parent.workers},
    }


def scale_up(trial: Trial, watch: AnswerWatch) -> dict[str, Any]:
    """Add two workers."""
    before = {part: member.name for member in trial.members for part in member.owned()}
    at = time.monotonic_ns()
    new = trial.add(2)
    for member in new:
        member.wait(lambda member=member: bool(member.owned()), "had no partitions")  # type: ignore[misc]
    trial.wait_until_ready()
    trial.settle(watch, time.monotonic_ns())
    after = {part: member.name for member in trial.members for part in member.owned()}
    moved = {part for part in after if after[part] != before[part]}
    return {
        "what": f"scale-up {len(trial.members) - len(new)} to {len(trial.members)}",
        "moved": watch.gap(moved, at).to_dict(),
        "kept": watch.gap(after.keys() - moved, at).to_dict(),
        "start_up_seconds": round(max(member.began().assigned for member in new), 3),
    }


TRIALS: Final = {"alone": run, "parent": run_parent}


def add_trial_arguments(parser: argparse.ArgumentParser, rate: int) -> None:
    """Add the arguments of a trial; `rate` is the default rate in records per second."""
    parser.add_argument("--partitions", type=int, default=8)
    parser.add_argument("--keys", type=int, default=64, help="models under load")
    parser.add_argument("--rate", type=int, default=rate, help="records per second")
    parser.add_argument("--session-ms", type=int, default=6000, help="session timeout")
    parser.add_argument("--commit-ms", type=int, default=100, help="commit interval")
    parser.add_argument("--calm", type=float, default=3.0, help="seconds of load between two events")
    parser.add_argument("--feed-seconds", type=float, default=300.0, help="how long there is load at most")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.restart", description=__doc__.splitlines()[0])
    parser.add_argument("--guarantees", default=",".join(GUARANTEES), help="guarantees, in this order")
    parser.add_argument("--trials", default=",".join(TRIALS), help="trials, in this order")
    add_trial_arguments(parser, rate=2000)
    parser.add_argument("--json", action="store_true", help="one line for each event, as it is known")
    flags = parser.parse_args()
    flags.guarantees = flags.guarantees.split(",")
    if wrong := sorted(set(flags.guarantees) - set(GUARANTEES)):
        parser.error(f"--guarantees {wrong[0]}: known are {', '.join(GUARANTEES)}")
    if wrong := sorted(set(flags.trials.split(",")) - TRIALS.keys()):
        parser.error(f"--trials {wrong[0]}: known are {', '.join(TRIALS)}")
    flags.trials = [TRIALS[name] for name in flags.trials.split(",")]
    return flags


def main() -> int:
    flags = arguments()
    warm_kernels(TaskConfig(model_spec=spec("nba")).default_spec())
    with broker() as bootstrap:
        for guarantee in flags.guarantees:
            for line in itertools.chain(*(trial(flags, bootstrap, guarantee) for trial in flags.trials)):
                print(json.dumps(line, indent=None if flags.json else 2), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
