"""Soak: whether anything in a worker grows under a long load.

    python -m benchmarks.soak --seconds 21600 --json

One worker (exactly once) on an embedded broker answers a stream that drifts. Models come and go under names
that never return, labels come late or never, the clients of the load reconnect, and the broker restarts in
order. Figures of the worker and of its topics are sampled; benchmarks/soak/slopes.py has the rule by which a
figure is flat, grows, or is undecided because its interval is too wide or the run too short. The exit code is
1 if anything grows, if a record was lost, answered twice or a dead letter, or if the worker ends with
an error.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from benchmarks.bounded_numbers import number_within
from benchmarks.chaos.fleet import READY_S, ChaosError, Worker, wait_until, wait_while_it_falls
from benchmarks.chaos.installation import DRAIN_S, Installation
from benchmarks.rig.process import cpu_of
from benchmarks.rig.terminated import unwound_by_terminate
from benchmarks.soak.readers import Answers, Births, DeadLetters, Labels
from benchmarks.soak.samples import MIB, Samples
from benchmarks.soak.traffic import SPECS, Traffic
from core.spec import Spec
from streamapp.embedded import EmbeddedBroker
from streamapp.worker.compile_ahead import warm_kernels
from topics.definitions import HOUR_MS

PREFIX: Final = "soak."
GROUP: Final = "soak"
SEGMENTS: Final = {"segment.bytes": str(MIB)}
"""Settings of the journal and the snapshots: Kafka frees space only in whole segments."""

MARKS: Final = {"delete.retention.ms": str(HOUR_MS // 20)}
"""Settings of the snapshots, which come twenty times as often as by default."""


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line (default: sys.argv)."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--seconds", type=number_within(float, 1.0), default=21_600.0, help="of load; draining comes on top"
    )
    parser.add_argument("--rate", type=number_within(float, 0.001), default=200.0, help="rows a second")
    parser.add_argument(
        "--models", type=number_within(int, 1), default=40, help="keys that get rows at a time"
    )
    parser.add_argument(
        "--life", type=number_within(float, 0.0), default=0.0, help="seconds of a key; default: seconds / 20"
    )
    parser.add_argument(
        "--drift-rows", type=number_within(int, 1), default=20_000, help="rows until the stream changes"
    )
    parser.add_argument(
        "--label-delay", type=number_within(float, 0.0), default=5.0, help="mean seconds until a label comes"
    )
    parser.add_argument(
        "--reconnects",
        type=number_within(int, 0),
        help="new clients of the load; default: each 30 s, at most 60",
    )
    parser.add_argument(
        "--broker-restarts", type=number_within(int, 0), help="default: each ten minutes, at most 6"
    )
    parser.add_argument(
        "--interval", type=number_within(float, 0.0), default=0.0, help="seconds; default: seconds / 400"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="a directory for log and samples, which stay")
    parser.add_argument("--json", action="store_true", help="one object instead of lines")
    options = parser.parse_args(arguments)
    if options.reconnects is None:
        options.reconnects = min(60, max(1, int(options.seconds / 30)))
    if options.broker_restarts is None:
        options.broker_restarts = min(6, int(options.seconds / 600))
    options.life = options.life or max(5.0, options.seconds / 20)
    options.interval = options.interval or min(15.0, max(0.5, options.seconds / 400))
    return options


def main() -> int:
    """Run and print; return 1 if anything is wrong."""
    options = parse()
    warm_kernels(*(Spec.parse(spec) for spec in SPECS))
    with tempfile.TemporaryDirectory(prefix="soak-") as name:
        directory = options.keep or Path(name)
        directory.mkdir(parents=True, exist_ok=True)
        with EmbeddedBroker(Path(name) / "broker") as broker:
            report = run(options, directory, broker)
    if options.json:
        print(json.dumps(report))
    else:
        print(in_lines(report))
    return int(bool(wrong(report)))


def wrong(report: Mapping[str, Any]) -> list[str]:
    """Return the members of a report that show an error; figures that are undecided do not."""
    errors = ("grows", "lost", "doubled", "dead_letters", "worker_exit_code")
    return [name for name in errors if report[name]]


def run(options: argparse.Namespace, directory: Path, broker: EmbeddedBroker) -> dict[str, Any]:
    """Run the load, sample the worker, drain, and return the report."""
    servers = broker.bootstrap_servers
    place = Installation(servers, PREFIX, GROUP)
    place.create_topics()
    names, reconnect_s = place.names, options.seconds / (options.reconnects + 1)
    configure(servers, names.journal, SEGMENTS)
    configure(servers, names.snapshots, SEGMENTS | MARKS)
    environment = {
        **place.environment("exactly_once"),
        "GROVE_PENDING_TTL_MS": str(int(options.life * 1000 / 2)),
        "GROVE_KAFKA_SESSION_TIMEOUT_MS": "60000",  # a busy machine is not the subject
    }
    worker = Worker("soak", environment, directory)
    births = Births(servers, names.model_events, names.controls, reconnect_s=reconnect_s)
    traffic = Traffic(
        servers,
        names,
        rate=options.rate,
        models=options.models,
        life_s=options.life,
        drift_rows=options.drift_rows,
        reconnect_s=reconnect_s,
        seed=options.seed,
        born=births.keys,
    )
    with ExitStack() as stack:
        stack.callback(worker.kill)
        worker.start()
        wait_until(worker.is_ready, READY_S, lambda: worker.log[-2000:])
        labels = Labels(
            servers,
            names.label_requests,
            names.labels,
            delay_s=options.label_delay,
            reconnect_s=reconnect_s,
            seed=options.seed,
        )
        answers = Answers(servers, names.predictions, reconnect_s=reconnect_s)
        letters = DeadLetters(servers, names.dead_letters, reconnect_s=reconnect_s)
        readers = labels, answers, letters, births
        for reader in readers:
            stack.enter_context(reader)
        samples = Samples(worker, servers, names, broker.directory / "data", options.interval)
        stack.enter_context(samples)
        began = time.monotonic()
        traffic.start()
        restart_broker_at_times(broker, options)
        remaining = options.seconds - (time.monotonic() - began)
        if remaining > 0:
            time.sleep(remaining)
        cpu_s = cpu_of(worker.pid or 0)
        samples.stop()
        traffic.stop()

        def missing() -> int:
            for reader in readers:
                reader.check()
            return traffic.sent - answers.distinct

        wait_while_it_falls(missing, DRAIN_S, lambda: f"rows wait: {worker.log[-2000:]}")
        code = worker.terminate()  # its last commit may have further answers
        for reader in (answers, letters):
            reader.read_to_end()
        lost = missing()
    if options.keep:
        series = {name: {"seconds": s.times, "values": s.values} for name, s in samples.series.items()}
        (options.keep / "samples.json").write_text(json.dumps(series), encoding="ascii")
    slopes = samples.slopes()
    verdicts = {name: slope.verdict for name, slope in slopes.items()}
    unknown = [name for name in samples.series if name not in slopes]
    return {
        "seconds": options.seconds,
        "rate": options.rate,
        "seed": options.seed,
        "rows": traffic.sent,
        "lost": lost,
        "doubled": answers.doubled,
        "accuracy": round(answers.right / max(answers.distinct, 1), 3),
        "label_requests": labels.requests,
        "labels": labels.answered,
        "models_created": traffic.created,
        "models_deleted": traffic.deleted,
        "dead_letters": dict(letters.reasons),
        "client_reconnects": traffic.reconnects + sum(reader.reconnects for reader in readers),
        "broker_restarts": options.broker_restarts,
        "worker_exit_code": code,
        "worker_cpu_seconds": round(cpu_s, 1),
        "samples": max(len(series.times) for series in samples.series.values()),
        "slopes": {f"{name}_per_hour": slope.to_dict() for name, slope in slopes.items()},
        "flat": not unknown and set(verdicts.values()) == {"flat"},
        "grows": [name for name, verdict in verdicts.items() if verdict == "grows"],
        "undecided": [name for name, verdict in verdicts.items() if verdict == "undecided"] + unknown,
    }


def restart_broker_at_times(broker: EmbeddedBroker, options: argparse.Namespace) -> None:
    """Restart the broker in order, at times that divide the run into equal parts."""
    began = time.monotonic()
    for number in range(1, options.broker_restarts + 1):
        due = options.seconds * number / (options.broker_restarts + 1)
        time.sleep(max(0.0, began + due - time.monotonic()))
        broker.stop()
        broker.start()


def configure(servers: str, topic: str, settings: Mapping[str, str]) -> None:
    """Set settings of a topic."""
    from confluent_kafka.admin import (
        AdminClient,
        AlterConfigOpType,
        ConfigEntry,
        ConfigResource,
        ResourceType,
    )

    entries = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        for name, value in settings.items()
    ]
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
    client = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    for done in client.incremental_alter_configs([resource]).values():
        done.result(DRAIN_S)


def in_lines(report: Mapping[str, Any]) -> str:
    """Return the report for a reader."""
    lines = [f"{name:24} {value}" for name, value in report.items() if name != "slopes"]
    lines += [
        f"{name:40} {slope['slope']:14.6g} [{slope['low']:.6g}, {slope['high']:.6g}] {slope['verdict']}"
        for name, slope in report["slopes"].items()
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    try:
        with unwound_by_terminate():
            sys.exit(main())
    except ChaosError as error:
        sys.exit(f"soak: {error}")
