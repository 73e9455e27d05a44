"""Many workers: records per second of 1 to 16 workers, each held to the same share of a core.

    python -m benchmarks.scaling --json
    python -m benchmarks.scaling --json --workers 1,4 --share 0.1 --guarantee at_least_once
    python -m benchmarks.scaling --fit > costs.json
    python -m benchmarks.scaling --costs costs.json --json
    python -m benchmarks.scaling --rebalance --json
    python -m benchmarks.scaling --rebalance 8x100,64x10000

One line for each number of workers and for each kind of keys: equally frequent, and by Zipf's law. Workers
are held to their share (cgroup quota) after they are ready and have met all models. Then a backlog becomes
visible at one moment, because it was produced in one transaction. The clock runs until 95 % of it are
committed; no snapshot falls into this time. Shares are small, so that all workers together leave the broker
the rest of two cores; the commit interval is longer than the default by as much as the worker is slower. Each
line has the rate that `grove plan` predicts for the same partitions. `--fit` measures one worker on a whole
core and prints the costs for `--costs`: on a small share a commit costs several times as much.

`--rebalance`: how long partitions stand still when a second worker joins, by partitions and models.
docs/scale.md has the figures.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.bounded_numbers import number_within
from benchmarks.restart import Trial
from benchmarks.restore import NO_SNAPSHOTS
from benchmarks.rig.broker import broker, topics
from benchmarks.rig.keyed_load import KeyedLoad
from benchmarks.rig.rebalance import measure_rebalance
from benchmarks.rig.registered import registered
from benchmarks.rig.shared_work import SharedWork, work_together
from benchmarks.rig.systems import GUARANTEES, spec
from benchmarks.rig.visible import Cluster
from streamapp.errors import UsageError
from streamapp.tools.sizing.measured_costs import Costs, read_costs
from streamapp.tools.sizing.workload import MOST_ZIPF
from streamapp.worker.compile_ahead import warm_kernels
from streamapp.worker.task.task_config import TaskConfig
from topics.definitions import TopicNames

FULL_CORE_COMMIT_MS = 100.0  # the default of commit.interval.ms
SHARE = 0.05  # of a core, for each worker of a group
RECORDS = 250_000  # of a backlog, for each worker of a group
FIT_RECORDS = 2_000_000  # of a backlog for --fit: some seconds of a whole core, with dozens of commits
REBALANCED = "8x100,8x1000,8x10000,64x100,64x1000,64x10000"
FEW_PARTITIONS = 8  # of the second backlog of --fit; the third has one


class Scaling:
    """Measurements with one broker and one set of flags."""

    def __init__(self, flags: argparse.Namespace, bootstrap: str, costs: Costs) -> None:
        self._flags, self._cluster, self._costs = flags, Cluster(bootstrap), costs
        self._alone: dict[str, float] = {}  # rate of the fewest workers, a worker, by kind of keys

    def lines(self) -> Iterator[dict[str, Any]]:
        """Yield a line for each number of workers and each kind of keys."""
        flags = self._flags
        for count in flags.workers:
            with self._crew(count) as (trial, names):
                for kind, zipf in (("uniform", 0.0), ("zipf", flags.zipf)):
                    load = KeyedLoad.draw(flags.records * count, flags.models, flags.partitions, zipf)
                    work = work_together(trial, self._cluster, names, load, flags.share, flags.format)
                    yield self._line(count, kind, work)

    def fitted(self) -> Costs:
        """Return costs that one worker has with backlogs over all partitions, over few and over one."""
        flags = self._flags
        works = []
        with self._crew(1) as (trial, names):
            for within in (flags.partitions, min(FEW_PARTITIONS, flags.partitions), 1):
                load = KeyedLoad.draw(flags.records, flags.models, flags.partitions, 0.0, within)
                works.append(work_together(trial, self._cluster, names, load, flags.share, flags.format))
        return fit(self._costs, works)

    @contextmanager
    def _crew(self, count: int) -> Iterator[tuple[Trial, TopicNames]]:
        """Yield workers that are ready, and their topics."""
        bootstrap = self._cluster.bootstrap
        with (
            registered(self._flags.format) as registry,
            topics(bootstrap, self._cluster, self._flags.partitions) as names,
            tempfile.TemporaryDirectory(prefix="grove-bench-") as place,
            Trial(
                self._flags,
                bootstrap,
                names,
                self._flags.guarantee,
                Path(place),
                {**registry, **NO_SNAPSHOTS},
            ) as trial,
        ):
            trial.add(count)
            trial.wait_until_ready()
            yield trial, names

    def _line(self, count: int, kind: str, work: SharedWork) -> dict[str, Any]:
        alone = self._alone.setdefault(kind, work.rate / count)
        predicted = work.predicted_rate(self._costs, self._flags.commit_ms)
        return {
            "workers": count,
            "keys": kind,
            "models": self._flags.models,
            "partitions": self._flags.partitions,
            "share": self._flags.share,
            "guarantee": self._flags.guarantee,
            "format": self._flags.format,
            "commit_interval_ms": self._flags.commit_ms,
            **work.to_dict(),
            "efficiency": round(work.rate / count / alone, 3),
            "predicted_records_per_second": round(predicted),
            "measured_to_predicted": round(work.rate / predicted, 3) if predicted else None,
        }


def fit(costs: Costs, works: Sequence[SharedWork]) -> Costs:
    """Return costs with those of a record, a partition of a commit and a round as one worker has them.

    `works` are backlogs of the same records over different numbers of partitions: each gives an equation. The
    CPU of an idle worker, of a run and the fixed part of a commit are subtracted as `costs` has them.
    """
    rows, varying_us = [], []
    for work in works:
        (worker,) = work.workers
        active = sum(load > 0 for load in worker.loads)
        rows.append((worker.records, worker.commits * active, worker.runs / active))
        spent_us = (worker.cpu_seconds - work.seconds * costs.idle_us / 1e6) * 1e6
        varying_us.append(spent_us - worker.commits * costs.commit_us - worker.runs * costs.run_us)
    record, partition, round_ = (max(0.0, cost) for cost in np.linalg.lstsq(np.array(rows), varying_us)[0])
    models, size = works[0].workers[0].models, works[0].record_bytes
    fixed = record - costs.byte_ns * size / 1_000.0 - costs.many_models_us * models / 10_000.0
    return replace(
        costs,
        record_us=round(max(0.0, fixed), 3),
        commit_partition_us=round(partition, 1),
        round_us=round(round_, 1),
    )


def numbers(text: str) -> list[int]:
    """Return the numbers of a list with commas; argparse reports a wrong text."""
    values = [int(part) for part in text.split(",")]
    if min(values) < 1:
        message = f"{text} must have numbers of at least 1"
        raise argparse.ArgumentTypeError(message)
    return values


def sizes(text: str) -> list[tuple[int, int]]:
    """Return pairs of partitions and models of a list such as 8x100,64x1000."""
    pairs = [tuple(numbers(pair.replace("x", ","))) for pair in text.split(",")]
    if wrong := [pair for pair in pairs if len(pair) != 2]:
        message = f"{text} must have pairs such as 8x100, and not {wrong[0]}"
        raise argparse.ArgumentTypeError(message)
    return [(partitions, models) for partitions, models in pairs]


def costs_of(file: Path | None) -> Costs:
    """Return the costs of a file (default: those of `grove plan`); a wrong one ends the program."""
    try:
        return Costs() if file is None else read_costs(file)
    except UsageError as error:
        sys.exit(str(error))


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line (default: sys.argv)."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scaling", description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=numbers, default=[1, 2, 4, 8, 16], help="numbers, with commas")
    parser.add_argument("--partitions", type=number_within(int, 1), default=64)
    parser.add_argument(
        "--share",
        type=number_within(float, 0.01, 1.0),
        help=f"of a core, for each worker; default: {SHARE}, with --fit 1",
    )
    parser.add_argument("--models", type=number_within(int, 1), default=1000)
    parser.add_argument(
        "--records",
        type=number_within(int, 1),
        help=f"of a backlog, for each worker; default: {RECORDS}, with --fit {FIT_RECORDS}",
    )
    parser.add_argument(
        "--zipf",
        type=number_within(float, 0.0, MOST_ZIPF),
        default=1.1,
        help="exponent of the second kind of keys",
    )
    parser.add_argument("--format", choices=("json", "packed", "avro"), default="json")
    parser.add_argument("--guarantee", choices=GUARANTEES, default="exactly_once")
    parser.add_argument(
        "--commit-ms", type=number_within(int, 1), help="commit interval; default: 100 ms / share"
    )
    parser.add_argument("--session-ms", type=number_within(int, 1), default=45_000, help="session timeout")
    parser.add_argument("--costs", type=Path, metavar="FILE", help="JSON of --fit, for the prediction")
    parser.add_argument("--json", action="store_true", help="one line for each, as it is known")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--fit", action="store_true", help="measure one worker and print costs for grove plan")
    what.add_argument(
        "--rebalance",
        type=sizes,
        nargs="?",
        const=REBALANCED,
        help=f"measure the time of a rebalance, by partitions x models; default {REBALANCED}",
    )
    flags = parser.parse_args(words)
    if flags.share is None:
        flags.share = 1.0 if flags.fit else SHARE
    if flags.records is None:
        flags.records = FIT_RECORDS if flags.fit else RECORDS
    if flags.commit_ms is None:
        flags.commit_ms = round(FULL_CORE_COMMIT_MS / flags.share)
    if max(flags.workers) > flags.partitions:
        parser.error(
            f"--workers {max(flags.workers)}: more than --partitions {flags.partitions} would be idle"
        )
    return flags


def main() -> int:
    flags = arguments()
    costs = costs_of(flags.costs)
    warm_kernels(TaskConfig(model_spec=spec("nba")).default_spec())
    with broker() as bootstrap:
        if flags.rebalance:
            lines = measure_rebalance(flags, bootstrap)
        elif flags.fit:
            print(json.dumps(asdict(Scaling(flags, bootstrap, costs).fitted()), indent=1))
            return 0
        else:
            lines = Scaling(flags, bootstrap, costs).lines()
        for line in lines:
            print(json.dumps(line, indent=None if flags.json else 2), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
