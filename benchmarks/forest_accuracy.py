"""Accuracy of forests of three systems, with several seeds each: JSON.

    python -m benchmarks.forest_accuracy --kept accuracy.jsonl                # 8 streams, five seeds
    python -m benchmarks.forest_accuracy --streams led,rbf --learners arf --records 20000 --seeds 3

Accuracy is prequential (test-then-train), in percent. A seed is one of the forest's draws; the rows are the
same for all systems and seeds: generated rows in MOA's own flavour, rows of real data sets in their own
order. ``compat`` is our forest by MOA's rules, ``ours`` has our defaults, ``moa`` and ``river`` have theirs,
except for the number of members.

Every run is appended as a line to the file ``--kept``, and runs that are in the file are not repeated: the
benchmark can be interrupted and continued, and several processes can share the work. ``rows`` has every run;
``summary`` has, by stream and learner, the mean of each system over the seeds with its standard deviation,
and ``compat ahead`` and ``ours ahead``: the lead over MOA in points.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.datasets import MissingDatasetError, Rows, load
from benchmarks.forests import MOA_OPTIONS, ours
from benchmarks.name_lists import add_name_lists
from benchmarks.peers import moa, river_forest

DRIFT = "gen:drift?rng=java&position={middle}&width=1000&before=(%s?function=1)&after=(%s?function=%d)"
GENERATORS: dict[str, str] = {
    "sea-drift": DRIFT % ("sea", "sea", 4),
    "agrawal-drift": DRIFT % ("agrawal", "agrawal", 2),
    "led": "gen:led?rng=java",
    "rbf": "gen:rbf?rng=java&attributes=10&classes=5",
}
"""Addresses of generated streams, by name; {middle}: half of the records."""
DATA_SETS = ("electricity", "weather", "a9a", "airlines")
STREAMS = (*GENERATORS, *DATA_SETS)
LEARNERS = tuple(sorted(MOA_OPTIONS))


def of_ours(compat: str | None) -> Callable[..., list[float]]:
    """Return the function that runs our forests, by our rules or MOA's."""

    def run(rows: Rows, learner: str, members: int, seeds: Sequence[int]) -> list[float]:
        return [ours(rows, learner, members, seed, compat)["right"] / len(rows.y) for seed in seeds]

    return run


def of_moa(rows: Rows, learner: str, members: int, seeds: Sequence[int]) -> list[float]:
    """Run MOA's forest."""
    return moa.ensemble_accuracies(rows, MOA_OPTIONS[learner].format(members=members), seeds)


SYSTEMS: dict[str, Callable[..., list[float]]] = {
    "moa": of_moa,
    "compat": of_ours("moa"),
    "ours": of_ours(None),
    "river": river_forest.accuracies,
}
"""For each system, the function that returns the share of correct predictions for each seed."""


def open_stream(name: str, records: int) -> Rows:
    """Return the first records of a stream of the benchmark."""
    if name not in GENERATORS:
        return load(name, records)
    rows = load(GENERATORS[name].format(middle=records // 2), records)
    return Rows(name, rows.x, rows.y, rows.attributes, rows.classes)


class Kept:
    """Runs in a file, one JSON object per line; new runs are appended at once."""

    def __init__(self, path: Path | None) -> None:
        """Read the file; with None, nothing is kept."""
        self._path = path
        lines = path.read_text(encoding="utf-8").splitlines() if path is not None and path.exists() else []
        self.rows: dict[tuple[Any, ...], dict[str, Any]] = {}
        for line in lines:
            row = json.loads(line)
            self.rows[_key(row)] = row

    def __contains__(self, row: dict[str, Any]) -> bool:
        return _key(row) in self.rows

    def add(self, row: dict[str, Any]) -> None:
        """Keep a run."""
        self.rows[_key(row)] = row
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as out:
                out.write(json.dumps(row) + "\n")


def _key(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("stream", "learner", "system", "members", "records", "seed"))


def wanted(options: argparse.Namespace, stream: str, learner: str, system: str) -> list[dict[str, Any]]:
    """Return the runs of a system that are required, one for each seed."""
    seeds = options.river_seeds if system == "river" else options.seeds
    required = {"stream": stream, "learner": learner, "system": system}
    required |= {"members": options.members, "records": options.records}
    return [required | {"seed": seed} for seed in range(1, seeds + 1)]


def summary(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return by stream and learner the means of the systems' runs, in percent."""
    rows, means = list(rows), []
    for stream, learner in dict.fromkeys((row["stream"], row["learner"]) for row in rows):
        line: dict[str, Any] = {"stream": stream, "learner": learner}
        for system in SYSTEMS:
            runs = [
                row
                for row in rows
                if (row["stream"], row["learner"], row["system"]) == (stream, learner, system)
            ]
            if runs:
                percents = [row["accuracy"] for row in runs]
                line[system] = round(statistics.fmean(percents), 3)
                line[f"{system} sd"] = round(statistics.stdev(percents), 3) if len(runs) > 1 else 0.0
                line[f"{system} seeds"] = len(runs)
        for system in ("compat", "ours"):
            if system in line and "moa" in line:
                line[f"{system} ahead"] = round(line[system] - line["moa"], 3)
        means.append(line)
    return means


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    kept, runs, complete = Kept(options.kept), [], True
    for learner in options.learners:
        for stream in options.streams:
            try:
                rows = open_stream(stream, options.records)
            except MissingDatasetError as error:
                print(f"{stream}: left out: {error}", file=sys.stderr)
                complete = False
                continue
            for system in options.systems:
                of_it = wanted(options, stream, learner, system)
                runs += of_it
                make([run for run in of_it if run not in kept], rows, kept)
    results = [kept.rows[_key(run)] for run in runs]
    print(json.dumps({"rows": results, "summary": summary(results)}, indent=1))
    return 0 if complete else 2


def make(runs: list[dict[str, Any]], rows: Rows, kept: Kept) -> None:
    """Make the runs of one system, learner and stream, and keep them."""
    if not runs:
        return
    first, seeds = runs[0], [run["seed"] for run in runs]
    began = time.monotonic()
    shares = SYSTEMS[first["system"]](rows, first["learner"], first["members"], seeds)
    for run, share in zip(runs, shares, strict=True):
        kept.add(run | {"rows": len(rows.y), "accuracy": round(100.0 * share, 3)})
    named = " ".join(first[name] for name in ("stream", "learner", "system"))
    print(f"{named}: {len(runs)} runs in {time.monotonic() - began:.1f} s", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.forest_accuracy",
        description="Accuracy of forests beside MOA's and River's.",
    )
    add_name_lists(parser, {"streams": STREAMS, "systems": tuple(SYSTEMS), "learners": LEARNERS})
    parser.add_argument("--records", type=int, default=50_000, help="of a stream at most")
    parser.add_argument("--members", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--river-seeds", type=int, default=1, help="that River is run with")
    parser.add_argument("--kept", type=Path, help="file of the runs; what it has is not run again")
    return parser


if __name__ == "__main__":
    sys.exit(main())
