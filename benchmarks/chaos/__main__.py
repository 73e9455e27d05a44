"""`python -m benchmarks.chaos --workers 3 --seconds 300 --rate 3000 --seed 1 --guarantee exactly_once`."""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.bounded_numbers import number_within
from benchmarks.chaos import broker_faults, evidence, pauses
from benchmarks.chaos.acquiring import PRICES
from benchmarks.chaos.broker_faults import BrokerFaults
from benchmarks.chaos.checker import check, log_ends, purchases
from benchmarks.chaos.coordinator import transactions
from benchmarks.chaos.counts import Counts
from benchmarks.chaos.faults import KINDS, Faults
from benchmarks.chaos.fleet import ChaosError, Fleet, wait_until
from benchmarks.chaos.installation import (
    MODELS,
    PARTITIONS,
    SESSION_S,
    Installation,
    compile_kernels,
)
from benchmarks.chaos.load import Load
from benchmarks.chaos.network import Network
from benchmarks.chaos.pauses import AnswerTimes
from benchmarks.chaos.purchases import Purchases
from benchmarks.chaos.reference import Reference
from benchmarks.chaos.retention import Retention
from benchmarks.chaos.source_tape import SourceTape
from benchmarks.chaos.tape import Tape, values
from benchmarks.rig.terminated import unwound_by_terminate
from streamapp.embedded import EmbeddedBroker, EmbeddedCluster
from streamapp.worker.task.sources import SourceName
from topics.clients.partitioner import partition_of

PREFIX = "chaos."
ANSWERS_S = 300.0  # seconds in which each partition answers its first record
GROUP = "chaos"


def main() -> int:
    """Run and print; return an exit code that shows whether anything was wrong."""
    options = parse()
    compile_kernels()
    with tempfile.TemporaryDirectory(prefix="chaos-") as name, brokers(options, Path(name)) as site:
        directory = options.keep or Path(name)
        directory.mkdir(parents=True, exist_ok=True)
        report = run(options, directory, *site)
    print(json.dumps(report) if options.json else "\n".join(f"{k:24} {v}" for k, v in report.items()))
    return int(bool(wrong(report)))


Site = tuple[EmbeddedBroker] | tuple[EmbeddedCluster, Network]


@contextmanager
def brokers(options: argparse.Namespace, directory: Path) -> Iterator[Site]:
    """Yield a broker, or a cluster and the network in front of it."""
    if options.brokers == 1:
        with EmbeddedBroker(directory / "broker") as broker:
            yield (broker,)
        return
    nodes: dict[int, EmbeddedBroker] = {}
    with Network(lambda node: nodes[node].process_group) as network:
        cluster = EmbeddedCluster(options.brokers, directory / "brokers", through=network.through)
        nodes |= cluster.nodes
        with cluster:
            yield cluster, network


