"""Turns of a worker at a steady trickle: CPU by thread, and calls in Python by function, as JSON.

    python -m benchmarks.turns [--rate 5000 --partitions 8 --seconds 10]
    python -m benchmarks.turns --guarantee exactly_once --most 40

A turn is a fetch, the round of its runs and their hand-over; commits count with the turns between them. The
worker is the product with counters inside (`benchmarks/rig/counted.py`), over a real broker. CPU is measured
before calls are counted. Calls do not depend on how busy the machine is, CPU does: compare turns of two
states of the code in alternation. `docs/benchmarks-pipeline.md` has the results.
"""

from __future__ import annotations

import argparse
import json
import sys
import uuid
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.consumers import produced
from benchmarks.rig.broker import PARTITIONS, broker, topics
from benchmarks.rig.latency import await_groups
from benchmarks.rig.process import Child, await_while_running, python
from benchmarks.rig.systems import GUARANTEES, OURS, Options, worker_environment
from benchmarks.rig.visible import Cluster
from streamapp.worker.compile_ahead import warm_kernels

START_SECONDS = 60.0
"""How much longer than the measurement the producer sends."""


def measure(options: argparse.Namespace, bootstrap: str) -> dict[str, Any]:
    """Return the counts of a worker on new topics."""
    cluster = Cluster(bootstrap)
    with (
        topics(bootstrap, cluster, options.partitions) as names,
        TemporaryDirectory(prefix="grove-") as place,
    ):
        folder, group = Path(place), f"turns-{uuid.uuid4().hex[:8]}"
        file = folder / "counts.json"
        command = python(
            *("-m", "benchmarks.rig.counted", str(file), str(options.warm), str(options.seconds), "worker")
        )
        settings = replace(Options(bootstrap), guarantee=options.guarantee)
        environment = worker_environment(settings, names, options.partitions, group, folder / "state")
        lasts = options.warm + 2 * options.seconds + START_SECONDS
        source = {"bootstrap": bootstrap, "topic": names.instances, "partitions": options.partitions}
        with Child(command, folder / "worker.log", environment) as worker:
            await_groups(cluster, {OURS: worker}, {OURS: group})
            with produced(source, options.rate, lasts) as producer:
                await_while_running(file.exists, worker, producer)  # a rename ends the measurement
                counts: dict[str, Any] = json.loads(file.read_text())
        return counts


def report(counts: dict[str, Any], most: int) -> dict[str, Any]:
    """Return the counts with at most this number of functions of each thread."""
    calls = {
        thread: of_thread | {"by_function": dict([*of_thread["by_function"].items()][:most])}
        for thread, of_thread in counts["calls"].items()
    }
    return counts | {"calls": calls}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.turns", description=__doc__.splitlines()[0])
    parser.add_argument("--rate", type=int, default=5000, help="records a second")
    parser.add_argument("--partitions", type=int, default=PARTITIONS)
    parser.add_argument("--guarantee", choices=GUARANTEES, default=GUARANTEES[0])
    parser.add_argument("--warm", type=float, default=15.0, help="seconds after the first round, not counted")
    parser.add_argument("--seconds", type=float, default=10.0, help="of CPU, and as many of calls")
    parser.add_argument("--most", type=int, default=20, help="functions of a thread that are listed")
    options = parser.parse_args()
    warm_kernels()
    with broker() as bootstrap:
        print(json.dumps(report(measure(options, bootstrap), options.most)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
