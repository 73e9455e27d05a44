"""Query strategies against random requests, with paired rows and standard errors; a check that can fail.

    python -m benchmarks.strategies                       # a table of all strategies, 14 streams
    python -m benchmarks.strategies --check               # the protocol: status 1 if a point fails
    python -m benchmarks.strategies --check --points P1,P2,tree --streams rbf,led
    python -m benchmarks.strategies --data FILE --learner SPEC --limits 0.1 --seeds 5 --json
    python -m benchmarks.strategies --delay 1000 --loss 0.1 --strategies "random;ask"

A model answers every record and learns the labels that it requested, at once or `--delay` records later;
`--loss` is the share of the labels that never come. Accuracy is over the answers to all records. A line of
`--json` is a stream, a limit and a strategy: `gain` is the mean difference to `random` in points of accuracy
over the seeds (the same rows for both), `se` its standard error, `labels` the mean number of labels that
were learned; `kappa` and `f1` (of the rarest class) are gains too. With conformal sets (all strategies have
them if the spec of `--learner` has `conformal`) a line has `coverage` and `single`, the shares of the records
whose label is in their set and whose set has one class, `single_gain`, and `hits_gain`, the gain in sets that
have the label alone. A seed thins data in the order of time,
permutes data without an order and seeds generators. The default seeds, 21 to 25, are those of the protocol:
choose nothing by them, take `--first-seed 1` to try something.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.bounded_numbers import number_within
from benchmarks.name_lists import add_name_lists
from benchmarks.strategies.comparisons import (
    Gains,
    Mean,
    accuracy,
    coverage,
    f1,
    kappa,
    last_fifth,
    points_between,
    single_hits,
    single_sets,
)
from benchmarks.strategies.laboratory import Draw, Results, Trial, perform
from benchmarks.strategies.options import label_limit, strategy_names
from benchmarks.strategies.points import RANDOM
from benchmarks.strategies.protocol import POINTS
from benchmarks.strategies.runs import ALL_LABELS, STRATEGIES, Outcome, Setting, learner_of
from benchmarks.strategies.streams import RARE, STREAMS
from core.errors import GroveError
from topics.errors import DatasetError

FIRST_SEED = 21


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return 1 if a point of the protocol failed, 2 for something that cannot be run."""
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        return check(options) if options.check else compare(options)
    except (GroveError, DatasetError) as error:
        print(f"python -m benchmarks.strategies: {error}", file=sys.stderr)
        return 2


def compare(options: argparse.Namespace) -> int:
    """Print the gains of strategies over random requests."""
    learner = learner_of(options.learner)
    settings = [Setting(learner, limit, options.delay, options.loss) for limit in options.limits]
    streams = options.data or list(options.streams)
    strategies = list(dict.fromkeys([RANDOM, *options.strategies]))
    draw = _draw(options)
    trials = [
        Trial(stream, setting, strategy, draw)
        for stream in streams
        for setting in settings
        for strategy in strategies
    ]
    results, missing = perform(trials, options.processes)
    for line in missing:
        print(line, file=sys.stderr)
    if not results.outcomes:
        print("no stream is on this machine; take --streams rbf, or --data FILE", file=sys.stderr)
        return 2
    for setting in settings:
        for text in (_lines if options.json else _table)(results, setting, strategies, streams, draw):
            print(text)
    return 0


def check(options: argparse.Namespace) -> int:
    """Judge the points of the protocol; name every point that failed."""
    points, draw = [point for point in POINTS if point.name in options.points], _draw(options)
    allowed = {*options.streams, *RARE}
    trials = [trial for point in points for trial in point.trials(draw) if trial.stream in allowed]
    results, missing = perform(trials, options.processes)
    for line in missing:
        print(line, file=sys.stderr)
    failed = []
    for point in points:
        verdict = point.verdict(results, draw)
        if verdict is None:
            failed += [point.name]
            print(f"FAILED {point.name}: {point.subject}: no stream of it was run")
            continue
        word = "FAILED" if verdict.missed else "passed"
        failed += [point.name] if verdict.missed else []
        print(f"{word} {point.name}: {point.subject}: {verdict.measured}")
        for demand in verdict.missed:
            print(f"    missed: {demand}")
    print(f"{len(points) - len(failed)} of {len(points)} points passed")
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def _draw(options: argparse.Namespace) -> Draw:
    seeds = tuple(range(options.first_seed, options.first_seed + options.seeds))
    return Draw(seeds, options.records, options.permuted)


