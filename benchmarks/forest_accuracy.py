"""How often forests of three systems are right, several seeds each: JSON.

    python -m benchmarks.forest_accuracy --kept accuracy.jsonl                # 8 streams, five seeds
    python -m benchmarks.forest_accuracy --streams led,rbf --learners arf --records 20000 --seeds 3

Test-then-train, percent of the records right. A seed is one of the forest's draws; the rows are the same for
all systems and seeds: generated ones in MOA's own flavour, those of real data sets in their own order.
``compat`` are ours by MOA's rules, ``ours`` with our defaults, ``moa`` and ``river`` with theirs, but for the
number of members.

Every run is written to the file ``--kept`` as a line of its own; what stands there is not run again, so that
it may be broken off and go on, and several may share the work. ``rows`` has every run; ``summary`` by stream
and learner the mean of each system over the seeds with its standard deviation, and ``compat ahead``, ``ours
ahead``: points before MOA.
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
    """Return what runs our forests, by our rules or MOA's."""

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
"""What returns the share of right predictions with each of some seeds."""


def open_stream(name: str, records: int) -> Rows:
    """Return the first records of a stream of the benchmark."""
    if name not in GENERATORS:
        return load(name, records)
    rows = load(GENERATORS[name].format(middle=records // 2), records)
    return Rows(name, rows.x, rows.y, rows.attributes, rows.classes)


class Kept:
    """Runs that a file has, a JSON object a line; new ones are added to it at once."""

    def __init__(self, path: Path | None) -> None:
        """Read what stands in the file; None: nothing is kept."""
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


def wanted(given: argparse.Namespace, stream: str, learner: str, system: str) -> list[dict[str, Any]]:
    """Return the runs of a system that are to be there, one for each seed."""
    seeds = given.river_seeds if system == "river" else given.seeds
    one = {"stream": stream, "learner": learner, "system": system}
    one |= {"members": given.members, "records": given.records}
    return [one | {"seed": seed} for seed in range(1, seeds + 1)]


def summary(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return by stream and learner what the systems' runs come to, in percent."""
    rows, found = list(rows), []
    for stream, learner in dict.fromkeys((row["stream"], row["learner"]) for row in rows):
        one: dict[str, Any] = {"stream": stream, "learner": learner}
        for system in SYSTEMS:
            runs = [
                row
                for row in rows
                if (row["stream"], row["learner"], row["system"]) == (stream, learner, system)
            ]
            if runs:
                percents = [row["accuracy"] for row in runs]
                one[system] = round(statistics.fmean(percents), 3)
                one[f"{system} sd"] = round(statistics.stdev(percents), 3) if len(runs) > 1 else 0.0
                one[f"{system} seeds"] = len(runs)
        for system in ("compat", "ours"):
            if system in one and "moa" in one:
                one[f"{system} ahead"] = round(one[system] - one["moa"], 3)
        found.append(one)
    return found


def main(arguments: list[str] | None = None) -> int:
    given = _parser().parse_args(arguments)
    kept, runs, complete = Kept(given.kept), [], True
    for learner in given.learners:
        for stream in given.streams:
            try:
                rows = open_stream(stream, given.records)
            except MissingDatasetError as error:
                print(f"{stream}: left out: {error}", file=sys.stderr)
                complete = False
                continue
            for system in given.systems:
                of_it = wanted(given, stream, learner, system)
                runs += of_it
                make([run for run in of_it if run not in kept], rows, kept)
    found = [kept.rows[_key(run)] for run in runs]
    print(json.dumps({"rows": found, "summary": summary(found)}, indent=1))
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
