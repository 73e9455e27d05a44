"""Every query strategy on the same streams with the same budget: accuracy over all records, as JSON lines.

    python -m benchmarks.strategies
    python -m benchmarks.strategies --limits 0.02 --seeds 3 --strategies "random;rate" --table

A tree (an H-Tree with its defaults) with DDM answers every record and learns the requested labels at once;
accuracy is over its answers to all records. ``refused`` is the share of the records at which the budget was
closed, so that the strategy was not called; ``asked`` is the share of the records whose label was requested.
A line is a stream, a limit and a strategy, with means over the seeds and the standard deviation of the
accuracy. For a generator, a seed determines the records and the draws of the strategy; for a data set only
the draws, so a strategy without draws has no spread there. ``--table`` prints Markdown, accuracy ± deviation
in percent.
"""

from __future__ import annotations

import argparse
import functools
import json
import statistics
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from benchmarks.datasets import MissingDatasetError, Rows, load
from core.model.model import Model
from core.model_table import LABELLED, ON_REQUEST, ModelTable
from core.spec import Spec

STREAMS = {
    "elec": "electricity",
    "airlines": "airlines",
    "a9a": "a9a",
    "kdd10": "kdd99",
    "sea-drift": "gen:drift?before=(sea?seed={seed})&after=(sea?function=3&seed={seed})&position=50000",
    "led": "gen:led?seed={seed}",
    "rbf": "gen:rbf?seed={seed}",
    "agrawal-2": "gen:agrawal?function=2&seed={seed}",
}
"""The streams by name: a data set, or the address of a generator."""

ALL_LABELS = "all labels"
"""Not a strategy: every label is learned."""

STRATEGIES: dict[str, Any] = {
    ALL_LABELS: "always",
    "always": "always",
    "random": "random",
    "fixed_uncertainty": "fixed_uncertainty",
    "variable_uncertainty": "variable_uncertainty",
    "randomised_uncertainty": "randomised_uncertainty",
    "selective_sampling": "selective_sampling",
    "split": "split",
    "conf_tree": "conf_tree",
    "split_conf_tree": "split_conf_tree",
    "rate": "rate",
    "rate, explore 0.5": {"name": "rate", "explore": 0.5},
    "rate of conf_tree": {"name": "rate", "score": "conf_tree"},
    "rate of conf_tree, explore 0.5": {"name": "rate", "score": "conf_tree", "explore": 0.5},
}
"""Query strategies as a spec writes them."""


@dataclass(frozen=True)
class Measured:
    """The results of a strategy on a stream; shares are in [0, 1], means over the seeds."""

    stream: str
    records: int
    limit: float
    strategy: str
    seeds: int
    accuracy: float
    deviation: float
    """Standard deviation of the accuracy between seeds."""
    asked: float
    refused: float
    accuracies: tuple[float, ...]
    """The accuracy of each seed."""


@dataclass(frozen=True)
class Once:
    """The results of a strategy on a stream with one seed."""

    accuracy: float
    asked: float
    refused: float


@functools.lru_cache(maxsize=1)
def rows_at(address: str, records: int) -> Rows:
    """Return the first records of a data set or generator; a data set is the same for all seeds."""
    return load(address, records)


def once(rows: Rows, learner: Any, strategy: str, limit: float, seed: int) -> Once:
    """Return the results of a strategy on the rows; `learner` is a name or an object, as in a spec."""
    spec = {
        "learner": learner,
        "drift": "ddm",
        "query": STRATEGIES[strategy],
        "budget": {"name": "count", "limit": limit},
        "evaluation": {"every": 0},
        "seed": seed,
    }
    table, n = ModelTable(), len(rows.y)
    index = table.add(Model.create(Spec.parse(spec), rows.schema))
    mode = LABELLED if strategy == ALL_LABELS else ON_REQUEST
    answers = table.answer(np.full(n, index), rows.x, rows.y, np.ones(n), mode)
    summary = table.model(index).summary()
    return Once(float(np.mean(answers.prediction == rows.y)), summary.requests / n, summary.refused / n)


