"""Rebalance: how long partitions stand still when a second worker joins, by partitions and models."""

from __future__ import annotations

import argparse
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from benchmarks.restart import Trial
from benchmarks.rig.broker import topics
from benchmarks.rig.keyed_load import KeyedLoad
from benchmarks.rig.member import LIVE, RESTORED, Member
from benchmarks.rig.visible import Cluster

RECORDS_PER_MODEL: Final = 3
SNAPSHOTS: Final = {"GROVE_SNAPSHOT_INTERVAL_MS": "1000"}
KERNELS = re.compile(r"kernels of .* are ready.*")
COMPLETE = re.compile(r"partition (\d+): .* is complete.*")
REVOKED = "committed: partitions revoked"


def measure_rebalance(flags: argparse.Namespace, bootstrap: str) -> Iterator[dict[str, Any]]:
    """Yield a line for each pair of partitions and models in `flags.rebalance`."""
    cluster = Cluster(bootstrap)
    for partitions, models in flags.rebalance:
        of_trial = argparse.Namespace(**{**vars(flags), "partitions": partitions})
        with (
            topics(bootstrap, cluster, partitions) as names,
            tempfile.TemporaryDirectory(prefix="grove-bench-") as place,
            Trial(of_trial, bootstrap, names, flags.guarantee, Path(place), SNAPSHOTS) as trial,
        ):
            (first,) = trial.add(1)
            trial.wait_until_ready()
            load = KeyedLoad.draw(models, models, partitions, 0.0).each_key(RECORDS_PER_MODEL)
            load.publish(bootstrap, names.instances, "json")
            _await_snapshots(first, load)
            (second,) = trial.add(1)
            trial.wait_until_ready()
            yield {"partitions": partitions, "models": models, "guarantee": flags.guarantee} | _times(
                first, second
            )


def _await_snapshots(member: Member, load: KeyedLoad) -> None:
    """Return when all models exist, and each partition with models has a complete snapshot."""
    filled = {number for number, records in enumerate(load.by_partition) if records}

    def is_over() -> bool:
        complete = {int(match[1]) for _, text in member.said() if (match := COMPLETE.fullmatch(text))}
        return filled <= complete and member.metric("grove_models_loaded") >= len(load.keys)

    member.wait(is_over, "had no complete snapshot of each partition")


def _times(first: Member, second: Member) -> dict[str, Any]:
    """Return the seconds of a rebalance by the logs of both workers."""
    ready = next(at for at, text in second.said() if KERNELS.fullmatch(text))
    revoked = max(at for at, text in first.said() if text == REVOKED)
    kept = [at - revoked for at, text in first.said() if at > revoked and LIVE.fullmatch(text)]
    moved = [at - revoked for at, text in second.said() if LIVE.fullmatch(text)]
    restored = [match for _, text in second.said() if (match := RESTORED.fullmatch(text))]
    return {
        "ready_to_live_seconds": round(max([*kept, *moved]) + revoked - ready, 2),
        "kept_stop_seconds": round(max(kept), 2),
        "moved_stop_seconds": round(max(moved), 2),
        "moved_partitions": len(moved),
        "records_replayed": sum(int(match[2]) for match in restored),
        "load_average": round(os.getloadavg()[0], 1),
    }
