"""Time until a partition is live again: from snapshots on a warm or a wiped disk, and by replay.

    python -m benchmarks.restore --json
    python -m benchmarks.restore --what models,model --models 10000
    python -m benchmarks.restore --what tail --records 300000

Prints one line each. `models`: one partition with many models, about 10 kB each; `model`: one with a single
large tree. A worker learns them, is killed when all state is in a snapshot, and is started again on its disk,
then without it. The figure is the time from the assignment by the group until the partition is live, with its
parts: reading the snapshot, making the task from it, and replaying.

`tail`: a worker processes a backlog and is killed; no snapshot was taken, so the next start replays all of
it. The ratio is the speed of the replay to that of the first pass; the ratio of CPU seconds is valid on a
busy machine, too.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.rig.backlog import load
from benchmarks.rig.broker import broker, topics
from benchmarks.rig.measure import Committed
from benchmarks.rig.member import PATIENCE_SECONDS, Member, Start
from benchmarks.rig.producing import Backfill
from benchmarks.rig.stream import generate, model_keys
from benchmarks.rig.systems import GUARANTEES, Options
from benchmarks.rig.visible import Cluster
from streamapp.worker.compile_ahead import warm_kernels
from topics.codecs import encode_instances
from topics.columns.records import Features
from topics.definitions import TopicNames

NO_SNAPSHOTS = {
    "GROVE_SNAPSHOT_INTERVAL_MS": "86400000",
    "GROVE_SNAPSHOT_MAX_REPLAY_MS": "3600000",
    "GROVE_SNAPSHOT_MAX_REPLAY_BYTES": str(1 << 50),
}
LOOK_SECONDS = 0.02
PART = 5_000  # rows encoded at a time
TAIL_PARTITIONS = 8


@dataclass(frozen=True)
class State:
    """The state of a partition: `keys` models that learn `labels` rows of `attributes` numbers each."""

    keys: int
    labels: int
    attributes: int
    classes: int
    learner: dict[str, Any]


def states(flags: argparse.Namespace) -> dict[str, State]:
    one_leaf = {"name": "h-tree", "leaf_model": "nba"}
    # Splits at almost any difference: the aim is many leaves after few rows.
    eager = {"name": "h-tree", "leaf_model": "nba", "grace_period": 20, "delta": 0.5, "tau": 0.9}
    return {
        "models": State(flags.models, 3, 120, 2, one_leaf),
        "model": State(1, flags.rows, 2000, 20, eager),
    }


def produce(bootstrap: str, topic: str, state: State) -> int:
    """Produce the rows of a state to partition 0; return how many."""
    rng, n = np.random.default_rng(1), state.keys * state.labels
    names = tuple(f"a{number}" for number in range(state.attributes))
    part = min(PART, max(1, 5_000_000 // state.attributes))
    with Backfill(bootstrap) as backfill:
        for first in range(0, n, part):
            m = min(part, n - first)
            x = rng.random((m, state.attributes))
            labels = (x[:, 0] * state.classes).astype(int).astype(str).tolist()
            values = encode_instances(Features.of(names, x), format="packed", labels=labels)
            for row, value in enumerate(values):
                backfill.send(topic, value, b"model-%d" % ((first + row) % state.keys), 0)
    return n


def from_snapshots(
    flags: argparse.Namespace, bootstrap: str, what: str, state: State
) -> Iterator[dict[str, Any]]:
    """Yield the time of a start on a warm disk, and on a wiped one."""
    cluster = Cluster(bootstrap)
    spec = json.dumps({"learner": state.learner, "query": {"name": "never"}})
    settings = {"GROVE_MODEL_SPEC": spec, "GROVE_SNAPSHOT_INTERVAL_MS": "1000"}
    options = Options(bootstrap, guarantee=flags.guarantee, settings=settings)
    with (
        topics(bootstrap, cluster, 1) as names,
        tempfile.TemporaryDirectory(prefix="grove-bench-") as place,
    ):
        n = produce(bootstrap, names.instances, state)
        group = f"bench-{uuid.uuid4().hex[:8]}"
        with Member("bench-0", options, names, 1, group, Path(place)) as member:
            await_committed(cluster, member, group, names, 1, n)
            whole = f"at controls 0, instances {n}, labels 0 is complete"
            member.wait(lambda: any(whole in text for _, text in member.said()), "had no snapshot of it all")
            size, models = member.metric("grove_model_bytes"), member.metric("grove_models_loaded")
            member.kill()
            for disk in ("warm", "wiped"):
                if disk == "wiped":
                    member.wipe()
                member.start()
                member.wait_until_ready()
                again = member.metric("grove_models_loaded")
                start = member.began()
                member.kill()
                yield {
                    "what": what,
                    "guarantee": flags.guarantee,
                    "disk": disk,
                    "models": int(again),
                    "all_models": again == models,
                    "megabytes": round(size / 1e6, 1),
                    **took(start),
                }


def took(start: Start) -> dict[str, Any]:
    return {
        "restore_seconds": round(start.live - start.assigned, 3),
        "rebuild_seconds": round(start.restoring, 3),
        "records_replayed": start.replayed,
        "start_up_seconds": round(start.assigned, 3),
    }


def from_journal(flags: argparse.Namespace, bootstrap: str, form: str) -> dict[str, Any]:
    """Return the speed of replaying the tail, beside the speed of the pass that made it."""
    cluster = Cluster(bootstrap)
    options = Options(bootstrap, guarantee=flags.guarantee, settings=NO_SNAPSHOTS)
    partitions = TAIL_PARTITIONS
    with (
        topics(bootstrap, cluster, partitions) as names,
        tempfile.TemporaryDirectory(prefix="grove-bench-") as place,
    ):
        rows = generate(flags.records, model_keys(64, partitions))
        load(bootstrap, names.instances, rows, form, partitions)
        group = f"bench-{uuid.uuid4().hex[:8]}"
        with Member("bench-0", options, names, partitions, group, Path(place)) as member:
            first, seconds, cpu = await_committed(cluster, member, group, names, partitions, len(rows))
            member.kill()
            member.start()
            member.wait(lambda: bool(member.owned()), "had no partitions")
            before = member.cpu_seconds()
            member.wait_until_ready()
            replay_cpu = (member.cpu_seconds() - before) / len(rows) * 1e6
            start = member.began()
            member.kill()
    live, live_cpu = (len(rows) - first) / seconds, cpu / (len(rows) - first) * 1e6
    replay = start.replayed / (start.live - start.assigned)
    return {
        "what": "tail",
        "guarantee": flags.guarantee,
        "format": form,
        "live_records_per_second": round(live),
        "replayed_records_per_second": round(replay),
        "ratio": round(replay / live, 2),
        "live_cpu_per_million": round(live_cpu, 2),
        "replay_cpu_per_million": round(replay_cpu, 2),
        "cpu_ratio": round(live_cpu / replay_cpu, 2),
        **took(start),
    }


def await_committed(
    cluster: Cluster, member: Member, group: str, names: TopicNames, partitions: int, n: int
) -> tuple[int, float, float]:
    """Return when n instances are committed: the number at the first check that showed any, and the seconds
    and CPU seconds since then.
    """
    progress = Committed(cluster, group, names.instances, partitions)
    first, begun, cpu, deadline = 0, 0.0, 0.0, time.monotonic() + PATIENCE_SECONDS
    while (committed := progress.visible()) < n:
        member.check()
        if committed and not first:
            first, begun, cpu = committed, time.monotonic(), member.cpu_seconds()
        if time.monotonic() > deadline:
            message = f"{committed} of {n} instances were committed after {PATIENCE_SECONDS:.0f} s"
            raise TimeoutError(message)
        time.sleep(LOOK_SECONDS)
    return first, time.monotonic() - begun, member.cpu_seconds() - cpu


WHAT = ("models", "model", "tail")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.restore", description=__doc__.splitlines()[0])
    parser.add_argument("--what", default=",".join(WHAT), help="parts, in this order")
    parser.add_argument("--guarantee", choices=GUARANTEES, default="exactly_once")
    parser.add_argument("--models", type=int, default=10_000)
    parser.add_argument("--rows", type=int, default=3_000, help="that the single large model learns")
    parser.add_argument("--records", type=int, default=500_000, help="of the tail")
    parser.add_argument("--formats", default="json,packed", help="of the tail")
    parser.add_argument("--json", action="store_true", help="one line each, as it is known")
    flags = parser.parse_args()
    flags.what = flags.what.split(",")
    if wrong := sorted(set(flags.what) - set(WHAT)):
        parser.error(f"--what {wrong[0]}: known are {', '.join(WHAT)}")
    return flags


def main() -> int:
    flags = arguments()
    warm_kernels()
    with broker() as bootstrap:
        for line in lines(flags, bootstrap):
            print(json.dumps(line, indent=None if flags.json else 2), flush=True)
    return 0


def lines(flags: argparse.Namespace, bootstrap: str) -> Iterator[dict[str, Any]]:
    for what in flags.what:
        if what == "tail":
            for form in flags.formats.split(","):
                yield from_journal(flags, bootstrap, form)
        else:
            yield from from_snapshots(flags, bootstrap, what, states(flags)[what])


if __name__ == "__main__":
    sys.exit(main())
