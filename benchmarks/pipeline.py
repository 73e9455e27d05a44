"""The whole pipeline, from records on a topic to visible answers, beside its peers on the same topic.

    python -m benchmarks.pipeline --format json --with echo,river,faust
    python -m benchmarks.pipeline --format packed --keys 64 --records 2000000
    python -m benchmarks.pipeline --table | --pairs | --latency

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
from benchmarks.rig.passes import Bench, measure
from benchmarks.rig.report import Report
from benchmarks.rig.stream import generate, model_keys
from benchmarks.rig.systems import PEERS, WORKER, Options
from benchmarks.rig.visible import Cluster
from streamapp.embedded import EmbeddedBroker
from topics.admin import create
from topics.definitions import TopicNames

PARTITIONS = 8


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.pipeline", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--format", choices=("json", "packed", "arrow"), default="json")
    parser.add_argument("--records", type=int, help="rows of the backlog, by default a million (Arrow: five)")
    parser.add_argument(
        "--keys", type=int, nargs="+", default=[PARTITIONS, 64], help="8: one key per partition"
    )
    parser.add_argument("--with", dest="peers", default="", help=f"peers, of {','.join(PEERS)}")
    parser.add_argument("--without-us", action="store_true", help="only the peers")
    parser.add_argument("--headers", choices=("minimal", "full"), default="minimal")
    parser.add_argument(
        "--leaf", choices=("mc", "nb", "nba"), default="nba", help="leaf model, ours and River's"
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="one JSON object per system")
    given = parser.parse_args()
    given.records = given.records or (5_000_000 if given.format == "arrow" else 1_000_000)
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
        with EmbeddedBroker(heap_mb=1024) as embedded:
            yield embedded.bootstrap_servers


def main() -> int:
    given = arguments()
    systems = [] if given.without_us else [WORKER]
    systems += [system for peer in given.peers for system in PEERS[peer]]
    report = Report(sys.stdout, as_json=given.json)
    with broker() as bootstrap:
        cluster = Cluster(bootstrap)
        options = Options(bootstrap, given.leaf, given.headers)
        for keys in given.keys:
            names = TopicNames(f"bench-{uuid.uuid4().hex[:6]}.")
            create({"bootstrap.servers": bootstrap}, names, PARTITIONS, 1)
            try:
                run_length = BLOCK_ROWS if given.format == "arrow" else 1
                rows = generate(given.records, model_keys(keys, PARTITIONS), run_length)
                backlog = load(bootstrap, names.instances, rows, given.format, PARTITIONS)
                report.backlog(backlog, keys)
                bench = Bench(cluster, backlog, names, options)
                report.results(measure(bench, systems, given.repeats, keys, report.progress))
            finally:
                cluster.delete_prefix(names.prefix)
    return 0


if __name__ == "__main__":
    sys.exit(main())
