"""All our trees, beside MOA's and River's, on the same rows in memory: a Markdown table.

    python -m benchmarks.trees --streams sea,led --records 200000
    python -m benchmarks.trees --streams mnist --records 10000 --presets h-tree --peers moa

Test-then-train, one thread, CPU seconds, median of the repeats, as in benchmarks.core. A row is a stream and
a system; presets run with their own parameters (h-tree with MOA's: grace period 200, δ = 1e-7, τ = 0.05).
"Over" is the speed divided by the speed of the peer's tree of the same kind, on the same rows: EFDT for the
EFDT presets, the Hoeffding tree for the rest. All EFDT predict with nba, as MOA's always does. Attempts are
available for our trees only. River gets the first rows only (--river-records), since a million would take
hours.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace

from benchmarks.datasets import GENERATED, MNIST, REAL, MissingDatasetError, Rows, load
from benchmarks.peers import grove_tree, java, moa, river_tree
from benchmarks.peers.result import Result, Task
from core.errors import GroveError
from core.spec import presets
from topics.errors import TopicsError

STREAMS = (*GENERATED, *REAL, MNIST)
PEERS: dict[str, Callable[..., Result]] = {
    "moa": moa.run,
    "moa-efdt": moa.run_efdt,
    "river": river_tree.run,
    "river-efdt": river_tree.run_efdt,
}
COLUMNS = (
    "stream",
    "system",
    "records",
    "records/s",
    "over MOA",
    "over River",
    "accuracy",
    "leaves",
    "attempts",
)


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    names = presets()
    chosen = list(names) if options.presets == "all" else options.presets.split(",")
    peers = options.peers.split(",") if options.peers else []
    if unknown := (set(chosen) - set(names)) | (set(peers) - set(PEERS)):
        print(f"unknown {', '.join(sorted(unknown))}; known: {', '.join([*names, *PEERS])}", file=sys.stderr)
        return 64
    if not options.json:
        print("| " + " | ".join(COLUMNS) + " |\n" + "|---" * len(COLUMNS) + "|")
    complete = True
    for stream in options.streams.split(","):
        try:
            rows = load(stream, options.records)
        except (MissingDatasetError, GroveError, TopicsError) as error:
            print(f"{stream} is left out: {error}", file=sys.stderr)
            complete = False
            continue
        for line in lines(rows, chosen, peers, options):
            print(json.dumps(line) if options.json else row(line), flush=True)
    return 0 if complete else 1


def lines(
    rows: Rows, chosen: list[str], peers: list[str], options: argparse.Namespace
) -> Iterator[dict[str, object]]:
    """Yield the results, a dictionary by column: peers first, then our presets."""
    tasks = {"": Task(leaf_model=options.leaf_model), "-efdt": Task(leaf_model="nba")}
    speed: dict[str, float] = {}
    for peer in peers:
        first_rows = rows.first(options.river_records) if peer.startswith("river") else rows
        try:
            result = PEERS[peer](first_rows, tasks[_kind(peer)], repeats=options.repeats)
        except (ImportError, java.JavaError) as error:
            print(f"{peer} is left out: {error}", file=sys.stderr)
            continue
        speed[peer] = result.records_per_second
        yield _line(rows, peer, result)
    for preset in chosen:
        kind = _kind(preset)
        task = replace(tasks[kind], learner=preset)
        result = grove_tree.run(rows, task, repeats=options.repeats)
        line = _line(rows, preset, result)
        if moa_speed := speed.get("moa" + kind):
            line["over MOA"] = round(result.records_per_second / moa_speed, 1)
        if "river" + kind in speed:
            first_rows = rows.first(options.river_records)
            fair = grove_tree.run(first_rows, task, repeats=options.repeats)
            line["over River"] = round(fair.records_per_second / speed["river" + kind])
        yield line


def _kind(system: str) -> str:
    """Return the kind of trees to compare a system with: "-efdt", or "" for trees whose splits are final."""
    return "-efdt" if "efdt" in system else ""


def _line(rows: Rows, system: str, result: Result) -> dict[str, object]:
    measured = (result.records, round(result.records_per_second), "", "", round(result.accuracy, 4))
    counts = (result.leaves, "" if result.attempts is None else result.attempts)
    return dict(zip(COLUMNS, (rows.name, system, *measured, *counts), strict=True))


def row(line: dict[str, object]) -> str:
    values = (f"{value:,}" if isinstance(value, int) else str(value) for value in line.values())
    return "| " + " | ".join(values) + " |"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.trees",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--streams", default=",".join(STREAMS), help="names as in benchmarks.core")
    parser.add_argument("--records", type=int, help="rows to use (generators: 1,000,000; data sets: all)")
    parser.add_argument("--river-records", type=int, default=20_000)
    parser.add_argument("--presets", default="all", help="our trees, separated by commas")
    parser.add_argument("--peers", default=",".join(PEERS), help="of " + ", ".join(PEERS))
    parser.add_argument("--leaf-model", default="mc", choices=["mc", "nb", "nba"])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="one object a line")
    return parser


if __name__ == "__main__":
    sys.exit(main())