def wrong(report: dict[str, Any]) -> dict[str, Any]:
    """Return the figures of a report that violate its guarantee."""
    zeros = ["lost", "invented", "disordered", "labels_unasked", "not_learned", "learned_twice"]
    if report["guarantee"] == "exactly_once":
        zeros.append("doubled")
    broken = {name: report[name] for name in zeros if report[name]} | report.get("wrong_purchases", {})
    return broken if report["state_equal"] else {**broken, "state_equal": False}


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line (default: sys.argv)."""
    parser = argparse.ArgumentParser(prog="benchmarks.chaos", description=__doc__)
    parser.add_argument("--workers", type=number_within(int, 1), default=3)
    parser.add_argument("--brokers", type=int, choices=[1, 3, 5], default=1)
    parser.add_argument(
        "--kinds", nargs="+", default=[], choices=[*KINDS, *broker_faults.KINDS], help="default: all"
    )
    parser.add_argument(
        "--seconds", type=number_within(float, 1.0), default=300.0, help="of faults; draining comes on top"
    )
    parser.add_argument("--rate", type=number_within(float, 0.001), default=3000.0, help="rows a second")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--guarantee", choices=["exactly_once", "at_least_once"], default="exactly_once")
    parser.add_argument(
        "--models-max-bytes",
        type=number_within(int, 0),
        default=0,
        help="of a worker; 1: none stays, 0: all do",
    )
    parser.add_argument(
        "--standbys", type=number_within(int, 0), default=0, help="other workers that keep snapshots warm"
    )
    parser.add_argument("--learner", default="", help="a learner's name; default: a tree that splits early")
    parser.add_argument(
        "--features", action="store_true", help="other models buy features, from two oracles that both answer"
    )
    parser.add_argument("--keep", type=Path, help="an empty directory for the workers' logs, which stay")
    parser.add_argument("--json", action="store_true", help="one object instead of lines")
    return parser.parse_args(arguments)


def run(
    options: argparse.Namespace,
    directory: Path,
    broker: EmbeddedBroker | EmbeddedCluster,
    network: Network | None = None,
) -> dict[str, Any]:
    """Run the load and the faults, drain, and check; `network`: the one in front of a cluster."""
    servers = broker.bootstrap_servers
    place = Installation(
        servers,
        PREFIX,
        GROUP,
        options.models_max_bytes,
        options.standbys,
        options.learner,
        options.features,
    )
    place.create_topics()
    place.make_models()
    names = place.names
    load = Load(servers, names.instances, PARTITIONS, MODELS, options.rate, options.seed, place.buying)
    data = directory / "data.csv"
    load.write_data(data, int(options.rate * (options.seconds + 60)), options.seed)
    oracles = place.oracles(data, "--delay", "~500ms", "--loss", "0.1", "--declined", "0.05")
    with (
        Tape(servers, names.journal, PARTITIONS) as journal,
        Tape(servers, names.snapshots, PARTITIONS, with_values=False) as chunks,
        SourceTape(servers, names.instances, PARTITIONS) as instances,
        SourceTape(servers, names.feature_values, PARTITIONS) as feature_values,
        SourceTape(servers, names.labels, PARTITIONS) as labels,
        Fleet(place.environment(options.guarantee), directory, options.workers, oracles) as fleet,
        Counts(fleet.workers) as counts,
        AnswerTimes(servers, names.predictions, PARTITIONS) as answers,
    ):
        fleet.wait_until_ready()
        load.start()
        begun = {partition_of(key.encode(), PARTITIONS) for key in load.keys}
        wait_until(lambda: answers.have_begun(begun), ANSWERS_S, lambda: f"answers in {begun}")
        retention = Retention(servers, GROUP, names.instances, instances, journal)
        of_brokers = None
        if isinstance(broker, EmbeddedCluster) and network is not None:
            of_brokers = BrokerFaults(broker, network, names.instances, PARTITIONS, GROUP, options.seed)
        faults = Faults(fleet, broker, SESSION_S, options.seed, retention, of_brokers, options.kinds)
        faults.run(options.seconds)
        load.stop()
        loaded_ms = time.time_ns() // 10**6
        drained = place.drain(fleet)
        live = place.models(fleet, load.keys)
        journal.stop()
        chunks.stop()
        logs: dict[SourceName, SourceTape] = {
            "instances": instances,
            "feature_values": feature_values,
            "labels": labels,
        }
        for source, tape in logs.items():
            tape.wait_for(dict(enumerate(log_ends(servers, getattr(names, source), PARTITIONS))))
    findings = check(
        servers,
        PREFIX,
        PARTITIONS,
        load.sent,
        values(journal.records),
        retention.deleted,
        instances.records,
        place.buying,
    )
    bought = purchases(servers, PREFIX, PARTITIONS, PRICES, load.brought) if options.features else None
    reference = Reference(names, values(journal.records), logs)
    undisturbed = reference.models()
    different = [key for key in load.keys if live[key] != undisturbed.get(key)]
    over = transactions(servers)
    return {
        "seed": options.seed,
        "brokers": options.brokers,
        "guarantee": options.guarantee,
        "rate": options.rate,
        "models_max_bytes": options.models_max_bytes,
        "standbys": options.standbys,
        "learner": options.learner or "h-tree",
        **counts.report(),
        "faults": sum(faults.done.values()),
        "faults_by_kind": dict(faults.done),
        **evidence.report(
            journal.records, chunks.records, over, freezes(faults), GROUP, loaded_ms, faults.outages
        ),
        **{name: value for name, value in dataclasses.asdict(findings).items() if name != "examples"},
        "state_equal": not different,
        "different_models": different,
        "challenges": dict(reference.challenges),
        "models": len(live),
        **said_of(bought, options.guarantee),
        **said_by(fleet),
        "pauses": pauses.report(answers.seen, faults.times),
        "drain_seconds": round(drained, 1),
        "journal_cut_off_unread": journal.overtaken,
        "examples": findings.examples,
    }


def said_of(bought: Purchases | None, guarantee: str) -> dict[str, Any]:
    """Return the counts of purchases, and the errors in them."""
    if bought is None:
        return {}
    return {
        "purchases": dataclasses.asdict(bought),
        "wrong_purchases": bought.wrong(exactly_once=guarantee == "exactly_once"),
    }


def freezes(faults: Faults) -> list[evidence.Freeze]:
    """Return the freezes of workers, with the log that each worker wrote after it woke up."""
    return [
        evidence.Freeze(
            freeze.worker.name,
            freeze.longer_than_session,
            freeze.began_ms,
            freeze.woke_ms,
            *freeze.worker.said_from(freeze.log_size),
        )
        for freeze in faults.freezes
    ]


def said_by(fleet: Fleet) -> dict[str, Any]:
    """Return the counters that only the workers have."""
    logs = [worker.log for worker in fleet.workers]
    restored = [line for log in logs for line in log.splitlines() if " is restored: " in line]
    seconds = [float(line.rpartition(" in ")[2].partition(" s")[0]) for line in restored]
    ended = {worker.name: worker.ended_by_itself for worker in fleet.workers if worker.ended_by_itself}
    return {
        "workers_that_ended": ended,  # without a request to end: their exit codes
        "aborts_said": sum(log.count("a transaction is aborted") for log in logs),
        "snapshots": sum(log.count("is complete: ") for log in logs),
        "restores": len(seconds),
        "restore_seconds_p50": round(statistics.median(seconds), 3) if seconds else None,
        "restore_seconds_max": round(max(seconds), 3) if seconds else None,
    }


if __name__ == "__main__":
    try:
        with unwound_by_terminate():
            sys.exit(main())
    except ChaosError as error:
        sys.exit(f"chaos: {error}")
