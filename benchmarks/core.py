"""Learners alone: our H-Tree, MOA's and River's Hoeffding tree on the same rows in memory, one thread each.

    python -m benchmarks.core --stream sea --records 1000000
    python -m benchmarks.core --stream agrawal --leaf-model nba --compat moa --json
    python -m benchmarks.core --stream path/to/file.arff --systems streamgrove,moa

Each system tests then trains on all rows, repeatedly; the result is the median. Times are CPU seconds of the
one working thread (and of Java's collector, which stops it), so that other load on the machine does not
count. All systems predict, evaluate prequentially and train. `moa` is MOA's own task EvaluatePrequential over
the same rows in memory, `moa-loop` only its loop (predict, evaluate, train), `moa-bare` the learner without
any evaluation (streamgrove always evaluates). Java has been warmed up; MOA is fetched from Maven Central
once. River comes with the dependency group `bench`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable

from benchmarks.datasets import GENERATED, REAL, MissingDatasetError, Rows, load
from benchmarks.peers import grove_tree, java, moa, river_tree
from benchmarks.peers.result import Result, Task
from core.errors import GroveError
from topics.errors import TopicsError

SYSTEMS: dict[str, Callable[..., Result]] = {
    "streamgrove": grove_tree.run,
    "moa": moa.run,
    "moa-loop": moa.run_loop,
    "moa-bare": moa.run_bare,
    "river": river_tree.run,
}


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    chosen = options.systems.split(",")
    if unknown := set(chosen) - set(SYSTEMS):
        print(f"unknown system {', '.join(sorted(unknown))}; known: {', '.join(SYSTEMS)}", file=sys.stderr)
        return 64
    try:
        rows = load(options.stream, options.records)
    except (MissingDatasetError, GroveError, TopicsError) as error:
        names = ", ".join([*GENERATED, *REAL, "gen:NAME?option=value&n=N", "a file"])
        print(f"--stream {options.stream}: {error}; known: {names}", file=sys.stderr)
        return 1
    task = Task(leaf_model=options.leaf_model, compat=options.compat)
    results = []
    for system in chosen:
        result = _measure(system, rows, task, options.repeats)
        if result is not None:
            results.append(result)
    _report(results, rows, task, as_json=options.json)
    return 0 if len(results) == len(chosen) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.core",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--stream", default="sea", help="sea, agrawal, led, rbf, a data set, gen:…, or a file"
    )
    parser.add_argument("--records", type=int, help="rows to use (generators: 1,000,000; files: all)")
    parser.add_argument("--leaf-model", default="mc", choices=["mc", "nb", "nba"])
    parser.add_argument(
        "--compat", choices=["moa"], help="our tree with MOA's quirks (other learners do not change)"
    )
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--systems", default="streamgrove,moa,river", help="of " + ", ".join(SYSTEMS))
    parser.add_argument("--json", action="store_true", help="one object a line and system")
    return parser


def _measure(system: str, rows: Rows, task: Task, repeats: int) -> Result | None:
    try:
        return SYSTEMS[system](rows, task, repeats=repeats)
    except ImportError as error:
        print(f"{system} is left out: {error}; install it with: pip install -e '.[bench]'", file=sys.stderr)
    except java.JavaError as error:
        print(f"{system} is left out: {error}", file=sys.stderr)
    return None


def _report(results: list[Result], rows: Rows, task: Task, *, as_json: bool) -> None:
    """Print the results; ``ratio`` is our speed divided by a system's speed."""
    ours = next((r for r in results if r.system == "streamgrove"), None)
    if not as_json:
        print(
            f"{rows.name}: {len(rows.y):,} records, {len(rows.attributes)} attributes, {rows.classes} classes"
        )
        print(f"{'system':<12} {'records/s':>12} {'ours is':>9} {'accuracy':>9} {'leaves':>8} {'splits':>7}")
    for result in results:
        ratio = ours.records_per_second / result.records_per_second if ours else None
        if as_json:
            print(json.dumps(_object(result, rows, task, ratio)), flush=True)
        else:
            times = f"{ratio:.2f} x" if ratio is not None else ""
            print(
                f"{result.system:<12} {result.records_per_second:>12,.0f} {times:>9} {result.accuracy:>9.4%}"
                f" {result.leaves:>8,} {result.splits:>7,}"
            )


def _object(result: Result, rows: Rows, task: Task, ratio: float | None) -> dict[str, object]:
    return {
        "system": result.system,
        "stream": rows.name,
        "records": result.records,
        "records_per_second": round(result.records_per_second),
        "accuracy": result.accuracy,
        "leaves": result.leaves,
        "splits": result.splits,
        "depth": result.depth,
        "leaf_model": task.leaf_model,
        "compat": task.compat if result.system == "streamgrove" else None,
        "repeats": len(result.seconds),
        "ours_over_this": None if ratio is None else round(ratio, 2),
    }


if __name__ == "__main__":
    sys.exit(main())
