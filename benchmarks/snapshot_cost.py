"""Cost of snapshots of many models for the throughput of a worker: on and off, in turns.

    python -m benchmarks.snapshot_cost --json
    python -m benchmarks.snapshot_cost --records 4000000 --interval 60

A worker processes a backlog for 10,000 models, about 10 kB each, in which each row belongs to another model
than the row before. Its models exist before the clock starts. `off` takes no snapshots; `on` takes them at an
interval shorter than the default of a minute, so that a short run has some: `minute_share` scales the
difference in CPU to one snapshot of all models per minute, as a share of a core.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.restore import NO_SNAPSHOTS
from benchmarks.rig.broker import broker, topics
from benchmarks.rig.measure import Committed, Cost
from benchmarks.rig.member import PATIENCE_SECONDS, Member
from benchmarks.rig.producing import Backfill
from benchmarks.rig.systems import GUARANTEES, Options
from benchmarks.rig.visible import Cluster
from streamapp.worker.compile_ahead import warm_kernels
from topics.clients.admin import create
from topics.clients.partitioner import partition_of
from topics.codecs import encode_instances
from topics.columns.records import Features
from topics.definitions import TopicNames

PART = 10_000  # rows encoded at a time
LOOK_SECONDS = 0.02
SPEC = json.dumps({"learner": {"name": "h-tree", "leaf_model": "nba"}, "query": {"name": "never"}})


@dataclass(frozen=True)
class Pass(Cost):
    """One pass, from the time when all models existed until everything was committed."""

    snapshots: int
    units_bytes: float
    models_bytes: float


def produce(options: argparse.Namespace, bootstrap: str, topic: str) -> None:
    """Produce one row of each model, then the remaining rows, each of any model."""
    rng = np.random.default_rng(1)
    names = tuple(f"a{number}" for number in range(options.attributes))
    keys = [b"model-%d" % number for number in range(options.models)]
    places = [partition_of(key, options.partitions) for key in keys]
    order = np.concatenate([np.arange(options.models), rng.integers(options.models, size=options.records)])
    with Backfill(bootstrap) as backfill:
        for first in range(0, len(order), PART):
            part = order[first : first + PART].tolist()
            x = rng.random((len(part), options.attributes))
            labels = np.where(x[:, 0] < 0.5, "a", "b").tolist()
            values = encode_instances(Features.of(names, x), format="packed", labels=labels)
            for key, value in zip(part, values, strict=True):
                backfill.send(topic, value, keys[key], places[key])


class Bench:
    """The backlog, and passes of a new worker over it."""

    def __init__(self, flags: argparse.Namespace, bootstrap: str, names: TopicNames) -> None:
        self._given, self._names = flags, names
        self._cluster = Cluster(bootstrap)
        self._bootstrap = bootstrap
        produce(flags, bootstrap, names.instances)

    def once(self, mode: str) -> Pass:
        """Let a worker process the backlog, as a new group without models."""
        flags, names = self._given, self._names
        interval = str(int(flags.interval * 1000))
        chosen = NO_SNAPSHOTS if mode == "off" else NO_SNAPSHOTS | {"GROVE_SNAPSHOT_INTERVAL_MS": interval}
        settings = {"GROVE_MODEL_SPEC": SPEC, "GROVE_COMMIT_INTERVAL_MS": "100", **chosen}
        options = Options(self._bootstrap, guarantee=flags.guarantee, settings=settings)
        group = f"bench-{uuid.uuid4().hex[:8]}"
        self._cluster.delete(names.journal, names.snapshots)  # left by the previous pass
        create({"bootstrap.servers": self._bootstrap}, names, flags.partitions, 1)
        progress = Committed(self._cluster, group, names.instances, flags.partitions)
        total = flags.models + flags.records
        with (
            tempfile.TemporaryDirectory(prefix="grove-bench-") as place,
            Member("bench-0", options, names, flags.partitions, group, Path(place)) as member,
        ):
            first = self._until(progress, member, min(2 * flags.models, total - 1))
            begun, cpu, counts_before = time.monotonic(), member.cpu_seconds(), _snapshots(member)
            last = self._until(progress, member, total)
            seconds, spent = time.monotonic() - begun, member.cpu_seconds() - cpu
            snapshots, size = (
                now - then for now, then in zip(_snapshots(member), counts_before, strict=True)
            )
            one_pass = Pass(
                last - first, seconds, spent, int(snapshots), size, member.metric("grove_model_bytes")
            )
            member.kill()
        if mode == "on" and not one_pass.snapshots:
            message = f"no snapshot was complete within {seconds:.1f} s: too few rows; raise --records"
            raise ValueError(message)
        return one_pass

    def _until(self, progress: Committed, member: Member, n: int) -> int:
        seen, changed = 0, time.monotonic()
        while (committed := progress.visible()) < n:
            member.check()
            if committed != seen:
                seen, changed = committed, time.monotonic()
            if time.monotonic() - changed > PATIENCE_SECONDS:
                message = f"{committed} of {n} instances were committed, no more for {PATIENCE_SECONDS:.0f} s"
                raise TimeoutError(message)
            time.sleep(LOOK_SECONDS)
        return committed


def _snapshots(member: Member) -> tuple[float, float]:
    """Return the number of completed snapshots of partitions, and their bytes (shared bytes included)."""
    return member.metric("grove_snapshots_total"), member.metric("grove_snapshot_bytes_total")


def summary(options: argparse.Namespace, turns: list[dict[str, Pass]]) -> dict[str, Any]:
    off, on = [turn["off"] for turn in turns], [turn["on"] for turn in turns]
    rounds = statistics.median(one_pass.snapshots / options.partitions for one_pass in on)
    extra = statistics.median(b.cpu_per_million - a.cpu_per_million for a, b in zip(off, on, strict=True))
    per_round = extra * statistics.median(one_pass.rows for one_pass in on) / 1e6 / rounds
    return {
        "guarantee": options.guarantee,
        "models": options.models,
        "megabytes": round(on[-1].models_bytes / 1e6, 1),
        "repeats": len(turns),
        "seconds_on": round(statistics.median(one_pass.seconds for one_pass in on), 2),
        "rows_per_second_off": round(statistics.median(one_pass.rows_per_second for one_pass in off)),
        "rows_per_second_on": round(statistics.median(one_pass.rows_per_second for one_pass in on)),
        "rate_ratio": round(
            statistics.median(b.rows_per_second / a.rows_per_second for a, b in zip(off, on, strict=True)), 3
        ),
        "cpu_per_million_off": round(statistics.median(one_pass.cpu_per_million for one_pass in off), 2),
        "cpu_per_million_on": round(statistics.median(one_pass.cpu_per_million for one_pass in on), 2),
        "snapshots_of_all": round(rounds, 2),
        "megabytes_written": round(statistics.median(one_pass.units_bytes for one_pass in on) / 1e6, 1),
        "cpu_seconds_a_snapshot_of_all": round(per_round, 3),
        "minute_share": round(per_round / 60, 4),
    }


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.snapshot_cost", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--guarantee", choices=GUARANTEES, default="exactly_once")
    parser.add_argument("--models", type=int, default=10_000)
    parser.add_argument("--attributes", type=int, default=120, help="120 make 10 kB a model")
    parser.add_argument("--partitions", type=int, default=8)
    parser.add_argument("--records", type=int, default=2_400_000, help="beside the first one of each model")
    parser.add_argument("--interval", type=float, default=5.0, help="seconds between snapshots")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="one line")
    return parser.parse_args()


def main() -> int:
    options = arguments()
    warm_kernels()
    with broker() as bootstrap, topics(bootstrap, Cluster(bootstrap), options.partitions) as names:
        bench = Bench(options, bootstrap, names)
        turns = []
        for number in range(options.repeats):
            modes = ("off", "on") if number % 2 == 0 else ("on", "off")
            turns.append({mode: bench.once(mode) for mode in modes})
            rates = {mode: f"{cost.rows_per_second:,.0f} rows/s" for mode, cost in turns[-1].items()}
            print(f"turn {number + 1} of {options.repeats}: {rates}", file=sys.stderr, flush=True)
    print(json.dumps(summary(options, turns), indent=None if options.json else 2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
