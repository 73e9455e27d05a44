"""The whole pipeline, from records on a topic to visible answers, beside its peers on the same topic.

    python -m benchmarks.pipeline --format json --with echo,river,faust
    python -m benchmarks.pipeline --format packed --keys 64 --records 2000000
    python -m benchmarks.pipeline --table
    python -m benchmarks.pipeline --pairs
    python -m benchmarks.pipeline --latency --rate 5000

What is measured, how, and what came out: docs/benchmarks-pipeline.md.
"""

from __future__ import annotations

import argparse
import os
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.rig.backlog import load
from benchmarks.rig.encoding import BLOCK_ROWS
from benchmarks.rig.latency import measure_latency
from benchmarks.rig.pairs import measure_pairs
from benchmarks.rig.passes import Bench, measure
from benchmarks.rig.report import Report
from benchmarks.rig.stages import measure_stages
from benchmarks.rig.stream import generate, model_keys
from benchmarks.rig.systems import PEERS, WORKER, Options
from benchmarks.rig.visible import Cluster
from streamapp.embedded import EmbeddedBroker
from streamapp.warming import warm_kernels
from topics.admin import create
from topics.definitions import TopicNames

PARTITIONS = 8
BROKER_HEAP_MB = 1024
ROWS = {"json": 1_000_000, "packed": 1_000_000, "arrow": 5_000_000}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.pipeline", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--format", choices=tuple(ROWS), default="json")
    parser.add_argument("--records", type=int, help="rows of the backlog; a million, with Arrow five")
    parser.add_argument(
        "--keys", type=int, nargs="+", help="model keys; default 8 (one per partition) and 64"
    )
    parser.add_argument("--with", dest="peers", default="", help=f"peers, of {','.join(PEERS)}")
    parser.add_argument("--without-us", action="store_true", help="only the peers")
    parser.add_argument("--headers", choices=("minimal", "full"), default="minimal")
    parser.add_argument(
        "--leaf", choices=("mc", "nb", "nba"), default="nba", help="leaf model, ours and River's"
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="one JSON object per system")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--table", action="store_true", help="where the microseconds of a record go")
    what.add_argument("--pairs", action="store_true", help="instances and labels on topics of their own")
    what.add_argument("--latency", action="store_true", help="from produce to visible answer, beside an echo")
    parser.add_argument("--rate", type=int, default=5000, help="--latency: records per second")
    parser.add_argument("--seconds", type=float, default=30.0, help="--latency: how long, after the warm-up")
    given = parser.parse_args()
    given.records = given.records or ROWS[given.format]
    given.keys = given.keys or ([64] if given.latency or given.table else [PARTITIONS, 64])
    given.peers = [peer for peer in given.peers.split(",") if peer]
    unknown = sorted(set(given.peers) - set(PEERS))
    if unknown:
        parser.error(f"--with {unknown[0]}: known are {', '.join(PEERS)}")
    return given


@contextmanager
def broker() -> Iterator[str]:
    """Yield the address of the broker named by the environment, or of an embedded one."""
    address = os.environ.get("GROVE_KAFKA_BOOTSTRAP_SERVERS")
    if address:
        yield address
    else:
        with EmbeddedBroker(heap_mb=BROKER_HEAP_MB) as embedded:
            yield embedded.bootstrap_servers


@contextmanager
def topics(bootstrap: str, cluster: Cluster) -> Iterator[TopicNames]:
    """Yield the names of a new set of topics, which are deleted afterwards."""
    names = TopicNames(f"bench-{uuid.uuid4().hex[:6]}.")
    create({"bootstrap.servers": bootstrap}, names, PARTITIONS, 1)
    try:
        yield names
    finally:
        cluster.delete_prefix(names.prefix)


def throughput(given: argparse.Namespace, bench: Bench, keys: int, report: Report) -> None:
    systems = [] if given.without_us else [WORKER]
    systems += [system for peer in given.peers for system in PEERS[peer]]
    run_length = BLOCK_ROWS if given.format == "arrow" else 1
    rows = generate(given.records, model_keys(keys, PARTITIONS), run_length)
    if given.table:
        report.stages(measure_stages(bench, rows, given.format, PARTITIONS))
        return
    bench.backlog = load(bench.options.bootstrap, bench.names.instances, rows, given.format, PARTITIONS)
    report.backlog(bench.backlog, keys)
    report.results(measure(bench, systems, given.repeats, keys, report.progress))


def main() -> int:
    given = arguments()
    report = Report(sys.stdout, as_json=given.json)
    warm_kernels()  # compiled here once, if at all: no worker is to be waited for so long
    with broker() as bootstrap:
        cluster, options = Cluster(bootstrap), Options(bootstrap, given.leaf, given.headers)
        for keys in given.keys:
            with topics(bootstrap, cluster) as names:
                bench = Bench(cluster, names, options)
                if given.latency:
                    report.latencies(
                        measure_latency(cluster, names, options, PARTITIONS, keys, given.rate, given.seconds)
                    )
                elif given.pairs:
                    rows = generate(given.records, model_keys(keys, PARTITIONS))
                    report.results(
                        [measure_pairs(bench, rows, PARTITIONS, given.repeats, keys, report.progress)]
                    )
                else:
                    throughput(given, bench, keys, report)
    return 0


if __name__ == "__main__":
    sys.exit(main())
