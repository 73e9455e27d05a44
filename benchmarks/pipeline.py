"""The whole pipeline, from records on a topic to visible answers, beside its peers on the same topic.

    python -m benchmarks.pipeline --format json --keys 64 --with streams,loop --compat moa
    python -m benchmarks.pipeline --format json --with echo,river,faust
    python -m benchmarks.pipeline --format packed --keys 64 --records 2000000
    python -m benchmarks.pipeline --format json,packed,avro --with streams,loop
    python -m benchmarks.pipeline --keys 10000 --spec '{"learner": "boct", "query": "never"}'
    python -m benchmarks.pipeline --table
    python -m benchmarks.pipeline --pairs
    python -m benchmarks.pipeline --latency --rate 5000
    python -m benchmarks.pipeline --guarantees at_least_once,exactly_once --with streams,loop
    python -m benchmarks.pipeline --guarantees at_least_once,exactly_once --partitions 8 64
    python -m benchmarks.pipeline --guarantees at_least_once,exactly_once --latency --with streams
    python -m benchmarks.pipeline --guarantees exactly_once --latency --commit-intervals 100 50 20
    python -m benchmarks.pipeline --guarantees exactly_once --latency --trace --json

docs/benchmarks-pipeline.md describes the measurements and the results.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace

from benchmarks.peers.job import COMMIT_MS, LINGER_MS
from benchmarks.rig.backlog import load
from benchmarks.rig.broker import PARTITIONS, broker, topics
from benchmarks.rig.encoding import BLOCK_ROWS
from benchmarks.rig.guarantees import measure_guarantees
from benchmarks.rig.latency import Pace, measure_latency
from benchmarks.rig.pairs import measure_pairs
from benchmarks.rig.passes import Bench, measure
from benchmarks.rig.registered import registered
from benchmarks.rig.report import Report
from benchmarks.rig.stages import measure_stages
from benchmarks.rig.stream import generate, model_keys
from benchmarks.rig.systems import GUARANTEES, PEERS, WORKER, Options, System
from benchmarks.rig.visible import Cluster
from streamapp.worker.compile_ahead import warm_kernels

ROWS = {"json": 1_000_000, "packed": 1_000_000, "avro": 1_000_000, "arrow": 5_000_000}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.pipeline", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--format", default="json", help=f"of {', '.join(ROWS)}; several take turns")
    parser.add_argument("--records", type=int, help="rows of the backlog; a million, with Arrow five")
    parser.add_argument(
        "--keys",
        type=int,
        nargs="+",
        help="model keys; default 8 (one per partition) and 64, beside peers 64",
    )
    parser.add_argument("--partitions", type=int, nargs="+", default=[PARTITIONS])
    parser.add_argument(
        "--guarantees",
        help=f"beside each other, of {','.join(GUARANTEES)}; all counted by committed offsets. Without: "
        f"{GUARANTEES[0]}, counted by visible answers",
    )
    parser.add_argument("--with", dest="peers", default="", help=f"peers, of {','.join(PEERS)}")
    parser.add_argument("--without-us", action="store_true", help="only the peers")
    parser.add_argument("--headers", choices=("minimal", "full"), default="minimal")
    parser.add_argument(
        "--leaf", choices=("mc", "nb", "nba"), default="nba", help="leaf model, of all who learn"
    )
    parser.add_argument("--compat", choices=("moa",), help="our H-Tree as MOA has it, record by record")
    parser.add_argument(
        "--commit-intervals",
        type=int,
        nargs="+",
        default=[COMMIT_MS],
        help="ms, of us and of the peers in Java",
    )
    parser.add_argument("--threads", type=int, default=1, help="stream threads of Kafka Streams")
    parser.add_argument(
        "--spec", default="", help="of our models, in place of the H-Tree that MOA and River have too"
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="one JSON object per system")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--table", action="store_true", help="where the microseconds of a record go")
    what.add_argument("--pairs", action="store_true", help="instances and labels on separate topics")
    what.add_argument("--latency", action="store_true", help="from produce to visible answer, beside an echo")
    parser.add_argument("--rate", type=int, default=5000, help="--latency: records per second")
    parser.add_argument("--seconds", type=float, default=30.0, help="--latency: how long, after the warm-up")
    parser.add_argument(
        "--linger-ms",
        type=float,
        default=LINGER_MS,
        help="--latency: of the producer, the echo and the peers; 0: a request for nearly every record",
    )
    parser.add_argument(
        "--trace", action="store_true", help="--latency: clocks in our worker, for where a record's time goes"
    )
    options = parser.parse_args()
    options.formats = options.format.split(",")
    if wrong := sorted(set(options.formats) - set(ROWS)):
        parser.error(f"--format {wrong[0]}: known are {', '.join(ROWS)}")
    if len(options.formats) > 1 and (
        options.latency or options.table or options.pairs or options.guarantees or "arrow" in options.formats
    ):
        parser.error(
            f"--format {options.format}: several formats, of records with one row, are for a backlog; "
            "leave out arrow, --latency, --table, --pairs and --guarantees"
        )
    options.format = options.formats[0]
    options.records = options.records or ROWS[options.format]
    single = options.latency or options.table or options.guarantees or options.peers
    options.keys = options.keys or ([64] if single else [PARTITIONS, 64])
    options.guarantees = options.guarantees.replace("-", "_").split(",") if options.guarantees else []
    options.peers = [peer for peer in options.peers.split(",") if peer]
    if wrong := sorted(set(options.guarantees) - set(GUARANTEES)):
        parser.error(f"--guarantees {wrong[0]}: known are {', '.join(GUARANTEES)}")
    if options.latency and (others := sorted(set(options.peers) - {"streams", "loop"})):
        parser.error(f"--with {others[0]}: --latency has streams and loop; an echo always runs beside them")
    unknown = sorted(set(options.peers) - set(PEERS))
    if unknown:
        parser.error(f"--with {unknown[0]}: known are {', '.join(PEERS)}")
    if options.guarantees and (options.table or options.pairs):
        parser.error("--guarantees is for a backlog or --latency; leave out --table or --pairs")
    if options.without_us and not options.peers:
        parser.error("--without-us leaves no system to measure; name peers with --with")
    if "avro" in options.formats and options.latency:
        parser.error("--format avro is for a backlog; leave out --latency")
    if options.spec and options.compat:
        parser.error("--compat is of the H-Tree; with --spec write it there")
    for name, system in [(peer, system_of_peer) for peer in options.peers for system_of_peer in PEERS[peer]]:
        if lacking := [form for form in options.formats if form not in system.formats]:
            parser.error(f"--format {lacking[0]}: {name} has {', '.join(system.formats)}")
        if lacking := sorted(set(options.guarantees) - set(system.guarantees)):
            parser.error(f"--guarantees {lacking[0]}: {name} has {', '.join(system.guarantees)}")
    return options


def systems_of(options: argparse.Namespace) -> list[System]:
    """Return our worker, unless it is left out, and the named peers."""
    ours = [] if options.without_us else [WORKER]
    return ours + [system for peer in options.peers for system in PEERS[peer]]


def throughput(options: argparse.Namespace, bench: Bench, partitions: int, keys: int, report: Report) -> None:
    systems = systems_of(options)
    run_length = BLOCK_ROWS if options.format == "arrow" else 1
    rows = generate(options.records, model_keys(keys, partitions), run_length)
    if options.table:
        report.stages(measure_stages(bench, rows, options.format, partitions))
        return
    bench.backlog = load(bench.options.bootstrap, bench.names.instances, rows, options.format, partitions)
    report.backlog(bench.backlog, keys)
    if options.guarantees:
        report.guarantees(
            measure_guarantees(bench, systems, options.guarantees, options.repeats, keys, report.progress)
        )
    else:
        report.results(measure([bench], systems, options.repeats, keys, report.progress))


def by_format(
    flags: argparse.Namespace,
    cluster: Cluster,
    options: Mapping[str, Options],
    partitions: int,
    keys: int,
    report: Report,
) -> None:
    """Measure all systems over one backlog of each format, in turns; `options`: by format."""
    rows = generate(flags.records, model_keys(keys, partitions))
    with ExitStack() as stack:
        benches = []
        for form, of_format in options.items():
            names = stack.enter_context(topics(of_format.bootstrap, cluster, partitions))
            bench = Bench(cluster, names, of_format)
            bench.backlog = load(of_format.bootstrap, names.instances, rows, form, partitions)
            report.backlog(bench.backlog, keys)
            benches.append(bench)
        report.results(measure(benches, systems_of(flags), flags.repeats, keys, report.progress))


def pairs(options: argparse.Namespace, bench: Bench, partitions: int, keys: int, report: Report) -> None:
    rows = generate(options.records, model_keys(keys, partitions))
    report.results([measure_pairs(bench, rows, partitions, options.repeats, keys, report.progress)])


def latency(
    flags: argparse.Namespace, cluster: Cluster, options: Options, partitions: int, keys: int, report: Report
) -> None:
    """Measure each system with each guarantee on new topics, in sequence, beside an echo."""
    systems, pace = systems_of(flags), Pace(keys, flags.rate, flags.seconds, flags.linger_ms)
    latencies = []
    for guarantee, system in itertools.product(flags.guarantees or [options.guarantee], systems):
        with topics(options.bootstrap, cluster, partitions) as names:
            chosen = replace(options, guarantee=guarantee)
            latencies += measure_latency(cluster, names, chosen, system, partitions, pace, trace=flags.trace)
    report.latencies(latencies)


def options_of(options: argparse.Namespace, bootstrap: str, commit_ms: int) -> Options:
    return Options(
        bootstrap,
        options.leaf,
        options.spec,
        options.headers,
        compat=options.compat,
        threads=options.threads,
        commit_ms=commit_ms,
    )


def main() -> int:
    flags = arguments()
    report = Report(sys.stdout, as_json=flags.json)
    warm_kernels()  # compiled here once, if at all, so that no measurement waits for it
    with broker() as bootstrap, ExitStack() as stack:
        settings = {form: stack.enter_context(registered(form)) for form in flags.formats}
        cluster = Cluster(bootstrap)
        for commit_ms, partitions, keys in itertools.product(
            flags.commit_intervals, flags.partitions, flags.keys
        ):
            of_all = options_of(flags, bootstrap, commit_ms)
            options = replace(of_all, settings=settings[flags.format])
            if len(flags.commit_intervals) > 1:
                report.progress(f"commit interval {commit_ms} ms")
            if flags.latency:
                latency(flags, cluster, options, partitions, keys, report)
                continue
            if len(flags.formats) > 1:
                by_name = {form: replace(of_all, settings=own) for form, own in settings.items()}
                by_format(flags, cluster, by_name, partitions, keys, report)
                continue
            with topics(bootstrap, cluster, partitions) as names:
                what = pairs if flags.pairs else throughput
                what(flags, Bench(cluster, names, options), partitions, keys, report)
    return 0


if __name__ == "__main__":
    sys.exit(main())
