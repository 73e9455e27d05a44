"""Accuracy of the trees of three systems, each with its own defaults; as JSON.

    python -m benchmarks.accuracy                             # 15 streams, three seeds for generated streams
    python -m benchmarks.accuracy --streams led,rbf --seeds 5 --systems ours,moa
    python -m benchmarks.accuracy --evidence observed --systems ours,moa

Accuracy is prequential (test-then-train) over all records, in percent. Generated streams are made in MOA's
own flavour, once for every seed; real data sets run once, in their own order, because their order matters.
MOA runs without its memory limit. Its EFDT always predicts with nba, so it is compared with ours for nba
only. River gets the first records of the first seed (``--river-records``) and is compared with ours on these:
it would take a day for all of them. River's EFDT, which rebuilds more than it learns, is left out.

``rows`` has every run; ``summary`` has by learner and leaf model the mean difference over the streams, the
stream with the worst difference, and for each stream means and standard deviations over its seeds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Iterator
from typing import Any

from benchmarks.datasets import MissingDatasetError, Rows, generated, load
from benchmarks.name_lists import add_name_lists
from benchmarks.peers import grove_tree, moa, river_tree
from benchmarks.peers.result import Task

GENERATORS: dict[str, tuple[str, dict[str, Any]]] = {
    "sea": ("sea", {"function": 1}),
    "agrawal-1": ("agrawal", {"function": 1}),
    "agrawal-2": ("agrawal", {"function": 2}),
    "led": ("led", {}),
    "rbf": ("rbf", {}),
    "rbf-50": ("rbf", {"attributes": 50, "classes": 5}),
    "random-tree": ("random_tree", {}),
    "waveform": ("waveform", {}),
    "waveform-40": ("waveform", {"irrelevant": True}),
    "hyperplane": ("hyperplane", {}),
}
"""Streams by name: the generator and its options, without its seeds."""
DRAWS_ITS_CONCEPT = ("rbf", "random_tree")
"""Generators that draw their concept with a separate seed."""
DATA_SETS = ("electricity", "weather", "a9a", "airlines", "kdd99")
STREAMS = (*GENERATORS, *DATA_SETS)
SYSTEMS = ("ours", "moa", "river")
LEARNERS = ("h-tree", "efdt")
LEAF_MODELS = ("mc", "nba")


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    rows: list[dict[str, Any]] = []
    complete = True
    for stream in options.streams:
        for seed in range(1, options.seeds + 1) if stream in GENERATORS else (1,):
            try:
                records = open_stream(stream, seed, options.records)
            except MissingDatasetError as error:
                print(f"{stream}: left out: {error}", file=sys.stderr)
                complete = False
                break
            for row in compare(records, seed, options):
                rows.append({"stream": stream, "seed": seed, **row})
                print(json.dumps(rows[-1]), file=sys.stderr)
    sizes = {"records": options.records, "seeds": options.seeds, "evidence": options.evidence or "default"}
    print(json.dumps(sizes | {"rows": rows, "summary": summary(rows)}, indent=1))
    return 0 if complete else 2


def open_stream(name: str, seed: int, records: int) -> Rows:
    """Return a stream of the benchmark; a real data set is always returned whole."""
    if name not in GENERATORS:
        return load(name)
    generator, options = GENERATORS[name]
    seeds = {"model_seed": seed} if generator in DRAWS_ITS_CONCEPT else {}
    return generated(name, generator, options | seeds | {"seed": seed}, records)


def compare(records: Rows, seed: int, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield the results of all systems on a stream, for each learner and leaf model."""
    few = records.first(options.river_records)
    for learner in options.learners:
        for leaf_model in options.leaf_models:
            task = Task(learner=learner, leaf_model=leaf_model, evidence=options.evidence)
            row: dict[str, Any] = {"learner": learner, "leaf_model": leaf_model, "records": len(records.y)}
            row["ours"] = percent(grove_tree.run(records, task, repeats=1).accuracy)
            if "moa" in options.systems and (learner, leaf_model) != ("efdt", "mc"):
                kind = {"h-tree": "HoeffdingTree", "efdt": "EFDT"}[learner]
                driven = moa.drive(records, moa.options(task), repeats=1, learner=kind)
                row["moa"] = percent(driven.accuracy)
            if "river" in options.systems and learner == "h-tree" and seed == 1:
                row["river records"] = len(few.y)
                row["river"] = percent(river_tree.run(few, task, repeats=1).accuracy)
                row["ours on these"] = percent(grove_tree.run(few, task, repeats=1).accuracy)
            yield row


def percent(share: float) -> float:
    """Return a share in per cent, to a thousandth of a point."""
    return round(100.0 * share, 3)


def summary(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return for each learner, leaf model and peer our lead, in points."""
    means = []
    for learner, leaf_model in dict.fromkeys((row["learner"], row["leaf_model"]) for row in rows):
        own = [row for row in rows if (row["learner"], row["leaf_model"]) == (learner, leaf_model)]
        for peer, ours in (("moa", "ours"), ("river", "ours on these")):
            both = [row for row in own if peer in row]
            if both:
                streams = {
                    stream: lead([row for row in both if row["stream"] == stream], ours, peer)
                    for stream in dict.fromkeys(row["stream"] for row in both)
                }
                behind = min(streams, key=lambda stream: streams[stream]["ahead"])
                mean = statistics.fmean(figures["ahead"] for figures in streams.values())
                means.append(
                    {
                        "learner": learner,
                        "leaf_model": leaf_model,
                        "peer": peer,
                        "mean ahead": round(mean, 3),
                        "farthest behind": [behind, streams[behind]["ahead"]],
                        "streams": streams,
                    }
                )
    return means


def lead(rows: list[dict[str, Any]], ours: str, peer: str) -> dict[str, float]:
    """Return means over the seeds of a stream, and the standard deviation of the difference."""
    ahead = [row[ours] - row[peer] for row in rows]
    return {
        "ours": round(statistics.fmean(row[ours] for row in rows), 3),
        peer: round(statistics.fmean(row[peer] for row in rows), 3),
        "ahead": round(statistics.fmean(ahead), 3),
        "sd": round(statistics.stdev(ahead), 3) if len(ahead) > 1 else 0.0,
        "ours sd": round(statistics.stdev(row[ours] for row in rows), 3) if len(rows) > 1 else 0.0,
    }


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.accuracy", description="Accuracy beside MOA and River."
    )
    lists = {"streams": STREAMS, "systems": SYSTEMS, "learners": LEARNERS, "leaf-models": LEAF_MODELS}
    add_name_lists(parser, lists)
    parser.add_argument("--records", type=int, default=200_000, help="of a generated stream")
    parser.add_argument("--river-records", type=int, default=20_000, help="that River is given")
    parser.add_argument("--seeds", type=int, default=3, help="of a generated stream")
    parser.add_argument("--evidence", choices=("inherited", "observed"), help="of ours; default: theirs")
    return parser


if __name__ == "__main__":
    sys.exit(main())
