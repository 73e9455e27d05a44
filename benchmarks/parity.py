"""Equal work: our H-Tree (EFDT) with ``compat="moa"`` against MOA's HoeffdingTree (EFDT), record by record.

    python -m benchmarks.parity                          # all streams, mc, nb and nba; a Markdown table
    python -m benchmarks.parity --streams electricity,sea --leaf-models nba --records 100000 --json
    python -m benchmarks.parity --learner efdt           # its leaves always predict nba, as in MOA

Both get the same rows in the same order. Accuracy has to agree within 0.1 points (EFDT 0.3), the number of
splits within 1 %; the last columns show the record of the first different split, and the number of different
predictions.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import numpy as np

from benchmarks.datasets import GENERATED, REAL, MissingDatasetError, Rows, load
from benchmarks.peers import grove_tree, java, moa
from benchmarks.peers.result import Task
from core.events import Split

STREAMS = (*REAL, *GENERATED)
LEAF_MODELS = ("mc", "nb", "nba")
ACCURACY_POINTS = {"h-tree": 0.1, "efdt": 0.3}
THEIRS = {"h-tree": "HoeffdingTree", "efdt": "EFDT"}
SPLITS_SHARE = 0.01
RECORDS = 1_000_000
"""Rows of a generated stream; real data sets are used whole."""


@dataclass(frozen=True)
class Parity:
    """The agreement with MOA on one stream with one tree and one leaf model."""

    learner: str
    stream: str
    leaf_model: str
    records: int
    moa_accuracy: float
    our_accuracy: float
    moa_splits: int
    our_splits: int
    moa_leaves: int
    our_leaves: int
    different_predictions: int
    parted: str
    """The first different split, ours and MOA's; empty if there is none."""

    @property
    def holds(self) -> bool:
        """Whether accuracy and splits agree within the tolerances."""
        points = 100.0 * abs(self.moa_accuracy - self.our_accuracy)
        splits = abs(self.moa_splits - self.our_splits)
        return points <= ACCURACY_POINTS[self.learner] and splits <= SPLITS_SHARE * max(self.moa_splits, 1)


def compare(rows: Rows, task: Task) -> Parity:
    """Run both systems over the rows and compare their results."""
    theirs = moa.drive(rows, moa.options(task), trace=True, learner=THEIRS[task.learner])
    model, ours = grove_tree.trace(rows, task)
    assert theirs.predictions is not None
    assert theirs.installed is not None
    summary = model.summary()
    return Parity(
        learner=task.learner,
        stream=rows.name,
        leaf_model=task.leaf_model,
        records=len(rows.y),
        moa_accuracy=theirs.accuracy,
        our_accuracy=float(np.mean(ours.predictions == rows.y)),
        moa_splits=theirs.splits,
        our_splits=summary.splits,
        moa_leaves=theirs.leaves,
        our_leaves=summary.leaves,
        different_predictions=int(np.count_nonzero(ours.predictions != theirs.predictions)),
        parted=first_difference([in_words(record, split) for record, split in ours.splits], theirs.installed),
    )


def in_words(record: int, split: Split) -> tuple[int, int, str, float]:
    """Return a split as the Java driver writes it."""
    test = {
        "numeric": f"<= {split.value!r}",
        "category": f"== {int(split.value)}",
        "multiway": "multiway",
    }[split.test]
    return record, split.attribute, test, split.n


def first_difference(
    ours: list[tuple[int, int, str, float]], theirs: list[tuple[int, int, str, float]]
) -> str:
    """Describe the first difference between two lists of splits; empty if there is none."""
    for our_split, their_split in zip(ours, theirs, strict=False):
        if not _same(our_split, their_split):
            return f"ours {_short(our_split)}, MOA {_short(their_split)}"
    if len(ours) != len(theirs):
        longer, who = (ours, "ours") if len(ours) > len(theirs) else (theirs, "MOA")
        return f"only {who} {_short(longer[min(len(ours), len(theirs))])}"
    return ""


def _same(ours: tuple[int, int, str, float], theirs: tuple[int, int, str, float]) -> bool:
    if ours[:2] != theirs[:2] or ours[2].split()[0] != theirs[2].split()[0]:
        return False
    if ours[2].startswith("<="):
        mine, yours = float(ours[2].split()[1]), float(theirs[2].split()[1])
        return abs(mine - yours) <= 1e-9 * max(1e-300, abs(yours))
    return ours[2] == theirs[2]


def _short(split: tuple[int, int, str, float]) -> str:
    record, attribute, test, weight = split
    return f"record {record}: a{attribute} {test} (n {weight:.3f})"


def table(results: Iterator[Parity]) -> Iterator[str]:
    yield (
        "| stream | leaves | records | accuracy MOA | ours | splits MOA | ours | leaves MOA | ours "
        "| predictions that differ | trees part at |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|---|"
    for p in results:
        verdict = "" if p.holds else " **beyond tolerance**"
        yield (
            f"| {p.stream} | {p.leaf_model} | {p.records:,} | {p.moa_accuracy:.4%} | {p.our_accuracy:.4%} "
            f"| {p.moa_splits} | {p.our_splits} | {p.moa_leaves} | {p.our_leaves} "
            f"| {p.different_predictions:,} | {p.parted or 'never'}{verdict} |"
        )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.parity",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--streams", default=",".join(STREAMS), help="names or files, separated by commas")
    parser.add_argument("--learner", default="h-tree", choices=list(THEIRS))
    parser.add_argument("--leaf-models", help=f"of {', '.join(LEAF_MODELS)} (default: all; efdt: nba alone)")
    parser.add_argument("--records", type=int, help=f"rows to use (generators: {RECORDS:,}; data sets: all)")
    parser.add_argument("--criterion", default="info_gain", choices=["info_gain", "gini"])
    parser.add_argument("--json", action="store_true", help="one object a line")
    options = parser.parse_args(arguments)
    leaf_models = options.leaf_models or ("nba" if options.learner == "efdt" else ",".join(LEAF_MODELS))
    all_hold = True

    def results() -> Iterator[Parity]:
        nonlocal all_hold
        for stream in options.streams.split(","):
            limit = options.records or (RECORDS if stream in GENERATED else None)
            rows = load(stream, limit)
            for leaf_model in leaf_models.split(","):
                task = Task(options.learner, leaf_model, compat="moa", criterion=options.criterion)
                parity = compare(rows, task)
                all_hold &= parity.holds
                yield parity

    try:
        if options.json:
            for parity in results():
                print(json.dumps(asdict(parity) | {"holds": parity.holds}), flush=True)
        else:
            for line in table(results()):
                print(line, flush=True)
    except (MissingDatasetError, java.JavaError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0 if all_hold else 2


if __name__ == "__main__":
    sys.exit(main())
