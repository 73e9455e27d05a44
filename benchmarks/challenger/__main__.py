"""Challenges of 200 pairs of models: labels to the decision beside random requests, wrong decisions: JSON.

    python -m benchmarks.challenger                                    # 10 streams, 5 kinds, 4 seeds
    python -m benchmarks.challenger --streams sea --kinds better,equal --seeds 2 --records 9000
    python -m benchmarks.challenger --kinds crossing --warm-up 300     # challengers of 30 labels, not 200

A challenge gets 0.02 labels per record, up to the last record. ``disagreements``: its labels are requested
where the models disagree; ``random``: at the same rate from all records; ``dense``: at ten times this rate.
All are decided by the same bounds, with an error of 5 %. ``saved`` is the ratio of requests up to the
decision, of ``dense`` to ``disagreements``, as the median over the pairs that ``disagreements`` decided; a
pair that ``dense`` left open counts with its requests so far: its true ratio is larger.

A decision is ``wrong`` if the true mean difference up to it is at most 0 (promoted) or at least half a point
(dropped); the true difference has an error of some tenths of a point. It is ``overtaken`` if it is right, but
would be wrong for the whole stream: the models crossed later. Under ``exchanged`` the answers of both
models are exchanged at random, record by record, so that the true difference is exactly 0: there each
promotion is an error, for which 2.5 % are nominal.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.challenger.pairs import CHUNK, HEAD, KINDS, RECORDS, STREAMS, WARM_UP, play
from benchmarks.challenger.trials import (
    DENSE,
    RATE,
    RULES,
    Outcome,
    at_random,
    by_disagreement,
    exchanged,
)
from benchmarks.name_lists import add_name_lists


@dataclass(frozen=True)
class Trial:
    """All outcomes of a pair."""

    stream: str
    kind: str
    seed: int
    disagreements: Outcome
    random: Outcome
    dense: Outcome
    exchanged: Sequence[Outcome]


def trial(stream: str, kind: str, seed: int, options: argparse.Namespace) -> Trial:
    """Play a pair and judge it in every way."""
    pair, exchanges = play(stream, kind, seed, options.records, options.warm_up), options.exchanges
    draws = [exchanges * seed + number for number in range(exchanges)]
    return Trial(
        stream,
        kind,
        seed,
        by_disagreement(pair, seed),
        at_random(pair, seed),
        at_random(pair, seed, DENSE * RATE),
        [by_disagreement(exchanged(pair, draw), draw) for draw in draws],
    )


def summary(trials: Sequence[Trial]) -> dict[str, Any]:
    """Return counts of decisions and errors, and the labels that they took."""
    decided = [trial for trial in trials if trial.disagreements.decision != "open"]
    ratios = [trial.dense.requests / trial.disagreements.requests for trial in decided]
    ways: dict[str, Any] = {}
    for way in ("disagreements", "random", "dense"):
        outcomes = [getattr(trial, way) for trial in trials]
        ended = [outcome for outcome in outcomes if outcome.decision != "open"]
        ways[way] = {
            "decisions": dict(Counter(outcome.decision for outcome in outcomes)),
            "wrong promotions": sum(o.is_wrong for o in ended if o.decision == "promoted"),
            "wrong drops": sum(o.is_wrong for o in ended if o.decision == "dropped"),
            "overtaken": sum(outcome.is_overtaken for outcome in ended),
            "median requests of the decided": _median([outcome.requests for outcome in ended]),
            "median records of the decided": _median([outcome.records for outcome in ended]),
        }
    nulls = [outcome for trial in trials for outcome in trial.exchanged]
    promoted = sum(outcome.decision == "promoted" for outcome in nulls)
    return {
        "pairs": len(trials),
        **ways,
        "saved": _median(ratios),
        "saved, quarters": [round(q, 1) for q in statistics.quantiles(ratios)] if len(ratios) > 1 else None,
        "exchanged": {"pairs": len(nulls), "promoted": promoted, "share": _share(promoted, len(nulls))},
    }


def _median(values: Sequence[float]) -> float | None:
    return round(statistics.median(values), 1) if values else None


def _share(count: int, of: int) -> float | None:
    return round(count / of, 4) if of else None


def main(arguments: list[str] | None = None) -> int:
    """Run the command."""
    options = _parser().parse_args(arguments)
    trials = []
    for stream in options.streams:
        for kind in options.kinds:
            for seed in range(options.first_seed, options.first_seed + options.seeds):
                trials.append(trial(stream, kind, seed, options))
                print(json.dumps(_line(trials[-1])), file=sys.stderr, flush=True)
    kinds = {kind: summary([t for t in trials if t.kind == kind]) for kind in options.kinds}
    head = {"rate": RATE, "rules": RULES._asdict(), "records": options.records - HEAD}
    print(json.dumps(head | {"all": summary(trials), "kinds": kinds}, indent=2))
    return 0


def _line(played: Trial) -> dict[str, Any]:
    """Return the outcomes of a pair for a line of progress."""
    line: dict[str, Any] = {"stream": played.stream, "kind": played.kind, "seed": played.seed}
    for way in ("disagreements", "random", "dense"):
        outcome = asdict(getattr(played, way))
        line[way] = {
            name: value if not isinstance(value, float) else None if math.isnan(value) else round(value, 4)
            for name, value in outcome.items()
        }
    return line | {"exchanged": Counter(outcome.decision for outcome in played.exchanged)}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.challenger",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_name_lists(parser, {"streams": tuple(STREAMS), "kinds": tuple(KINDS)})
    parser.add_argument("--seeds", type=_at_least(1), default=4, metavar="N")
    parser.add_argument("--first-seed", type=_at_least(0), default=1, metavar="S")
    parser.add_argument("--records", type=_at_least(HEAD + CHUNK), default=RECORDS, metavar="N")
    parser.add_argument("--exchanges", type=_at_least(0), default=5, metavar="N", help="for each pair")
    parser.add_argument(
        "--warm-up", type=_at_least(0), default=WARM_UP, metavar="N", help="of crossing pairs"
    )
    return parser


def _at_least(least: int) -> Any:
    def parse(text: str) -> int:
        value = int(text)
        if value < least:
            raise argparse.ArgumentTypeError(f"{text} must be at least {least}")
        return value

    return parse


if __name__ == "__main__":
    sys.exit(main())
