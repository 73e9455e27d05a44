"""Forecasts of learning curves against what came: coverage of their bands, and what the advice was worth.

    python -m benchmarks.forecasts                        # 14 streams, 10 % of the labels, JSON lines
    python -m benchmarks.forecasts --streams rbf,elec --limits 0.1 1.0 --strategies "random;ask"
    python -m benchmarks.forecasts --data FILE --learner SPEC --seeds 3

A model answers all records and learns the labels that it requests. After each 500 labels the forecast of
that time is kept. What came is the share of right answers to the records that were answered with 250 to 750
more labels. It has its own chance: 5,000 records at 10 %, but 500 where all labels are learned. `covered` is
the share of the bands of 90 % that cover it; for `covered_apart` the bands are wider by this chance. `bias`
and `half` are the mean of what came less the forecast, and the mean half-width of a band, in points.
`advice` counts all advices; `gain_stop`, `gain_go_on` and `gain_again` are the mean differences, in points,
between what came and the share of right answers to the records with 250 labels less to 250 labels more.

The seeds of the published figures are 21 to 25: grid and priors of the fit were chosen on seeds 1 to 10 of
the generated streams.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections import Counter
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from benchmarks.datasets import MissingDatasetError, Rows
from benchmarks.name_lists import add_name_lists
from benchmarks.strategies.options import label_limit, strategy_names
from benchmarks.strategies.runs import ALL_LABELS, STRATEGIES, learner_of
from benchmarks.strategies.streams import STREAMS, open_stream
from core.errors import GroveError
from core.evaluation import EvaluationDue
from core.learning_curve.fit import MORE
from core.learning_curve.forecast import NORMAL_90, Forecast
from core.model.model import Model
from core.model_table import ON_REQUEST, ModelTable
from core.spec import WORTH, Spec
from topics.errors import DatasetError

FIRST_SEED: Final = 21
NAMES: Final = {"stop": "gain_stop", "go on": "gain_go_on", "ask again after drift": "gain_again"}


@dataclass(frozen=True)
class Outcome:
    """A forecast and what came."""

    forecast: Forecast
    came: float
    """Share of right answers with 250 to 750 more labels."""
    chance: float
    """Its standard error."""
    gained: float
    """The same, less that with 250 labels less to 250 more."""

    @property
    def is_forecast(self) -> bool:
        return not math.isnan(self.forecast.accuracy.value)

    def is_covered(self, chance: float) -> bool:
        """Return whether the band covers what came; chance: a standard error that widens the band."""
        value, low, high = self.forecast.accuracy
        side = value - low if self.came < value else high - value
        return abs(self.came - value) <= math.hypot(side, NORMAL_90 * chance)


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return 2 for something that cannot be run."""
    options = _parser().parse_args(arguments)
    try:
        learner = learner_of(options.learner)
        for stream in options.data or options.streams:
            for limit in options.limits:
                for strategy in options.strategies if limit < 1.0 else [ALL_LABELS]:
                    seeds = range(options.first_seed, options.first_seed + options.seeds)
                    try:
                        outcomes = [
                            outcome
                            for seed in seeds
                            for outcome in played(
                                open_stream(stream, seed, options.records), learner, strategy, limit, seed
                            )
                        ]
                    except (DatasetError, MissingDatasetError) as error:
                        print(f"{stream} is left out: {error}", file=sys.stderr)
                        continue
                    line = {"stream": stream, "strategy": strategy, "limit": limit, "seeds": options.seeds}
                    print(json.dumps(line | figures(outcomes)), flush=True)
    except GroveError as error:
        print(f"python -m benchmarks.forecasts: {error}", file=sys.stderr)
        return 2
    return 0


def played(rows: Rows, learner: str, strategy: str, limit: float, seed: int) -> list[Outcome]:
    """Return the forecasts of a run after each MORE labels for which enough labels follow."""
    spec = json.loads(learner) | {
        "query": STRATEGIES[strategy],
        "budget": {"name": "count", "limit": limit},
        "evaluation": {"every": MORE, "per_class": False, "worth": WORTH},
        "seed": seed,
    }
    table = ModelTable()
    index, n = table.add(Model.create(Spec.parse(spec), rows.schema)), len(rows.y)
    answers = table.answer(np.full(n, index), rows.x, rows.y, np.ones(n), ON_REQUEST)
    right, version = answers.prediction == rows.y, answers.version
    half, total = MORE // 2, table.model(index).summary().labels
    outcomes = []
    for event in answers.events:
        if not isinstance(event, EvaluationDue) or event.curve is None:
            continue
        labels = event.curve.labels
        if labels + MORE + half > total:
            break
        now, then = (
            right[(version >= middle - half) & (version < middle + half)]
            for middle in (labels, labels + MORE)
        )
        came = float(then.mean())
        chance = math.sqrt(max(came * (1.0 - came), 1.0 / len(then)) / len(then))
        outcomes.append(Outcome(event.curve.read(), came, chance, came - float(now.mean())))
    return outcomes


def figures(outcomes: list[Outcome]) -> dict[str, Any]:
    """Return the figures of a line."""
    forecasts = [outcome for outcome in outcomes if outcome.is_forecast]
    line: dict[str, Any] = {"evaluations": len(outcomes), "forecasts": len(forecasts)}
    if forecasts:
        errors = [100.0 * (outcome.came - outcome.forecast.accuracy.value) for outcome in forecasts]
        halves = [
            50.0 * (outcome.forecast.accuracy.high - outcome.forecast.accuracy.low) for outcome in forecasts
        ]
        line |= {
            "covered": _mean([float(outcome.is_covered(0.0)) for outcome in forecasts]),
            "covered_apart": _mean([float(outcome.is_covered(outcome.chance)) for outcome in forecasts]),
            "bias": _mean(errors),
            "error": round(math.sqrt(_mean([error * error for error in errors])), 3),
            "half": _mean(halves),
        }
    line["advice"] = Counter(str(outcome.forecast.advice) for outcome in outcomes)
    for advice, name in NAMES.items():
        gains = [100.0 * outcome.gained for outcome in outcomes if outcome.forecast.advice == advice]
        line[name] = _mean(gains) if gains else None
    return line


def _mean(values: list[float]) -> float:
    return round(float(np.mean(values)), 3)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.forecasts",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_name_lists(parser, {"streams": STREAMS})
    parser.add_argument("--data", nargs="+", help="files, or addresses with {seed}, instead of the streams")
    parser.add_argument("--learner", default="h-tree", metavar="SPEC", help="a name, or JSON as in a spec")
    parser.add_argument(
        "--strategies",
        type=strategy_names,
        default=["random", "ask"],
        metavar="A;B",
        help="for limits below 1, some of " + "; ".join(STRATEGIES),
    )
    parser.add_argument("--limits", type=label_limit, nargs="+", default=[0.1], metavar="L")
    parser.add_argument("--seeds", type=int, default=5, metavar="N")
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED, metavar="S")
    parser.add_argument("--records", type=int, metavar="N", help="at most, of each stream")
    return parser


if __name__ == "__main__":
    sys.exit(main())
