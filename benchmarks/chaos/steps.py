"""`python -m benchmarks.chaos.steps --guarantee exactly_once --json`: a worker dies at every fault point.

For each fault point (`streamapp/worker/faults.py`), with new topics: a worker processes a part of the load
and is killed, so that there is something to restore. The next worker with its name has the fault point
switched on and ends there; the third one finishes. Then the checks are the same as after random faults.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.chaos.__main__ import wrong
from benchmarks.chaos.checker import check, log_ends
from benchmarks.chaos.fleet import ChaosError, Fleet, wait_until
from benchmarks.chaos.installation import MODELS, PARTITIONS, Installation, compile_kernels
from benchmarks.chaos.load import Load
from benchmarks.chaos.reference import Reference
from benchmarks.chaos.source_tape import SourceTape
from benchmarks.chaos.tape import Tape, values
from streamapp.embedded import EmbeddedBroker
from streamapp.worker.faults import POINTS, VARIABLE
from streamapp.worker.task.sources import SourceName

REACHED_S: Final = 120.0
SNAPSHOTS: Final = 4  # complete snapshots before the first kill, to restore and to tidy up
TAIL_S: Final = 0.5  # seconds of load after the last snapshot


def main() -> int:
    """Run and print; return an exit code that shows whether anything was wrong."""
    options = parse()
    compile_kernels()
    with (
        tempfile.TemporaryDirectory(prefix="chaos-") as name,
        EmbeddedBroker(Path(name) / "broker") as broker,
    ):
        reports = [run(step, options, Path(name), broker) for step in options.steps]
    print(json.dumps(reports) if options.json else "\n".join(map(in_words, reports)))
    return int(any(map(wrong, reports)))


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line (default: sys.argv)."""
    parser = argparse.ArgumentParser(prog="benchmarks.chaos.steps", description=__doc__)
    parser.add_argument("--steps", nargs="+", default=list(POINTS), help="which; a number of times: name:3")
    parser.add_argument("--rate", type=float, default=400.0, help="rows a second")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--guarantee", choices=["exactly_once", "at_least_once"], default="exactly_once")
    parser.add_argument("--json", action="store_true", help="one array instead of lines")
    return parser.parse_args(arguments)


def run(step: str, options: argparse.Namespace, root: Path, broker: EmbeddedBroker) -> dict[str, Any]:
    """Kill a worker at a step, and check the result."""
    name, servers = step.replace(":", "-"), broker.bootstrap_servers
    place, directory = Installation(servers, f"{name}.", name), root / name
    directory.mkdir()
    place.create_topics()
    load = Load(servers, place.names.instances, PARTITIONS, MODELS, options.rate, options.seed)
    load.write_data(directory / "data.csv", int(options.rate * 2 * REACHED_S), options.seed)
    oracles = place.oracles(directory / "data.csv", "--delay", "~100ms", "--loss", "0.1")
    with (
        Tape(servers, place.names.journal, PARTITIONS) as journal,
        SourceTape(servers, place.names.instances, PARTITIONS) as instances,
        SourceTape(servers, place.names.labels, PARTITIONS) as labels,
        Fleet(place.environment(options.guarantee), directory, 1, oracles) as fleet,
    ):
        fleet.wait_until_ready()
        load.start()
        try:
            seconds = harm(step, fleet)
        finally:
            load.stop()
        place.drain(fleet)
        live = place.models(fleet, load.keys)
        journal.stop()
        for tape, topic in ((instances, place.names.instances), (labels, place.names.labels)):
            tape.wait_for(dict(enumerate(log_ends(servers, topic, PARTITIONS))))
    findings = check(servers, place.prefix, PARTITIONS, load.sent, values(journal.records))
    logs: dict[SourceName, SourceTape] = {"instances": instances, "labels": labels}
    reference = Reference(place.names, values(journal.records), logs).models()
    return {
        "step": step,
        "guarantee": options.guarantee,
        "reached_seconds": round(seconds, 1),
        **dataclasses.asdict(findings),
        "state_equal": live == {key: reference.get(key) for key in load.keys},
    }


def harm(step: str, fleet: Fleet) -> float:
    """Make the worker end at the step; return after how many seconds it did."""
    (worker,) = fleet.workers
    wait_until(lambda: worker.log.count("is complete: ") >= SNAPSHOTS, REACHED_S, lambda: worker.log)
    time.sleep(TAIL_S)  # records processed in this time are the tail that a restore has to replay
    worker.kill()
    worker.start({VARIABLE: step})
    seconds = wait_until(lambda: not worker.runs, REACHED_S, lambda: f"{step} never came: {worker.log}")
    if worker.returncode != -signal.SIGKILL:
        message = f"{step}: the worker ended with {worker.returncode}: {worker.log}"
        raise ChaosError(message)
    worker.start()
    fleet.wait_until_ready()
    return seconds


def in_words(report: dict[str, Any]) -> str:
    broken = wrong(report)
    rows, doubled = report["rows"], report["doubled"]
    return f"{report['step']:20} {rows:6} rows, {doubled} doubled: {broken or 'nothing wrong'}"


if __name__ == "__main__":
    try:
        sys.exit(main())
    except ChaosError as error:
        sys.exit(f"chaos: {error}")