def measure(
    stream: str, learner: Any, strategies: list[str], limits: list[float], seeds: int, records: int
) -> Iterator[Measured]:
    runs_of: dict[tuple[float, str], list[Once]] = {}
    n = 0
    for seed in range(1, seeds + 1):
        rows = rows_at(STREAMS[stream].format(seed=seed), records)
        n = len(rows.y)
        for limit in limits:
            for strategy in strategies:
                runs_of.setdefault((limit, strategy), []).append(once(rows, learner, strategy, limit, seed))
    for (limit, strategy), runs in runs_of.items():
        accuracies = [run.accuracy for run in runs]
        yield Measured(
            stream,
            n,
            limit,
            strategy,
            seeds,
            round(statistics.fmean(accuracies), 5),
            round(statistics.stdev(accuracies) if seeds > 1 else 0.0, 5),
            round(statistics.fmean(run.asked for run in runs), 5),
            round(statistics.fmean(run.refused for run in runs), 5),
            tuple(round(accuracy, 5) for accuracy in accuracies),
        )


def table(results: list[Measured], limit: float) -> Iterator[str]:
    """Yield a Markdown table of one limit: a line for each strategy, a column for each stream.

    The last columns are the mean over the streams of the difference between a strategy and ``random`` (± its
    deviation between seeds), the least of these differences, and the mean share of refused requests.
    """
    streams = list(dict.fromkeys(result.stream for result in results))
    strategies = list(dict.fromkeys(result.strategy for result in results))
    cells = {(result.strategy, result.stream): result for result in results if result.limit == limit}
    heads = ["strategy", *streams, "over random", "at worst", "refused"]
    yield "| " + " | ".join(heads) + " |"
    yield "|---" * len(heads) + "|"
    for strategy in strategies:
        line = [cells[strategy, stream] for stream in streams]
        shown = [f"{100 * cell.accuracy:.1f} ± {100 * cell.deviation:.1f}" for cell in line]
        over = ["", ""]
        if "random" in strategies:
            gaps = [over_random(cell, cells["random", cell.stream]) for cell in line]
            means = [statistics.fmean(seed) for seed in zip(*gaps, strict=True)]
            spread = statistics.stdev(means) if len(means) > 1 else 0.0
            least = min(statistics.fmean(gap) for gap in gaps)
            over = [f"{statistics.fmean(means):+.2f} ± {spread:.2f}", f"{least:+.1f}"]
        refused = f"{100 * statistics.fmean(cell.refused for cell in line):.0f} %"
        yield "| " + " | ".join([strategy, *shown, *over, refused]) + " |"


def over_random(cell: Measured, random: Measured) -> list[float]:
    """Return the points by which a strategy is above ``random`` on a stream, for each seed."""
    return [
        100 * (accuracy - random_accuracy)
        for accuracy, random_accuracy in zip(cell.accuracies, random.accuracies, strict=True)
    ]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.strategies",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--streams", default=",".join(STREAMS), help="of " + ", ".join(STREAMS))
    parser.add_argument("--strategies", help="separated by semicolons, of " + "; ".join(STRATEGIES))
    parser.add_argument("--learner", default='"h-tree"', help="as a spec writes it, in JSON")
    parser.add_argument("--limits", type=float, nargs="+", default=[0.1, 0.02])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--records", type=int, default=100_000, help="at most, of each stream")
    parser.add_argument("--table", action="store_true", help="Markdown instead of JSON lines")
    options = parser.parse_args(arguments)
    strategies = options.strategies.split(";") if options.strategies else list(STRATEGIES)
    streams = options.streams.split(",")
    if unknown := (set(strategies) - set(STRATEGIES)) | (set(streams) - set(STREAMS)):
        parser.error(f"unknown {', '.join(sorted(unknown))}; known: {', '.join([*STRATEGIES, *STREAMS])}")
    results: list[Measured] = []
    complete = True
    for stream in streams:
        try:
            for result in measure(
                stream,
                json.loads(options.learner),
                strategies,
                options.limits,
                options.seeds,
                options.records,
            ):
                results.append(result)
                if not options.table:
                    print(json.dumps(asdict(result)), flush=True)
        except MissingDatasetError as error:
            print(f"{stream} is left out: {error}", file=sys.stderr)
            complete = False
    for limit in options.limits if options.table else []:
        print(f"limit {limit}\n\n" + "\n".join(table(results, limit)) + "\n")
    return 0 if complete else 1


if __name__ == "__main__":
    sys.exit(main())
