"""`python -m benchmarks.chaos --workers 3 --seconds 300 --rate 3000 --seed 1 --guarantee exactly_once`."""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.chaos.checker import check
from benchmarks.chaos.faults import Faults
from benchmarks.chaos.fleet import READY_S, ChaosError, Fleet, wait_until
from benchmarks.chaos.load import Load
from benchmarks.chaos.reference import Archive
from streamapp.embedded import EmbeddedBroker
from topics import admin
from topics.definitions import TopicNames

PARTITIONS = 8
MODELS = 16
PREFIX = "chaos."
GROUP = "chaos"
SESSION_S = 6.0
DRAIN_S = 600.0

SPEC = {
    "learner": {"name": "h-tree", "grace_period": 100, "delta": 1e-3, "tau": 0.1, "leaf_model": "nba"},
    "query": "variable_uncertainty",
    "budget": {"name": "count", "limit": 0.3},
    "drift": "ddm",
}


def main() -> int:
    """Run, print, and tell by the exit code whether anything was wrong."""
    options = parse()
    compile_kernels()
    with (
        tempfile.TemporaryDirectory(prefix="chaos-") as name,
        EmbeddedBroker(Path(name) / "broker") as broker,
    ):
        report = run(options, Path(name), broker)
    print(json.dumps(report) if options.json else "\n".join(f"{k:24} {v}" for k, v in report.items()))
    wrong = report["lost"] or report["invented"] or report["disordered"] or not report["state_equal"]
    return int(bool(wrong or (options.guarantee == "exactly_once" and report["doubled"])))


def compile_kernels() -> None:
    """Have them compiled before any worker starts: else all would, side by side, and anew after each kill."""
    subprocess.run([sys.executable, "-m", "streamapp", "warm"], check=True, stdout=subprocess.DEVNULL)


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line (default: that of the process)."""
    parser = argparse.ArgumentParser(prog="benchmarks.chaos", description=__doc__)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=300.0, help="of faults; draining comes on top")
    parser.add_argument("--rate", type=float, default=3000.0, help="rows a second")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--guarantee", choices=["exactly_once", "at_least_once"], default="exactly_once")
    parser.add_argument("--json", action="store_true", help="one object instead of lines")
    return parser.parse_args(arguments)


def run(options: argparse.Namespace, directory: Path, broker: EmbeddedBroker) -> dict[str, Any]:
    """Feed, harm, drain, check."""
    servers, names = broker.bootstrap_servers, TopicNames(PREFIX)
    admin.create({"bootstrap.servers": servers}, names, PARTITIONS, 1)
    environment = {
        "GROVE_KAFKA_BOOTSTRAP_SERVERS": servers,
        "GROVE_APPLICATION_ID": GROUP,
        "GROVE_TOPICS_PREFIX": PREFIX,
        "GROVE_PROCESSING_GUARANTEE": options.guarantee,
        "GROVE_KAFKA_SESSION_TIMEOUT_MS": str(int(SESSION_S * 1000)),
        "GROVE_MODEL_SPEC": json.dumps(SPEC),
        "GROVE_SNAPSHOT_MAX_REPLAY_MS": "200",
        "GROVE_SNAPSHOT_INTERVAL_MS": "3000",
        "GROVE_LOG_FORMAT": "text",
    }
    load = Load(servers, names.instances, PARTITIONS, MODELS, options.rate, options.seed)
    data = directory / "data.csv"
    load.write_data(data, int(options.rate * (options.seconds + 60)), options.seed)
    oracle = ["--data", str(data), "--delay", "~500ms", "--loss", "0.1", "--declined", "0.05"]
    with (
        Archive(servers, names, PARTITIONS) as archive,
        Fleet(environment, directory, options.workers, oracle) as fleet,
    ):
        fleet.wait_until_ready()
        load.start()
        faults = Faults(fleet, broker, SESSION_S, options.seed)
        faults.run(options.seconds)
        load.stop()
        drained = drain(fleet, servers, names)
        live = models(fleet, load.keys)
        snapshots = sum(worker.log.count("is complete: ") for worker in fleet.workers)
        aborted = sum(worker.log.count("a transaction is aborted") for worker in fleet.workers)
        restores = [
            float(line.rpartition(" in ")[2].partition(" s")[0])
            for worker in fleet.workers
            for line in worker.log.splitlines()
            if " is restored: " in line
        ]
        ended = ends_of(fleet)
    findings = check(servers, PREFIX, PARTITIONS, load.sent)
    reference = archive.models()
    return {
        "seed": options.seed,
        "guarantee": options.guarantee,
        "faults": sum(faults.done.values()),
        "faults_by_kind": dict(faults.done),
        "aborted_transactions": aborted,
        "snapshots": snapshots,
        "workers_that_ended": ended,
        **{name: value for name, value in dataclasses.asdict(findings).items() if name != "examples"},
        "state_equal": bool(live)
        and live == {key: reference.get(key) for key in load.keys if key in reference},
        "models": len(live),
        "restores": len(restores),
        "restore_seconds_p50": round(statistics.median(restores), 3) if restores else None,
        "restore_seconds_max": round(max(restores), 3) if restores else None,
        "drain_seconds": round(drained, 1),
        "examples": findings.examples,
    }


def ends_of(fleet: Fleet) -> dict[str, list[int]]:
    """Return the exit codes of workers that were not told to end."""
    return {worker.name: worker.ended_by_itself for worker in fleet.workers if worker.ended_by_itself}


def drain(fleet: Fleet, servers: str, names: TopicNames) -> float:
    """Start everything, stop the oracle when it has answered, and wait until all is processed."""
    for worker in fleet.workers:
        worker.freeze(False)
        worker.start()
    fleet.wait_until_ready()
    seconds = wait_until(lambda: lag(servers, names, names.instances) == 0, DRAIN_S, lambda: "instances wait")
    fleet.stop_oracle()
    seconds += wait_until(lambda: lag(servers, names) == 0, DRAIN_S, lambda: "labels wait")
    return seconds


def lag(servers: str, names: TopicNames, *topics: str) -> int:
    """Return what the group has not committed of the input topics."""
    sources = topics or (names.instances, names.labels, names.controls)
    described = admin.describe({"bootstrap.servers": servers}, names, GROUP)
    return sum(
        partition.end - partition.start if partition.lag is None else partition.lag
        for topic in described
        if topic.name in sources
        for partition in topic.partitions
        if partition.end is not None and partition.start is not None
    )


def models(fleet: Fleet, keys: Sequence[str]) -> dict[str, bytes]:
    """Return the models by key, once a worker has each: a rebalance may go on although nothing lags."""
    found: dict[str, bytes] = {}

    def complete() -> bool:
        pages = ((key, model_page(fleet, key)) for key in keys if key not in found)
        found.update({key: page for key, page in pages if page is not None})
        return len(found) == len(keys)

    wait_until(complete, READY_S, lambda: f"no worker has {sorted(set(keys) - found.keys())}")
    return found


def model_page(fleet: Fleet, key: str) -> bytes | None:
    """Return the snapshot that a worker has of a model."""
    pages = (worker.page(f"/models/{key}") for worker in fleet.workers if worker.runs)
    return next((page for page in pages if page is not None), None)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except ChaosError as error:
        sys.exit(f"chaos: {error}")
