"""Gaps in the answers when another worker takes over, with and without a standby.

    python -m benchmarks.takeover --json
    python -m benchmarks.takeover --models 10000 --ends killed

Two workers share partitions with models of about 10 kB each, all of them in snapshots. Under a steady load
one worker is *killed*, or *stopped* in order with a request to leave the group (`grove worker drain`), and
does not come back; the other worker takes its partitions. There is one line for each end, without a standby
(`num.standby.replicas`) and with one. It has the time without answers for the partitions that moved and for
the rest (benchmarks/rig/gaps.py), the time of the rebalance until all partitions were live, and the amounts
read and replayed for it. A group notices a killed worker only when the session has timed out; that is part of
the gap.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import orjson

from benchmarks.restart import Trial, add_trial_arguments
from benchmarks.rig.broker import broker, topics
from benchmarks.rig.gaps import AnswerWatch
from benchmarks.rig.member import Member
from benchmarks.rig.producing import Backfill
from benchmarks.rig.systems import GUARANTEES, spec
from benchmarks.rig.terminated import unwound_by_terminate
from benchmarks.rig.visible import Cluster
from streamapp.worker.compile_ahead import warm_kernels
from streamapp.worker.control import DRAIN
from streamapp.worker.task.task_config import TaskConfig
from topics.definitions import TopicNames

ATTRIBUTES: Final = 120  # a model of one leaf then has about 10 kB
ROWS_PER_MODEL: Final = 3
ACTIVE, STANDBY = 'role="active"', 'role="standby"'
ENDS: Final = {"killed": signal.SIGKILL, "stopped": DRAIN}


@dataclass(frozen=True)
class Counts:
    """Counters of the worker that stays, before or after."""

    parts: float  # parts of snapshots, read for its own partitions
    megabytes: float
    replayed: float
    rebalancing: float  # seconds from losing partitions until all of them are live

    @classmethod
    def of(cls, member: Member) -> Counts:
        return cls(
            member.metric("grove_changelog_records_total", ACTIVE),
            member.metric("grove_changelog_bytes_total", ACTIVE) / 1e6,
            member.metric("grove_replayed_records_total"),
            member.metric("grove_rebalance_seconds_sum"),
        )


def fill(bootstrap: str, names: TopicNames, models: int, partitions: int) -> int:
    """Produce rows for many models, spread over the partitions; return their number.

    Their ids are numbers like those of the load, with times long ago.
    """
    rng, n = np.random.default_rng(1), models * ROWS_PER_MODEL
    attributes = [f"a{number}" for number in range(ATTRIBUTES)]
    with Backfill(bootstrap) as backfill:
        for row in range(n):
            x, model = rng.random(ATTRIBUTES).tolist(), row % models
            features = dict(zip(attributes, x, strict=True))
            value = orjson.dumps({"id": str(row), "features": features, "label": str(int(x[0] > 0.5))})
            backfill.send(names.instances, value, b"model-%d" % model, model % partitions)
    return n


def await_snapshots(
    flags: argparse.Namespace, bootstrap: str, names: TopicNames, trial: Trial, standbys: int
) -> int:
    """Return the number of snapshot parts, once all produced records are in snapshots and the standbys have
    these.
    """
    first, partitions = trial.members[0], range(flags.partitions)
    rows = [len(range(number, flags.models, flags.partitions)) * ROWS_PER_MODEL for number in partitions]

    def whole() -> bool:
        texts = [text for member in trial.members for _, text in member.said() if "is complete" in text]
        is_complete = [
            any(
                f"partition {number}: " in text and f" at controls 0, instances {n}, labels 0 " in text
                for text in texts
            )
            for number, n in enumerate(rows)
        ]
        return all(is_complete)

    first.wait(whole, "and the other worker had not all of it in snapshots")
    parts = sum(Cluster(bootstrap).ends(names.snapshots, flags.partitions))
    read = "grove_changelog_records_total"
    first.wait(
        lambda: sum(member.metric(read, STANDBY) for member in trial.members) >= parts * standbys,
        "and the other worker had not read all parts of snapshots",
    )
    return parts


def run(flags: argparse.Namespace, bootstrap: str, end: str, replicas: int) -> dict[str, Any]:
    more = {"GROVE_NUM_STANDBY_REPLICAS": str(replicas), "GROVE_SNAPSHOT_INTERVAL_MS": "1000"}
    with (
        topics(bootstrap, Cluster(bootstrap), flags.partitions) as names,
        tempfile.TemporaryDirectory(prefix="grove-bench-") as place,
        Trial(flags, bootstrap, names, flags.guarantee, Path(place), more) as trial,
    ):
        gone, stays = trial.add(2)
        trial.wait_until_ready()
        fill(bootstrap, names, flags.models, flags.partitions)
        parts = await_snapshots(flags, bootstrap, names, trial, replicas)
        watch = trial.watch()
        trial.feed()
        trial.settle(watch, time.monotonic_ns())
        models = int(sum(member.metric("grove_models_loaded") for member in trial.members))
        times = take_over(trial, watch, gone, stays, end)
        return {
            "end": end,
            "standbys": replicas,
            "guarantee": flags.guarantee,
            "models": flags.models,
            "parts_of_snapshots": parts,
            **times,
            "models_lost": max(0, models - int(stays.metric("grove_models_loaded"))),
        }


def take_over(trial: Trial, watch: AnswerWatch, gone: Member, stays: Member, end: str) -> dict[str, Any]:
    """End a worker, and let the other worker take its partitions."""
    moved, kept = gone.owned(), stays.owned()
    before, at = Counts.of(stays), time.monotonic_ns()
    trial.members.remove(gone)
    gone.end(ENDS[end])
    stays.wait(lambda: stays.owned() == moved | kept, "was not given all partitions")
    stays.wait_until_ready()
    trial.settle(watch, time.monotonic_ns())
    after = Counts.of(stays)
    return {
        "moved": watch.gap(moved, at).to_dict(),
        "kept": watch.gap(kept, at).to_dict(),
        "rebalance_seconds": round(after.rebalancing - before.rebalancing, 3),
        "parts_read": int(after.parts - before.parts),
        "megabytes_read": round(after.megabytes - before.megabytes, 1),
        "records_replayed": int(after.replayed - before.replayed),
    }


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.takeover", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--models", type=int, default=10_000, help="of about 10 kB each")
    parser.add_argument("--ends", default=",".join(ENDS), help="ends of the worker, in this order")
    parser.add_argument("--guarantee", choices=GUARANTEES, default="exactly_once")
    add_trial_arguments(parser, rate=1000)
    parser.add_argument("--json", action="store_true", help="one line for each, as it is known")
    flags = parser.parse_args()
    flags.ends = flags.ends.split(",")
    if wrong := sorted(set(flags.ends) - ENDS.keys()):
        parser.error(f"--ends {wrong[0]}: known are {', '.join(ENDS)}")
    return flags


def main() -> int:
    flags = arguments()
    warm_kernels(TaskConfig(model_spec=spec("nba")).default_spec())
    with broker() as bootstrap:
        for end in flags.ends:
            for replicas in (0, 1):
                line = run(flags, bootstrap, end, replicas)
                print(json.dumps(line, indent=None if flags.json else 2), flush=True)
    return 0


if __name__ == "__main__":
    with unwound_by_terminate():
        sys.exit(main())