def _lines(
    results: Results, setting: Setting, strategies: list[str], streams: list[str], draw: Draw
) -> Iterator[str]:
    """Yield a JSON object for each stream and strategy."""
    for strategy in strategies:
        runs = results.of(streams, setting, strategy, draw)
        randoms = results.of(streams, setting, RANDOM, draw)
        gains = {
            name: points_between(runs, randoms, measure).by_stream
            for name, measure in (
                ("gain", accuracy),
                ("last_fifth", last_fifth),
                ("kappa", kappa),
                ("f1", f1),
            )
        }
        for stream, of in runs.items():
            gain = gains["gain"][stream]
            line: dict[str, Any] = {"stream": stream, "limit": setting.limit, "strategy": strategy}
            line |= {"gain": round(gain.value, 3), "se": _rounded(gain.error)}
            line |= {"labels": round(Mean.of([run.labels for run in of]).value, 1)}
            line |= {"accuracy": round(Mean.of([accuracy(run) for run in of]).value, 5)}
            line |= {name: round(gains[name][stream].value, 3) for name in ("last_fifth", "kappa", "f1")}
            line |= {"asked": round(Mean.of([run.asked for run in of]).value, 5)}
            line |= {"refused": round(Mean.of([run.refused for run in of]).value, 5)}
            line |= _of_sets(stream, runs, randoms)
            yield json.dumps(line | {"seeds": len(of), "delay": setting.delay, "loss": setting.loss})


def _rounded(error: float) -> float | None:
    return None if math.isnan(error) else round(error, 3)


def _of_sets(
    stream: str, runs: Mapping[str, Sequence[Outcome]], randoms: Mapping[str, Sequence[Outcome]]
) -> dict[str, float | None]:
    """Return the figures of the sets of a strategy on a stream; none if its models have no sets."""
    if math.isnan(coverage(runs[stream][0])):
        return {}
    figures: dict[str, float | None] = {
        name: round(Mean.of([measure(run) for run in runs[stream]]).value, 5)
        for name, measure in (("coverage", coverage), ("single", single_sets), ("hits", single_hits))
    }
    if not math.isnan(coverage(randoms[stream][0])):
        for name, measure in (("single", single_sets), ("hits", single_hits)):
            gain = points_between(runs, randoms, measure).by_stream[stream]
            figures |= {f"{name}_gain": round(gain.value, 3), f"{name}_se": _rounded(gain.error)}
    return figures


def _table(
    results: Results, setting: Setting, strategies: list[str], streams: list[str], draw: Draw
) -> Iterator[str]:
    """Yield a Markdown table: gains in points ± standard error, for ``random`` the accuracy in percent."""
    randoms = results.of(streams, setting, RANDOM, draw)
    heads = ["strategy", *randoms, "mean", "won/lost"]
    yield f"limit {setting.limit}, labels late by {setting.delay}, lost {setting.loss}\n"
    yield "| " + " | ".join(heads) + " |"
    yield "|---" * len(heads) + "|"
    for strategy in strategies:
        runs = results.of(streams, setting, strategy, draw)
        if strategy == RANDOM:
            levels = [Mean.of([100 * accuracy(run) for run in of]).value for of in runs.values()]
            cells = [f"{level:.1f}" for level in levels] + [f"{sum(levels) / len(levels):.1f}", ""]
        else:
            cells = list(_cells(points_between(runs, randoms, accuracy)))
        yield "| " + " | ".join([f"`{strategy}`", *cells]) + " |"
    yield ""


def _cells(gains: Gains) -> Iterator[str]:
    for mean in gains.by_stream.values():
        yield f"{mean.value:+.1f} ± {mean.error:.1f}"
    yield str(gains.mean)
    yield f"{len(gains.wins)}/{len(gains.losses)}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.strategies",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_name_lists(parser, {"streams": STREAMS, "points": tuple(point.name for point in POINTS)})
    parser.add_argument("--data", nargs="+", help="files, or addresses with {seed}, instead of the streams")
    parser.add_argument("--permuted", action="store_true", help="the rows of --data have no order in time")
    parser.add_argument("--learner", default="h-tree", metavar="SPEC", help="a name, or JSON as in a spec")
    parser.add_argument(
        "--strategies",
        type=strategy_names,
        default=[name for name in STRATEGIES if name != ALL_LABELS],
        metavar="A;B",
        help="some of " + "; ".join(STRATEGIES),
    )
    parser.add_argument("--limits", type=label_limit, nargs="+", default=[0.1], metavar="L")
    parser.add_argument("--seeds", type=number_within(int, 1, 10_000), default=5, metavar="N")
    parser.add_argument(
        "--first-seed", type=number_within(int, 0, 1_000_000), default=FIRST_SEED, metavar="S"
    )
    parser.add_argument(
        "--records", type=number_within(int, 1, 10**9), metavar="N", help="at most, of each stream"
    )
    parser.add_argument("--delay", type=number_within(int, 0, 10**9), default=0, metavar="D")
    parser.add_argument("--loss", type=number_within(float, 0.0, 1.0), default=0.0, metavar="F")
    parser.add_argument("--processes", type=number_within(int, 1, 64), default=2, metavar="N")
    parser.add_argument("--json", action="store_true", help="JSON lines instead of a Markdown table")
    parser.add_argument("--check", action="store_true", help="judge the points of the protocol")
    return parser


if __name__ == "__main__":
    sys.exit(main())
