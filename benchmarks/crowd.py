"""Labels of a crowd with spammers: their error, and the accuracy of the model that learns them.

    python -m benchmarks.crowd                   # five streams, five seeds, a table
    python -m benchmarks.crowd --json            # JSON lines, one for each stream and way
    python -m benchmarks.crowd --spammers adversarial --streams rbf --seeds 2

A model requests a tenth of the labels. Twenty annotators answer, four of whom are spammers; the others are
right in 65 to 95 % of their answers. Ways:

    truth       the true label, as a bound
    single      one answer
    majority    three answers, weight 1; a tie gets more, up to six, and is declined in the end
    share       the same, weighted by the share of the votes
    five        five answers, weight 1; a tie gets more, up to ten
    three       three answers settled by the annotator model, weighted by its posterior
    quality     the same, with more answers while the posterior is below 0.9, up to six
    gold        the same, with 5 % of the cards as gold questions before

All ways of a seed have the same rows, and an annotator gives the same answer to the same row. `error` is the
share of wrong labels among those learned, in percent; `accuracy` that of the answers of the model over all
records, before their label. `answers` are those for a request, and `declined` the requests without a label.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from benchmarks.datasets import Rows
from benchmarks.name_lists import add_name_lists
from benchmarks.strategies.runs import STRATEGIES, learner_of
from benchmarks.strategies.streams import STREAMS, open_stream
from core.active.label_account import DECLINED
from core.errors import GroveError
from core.model.model import Model
from core.model_table import NO_LABEL, ModelTable
from core.spec import Spec
from streamapp.people.dawid_skene import AnnotatorModel
from streamapp.people.settlement import Settlement, Weighting, settlement

DEFAULT_STREAMS: Final = ("rbf", "random-tree", "agrawal-2", "waveform", "led")
RECORDS: Final = 10_000
LIMIT: Final = 0.1
ANNOTATORS: Final = 20
SPAMMERS: Final = 4
ACCURACY: Final = (0.65, 0.95)
ANSWERS: Final = 3
GOLD_SHARE: Final = 0.05
KINDS: Final = {
    "mixed": ("uniform", "constant", "adversarial", "uniform"),
    "uniform": ("uniform",) * SPAMMERS,
    "constant": ("constant",) * SPAMMERS,
    "adversarial": ("adversarial",) * SPAMMERS,
    "none": (),
}
"""Kinds of spammers: any class, always the first class, a wrong class in nine of ten answers."""
WAYS: Final = ("truth", "single", "majority", "share", "five", "three", "quality", "gold")


@dataclass(frozen=True)
class Crowd:
    """The answers of all annotators to all records."""

    given: npt.NDArray[np.int64]
    """int64[records, annotators]: class of each answer."""
    order: npt.NDArray[np.int64]
    """int64[records, annotators]: who answers a record first, second, …"""

    @classmethod
    def of(cls, rows: Rows, kinds: Sequence[str], seed: int) -> Crowd:
        """Draw the answers to the rows; kinds: those of the spammers."""
        draws = np.random.default_rng(7000 + seed)
        n, k = len(rows.y), rows.classes
        right = draws.uniform(*ACCURACY, ANNOTATORS)
        for spammer, kind in enumerate(kinds):
            right[spammer] = {"uniform": 1 / k, "constant": 0.0, "adversarial": 0.1}[kind]
        wrong = (rows.y[:, None] + draws.integers(1, k, (n, ANNOTATORS))) % k
        given = np.where(draws.random((n, ANNOTATORS)) < right, rows.y[:, None], wrong)
        for spammer, kind in enumerate(kinds):
            if kind == "constant":
                given[:, spammer] = 0
        return cls(given, draws.random((n, ANNOTATORS)).argsort(axis=1))

    def answers(self, row: int, n: int) -> dict[str, str | None]:
        """Return the first n answers to a record: annotator → class."""
        return {f"a{who:02}": f"c{self.given[row, who]}" for who in self.order[row, :n].tolist()}


@dataclass
class Result:
    """The counts of a run."""

    labels: int = 0
    wrong: int = 0
    answers: int = 0
    declined: int = 0
    right: int = 0  # answers of the model

    def figures(self, records: int) -> dict[str, float]:
        """Return the figures of a line."""
        requests = self.labels + self.declined
        return {
            "error": 100 * self.wrong / max(self.labels, 1),
            "accuracy": 100 * self.right / records,
            "answers": self.answers / max(requests, 1),
            "declined": self.declined,
            "labels": self.labels,
        }


class Labeller:
    """Settles requests in one way."""

    def __init__(self, way: str, crowd: Crowd, truth: npt.NDArray[np.int32]) -> None:
        self._way, self._crowd, self._truth = way, crowd, truth
        self._model = AnnotatorModel()
        self.answers = 0

    def label(self, row: int, prior: dict[str, float]) -> Settlement:
        """Return the label of a record; prior: class shares of the tree."""
        if self._way == "truth":
            return Settlement(f"c{self._truth[row]}", 1.0, is_sure=True)
        weighting: Weighting = "quality"
        if self._way in ("single", "majority", "share", "five"):
            weighting = "share" if self._way == "share" else "majority"
        first = {"single": 1, "five": 5}.get(self._way, ANSWERS)
        most = first if self._way in ("single", "three") else 2 * first
        if self._way == "gold":
            self._ask_gold(row)
        for n in range(first, most + 1):
            answers = self._crowd.answers(row, n)
            settled = settlement(answers, weighting, self._model, prior)
            if settled.is_sure:
                break
        self.answers += len(answers)
        self._model.settle(answers, prior)
        return settled

    def _ask_gold(self, row: int) -> None:
        """Let those who answer this record answer records whose class is known, 5 % of their cards."""
        for who in self._crowd.order[row, :ANSWERS].tolist():
            other = (row * 7919 + who) % len(self._truth)
            if (row + 31 * who) % round(1 / GOLD_SHARE) == 0:
                self._model.learn_gold(
                    f"a{who:02}", f"c{self._truth[other]}", f"c{self._crowd.given[other, who]}"
                )


def played(rows: Rows, crowd: Crowd, way: str, learner: str, seed: int) -> Result:
    """Return the counts of one model over the rows, whose labels the crowd gives in one way."""
    spec = json.loads(learner) | {
        "query": STRATEGIES["ask"],
        "budget": {"name": "count", "limit": LIMIT},
        "evaluation": {"every": 0, "per_class": False},
        "seed": seed,
    }
    table = ModelTable()
    which = np.array([table.add(Model.create(Spec.parse(spec), rows.schema))], np.int64)
    labeller, result = Labeller(way, crowd, rows.y), Result()
    unlabelled, unit = np.array([NO_LABEL], np.int32), np.ones(1)
    for row in range(len(rows.y)):
        x = rows.x[row : row + 1]
        answers = table.answer(which, x, unlabelled, unit)
        result.right += int(answers.prediction[0] == rows.y[row])
        if not answers.asked[0]:
            continue
        shares = answers.probability[0].tolist()
        prior = {f"c{code}": share for code, share in enumerate(shares)} if sum(shares) > 0 else {}
        settled = labeller.label(row, prior)
        code = DECLINED if settled.label is None else int(settled.label[1:])
        result.declined += settled.label is None
        result.labels += settled.label is not None
        result.wrong += settled.label is not None and code != rows.y[row]
        decision = answers.prediction, answers.asked, answers.sampled, answers.importance
        label, weight = np.array([code], np.int32), np.array([settled.weight])
        table.learn(which, x, label, weight, *decision, answers.probability)
    result.answers = labeller.answers
    return result


def line_of(
    stream: str, way: str, runs: list[dict[str, float]], base: list[dict[str, float]]
) -> dict[str, Any]:
    """Return the means over the seeds, and the gain over the majority with its standard error."""
    line: dict[str, Any] = {"stream": stream, "way": way, "seeds": len(runs)}
    line |= {name: round(statistics.fmean(run[name] for run in runs), 3) for name in runs[0]}
    for name in ("error", "accuracy"):
        gains = [run[name] - other[name] for run, other in zip(runs, base, strict=True)]
        line[f"{name}_gain"] = round(statistics.fmean(gains), 3)
        if len(gains) > 1:
            line[f"{name}_gain_se"] = round(statistics.stdev(gains) / len(gains) ** 0.5, 3)
    return line


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return 2 for something that cannot be run."""
    options = _parser().parse_args(arguments)
    try:
        learner = learner_of(options.learner)
        ways = [way for way in WAYS if way in (*options.ways, "majority")]
        for stream in options.streams:
            runs: dict[str, list[dict[str, float]]] = {way: [] for way in ways}
            for seed in range(1, options.seeds + 1):
                rows = open_stream(stream, seed, options.records)
                crowd = Crowd.of(rows, KINDS[options.spammers], seed)
                for way in ways:
                    runs[way].append(played(rows, crowd, way, learner, seed).figures(len(rows.y)))
            for way in ways:
                line = line_of(stream, way, runs[way], runs["majority"])
                print(
                    json.dumps(line | {"spammers": options.spammers}) if options.json else _row(line),
                    flush=True,
                )
    except GroveError as error:
        print(f"python -m benchmarks.crowd: {error}", file=sys.stderr)
        return 2
    return 0


def _row(line: dict[str, Any]) -> str:
    requests = line["labels"] + line["declined"]
    gain = f"{line['accuracy_gain']:+.1f} ± {line.get('accuracy_gain_se', 0.0):.1f}"
    return (
        f"{line['stream']:12} {line['way']:9} error {line['error']:5.1f} %  "
        f"accuracy {line['accuracy']:5.1f} % ({gain})  {line['answers']:.2f} answers, "
        f"{line['declined']:.0f} of {requests:.0f} declined"
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.crowd",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_name_lists(parser, {"streams": STREAMS, "ways": WAYS})
    parser.set_defaults(streams=list(DEFAULT_STREAMS))
    parser.add_argument("--spammers", choices=list(KINDS), default="mixed")
    parser.add_argument("--learner", default="h-tree", metavar="SPEC", help="a name, or JSON as in a spec")
    parser.add_argument("--seeds", type=int, default=5, metavar="N")
    parser.add_argument("--records", type=int, default=RECORDS, metavar="N", help="at most, of each stream")
    parser.add_argument("--json", action="store_true", help="print JSON lines")
    return parser


if __name__ == "__main__":
    sys.exit(main())
