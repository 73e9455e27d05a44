"""Runs of a model over a stream in memory: it answers every record and learns the requested labels."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.datasets import Rows
from benchmarks.strategies.measures import NO_SETS, Measures, Sets, measures_of, sets_of
from core.errors import GroveError
from core.model.model import Model
from core.model_table import NO_LABEL, ON_REQUEST, Answers, ModelTable
from core.spec import Spec

RUN: Final = 100
"""Records that are answered between two arrivals of late labels, at most."""
OWN_DETECTORS: Final = ("arf", "efhat", "hat", "leveraging-bagging", "sgbt", "srp", "ufft")
"""Learners that react to drift themselves; the others get DDM."""

ALL_LABELS: Final = "all labels"
STRATEGIES: Final[dict[str, Any]] = {
    "random": "random",
    "always": "always",
    "fixed_uncertainty": "fixed_uncertainty",
    "variable_uncertainty": "variable_uncertainty",
    "randomised_uncertainty": "randomised_uncertainty",
    "selective_sampling": "selective_sampling",
    "split": "split",
    "conf_tree": "conf_tree",
    "split_conf_tree": "split_conf_tree",
    "rate": "rate",
    "ask": "ask",
    "ask, margin": {"name": "ask", "score": "margin"},
    "ask, leaf share": {"name": "ask", "score": "leaf_share"},
    "set_size": "set_size",
    ALL_LABELS: "always",
}
"""Query strategies as a spec writes them; the control is ``ask, leaf share``, one score for a whole leaf."""
PUBLISHING: Final = ("calibration", "conformal")
"""Parts of a spec that a learner may come with: its probabilities and sets."""


@dataclass(frozen=True)
class Setting:
    """The conditions that two strategies share when they are compared."""

    learner: str
    """A learner as a spec writes it, in JSON."""
    limit: float
    """Share of the records whose label may be requested."""
    delay: int = 0
    """Records that are answered between a request and its label."""
    loss: float = 0.0
    """Share of the records whose label never comes."""


class Outcome(NamedTuple):
    """A run: how good its answers were, and which labels it took."""

    measures: Measures
    labels: int
    """Labels that the model learned."""
    asked: float
    """Requests per record."""
    refused: float
    """Share of the records at which the budget was closed."""
    covered: bool
    """Whether the 95 % interval of ``accuracy_unbiased`` covers the accuracy over all records."""
    sets: Sets = NO_SETS


def learner_of(text: str) -> str:
    """Return a learner (a name, or JSON) as JSON with its detector; both may also come as parts of a spec.

    The parts ``calibration`` and ``conformal`` of a spec stay. Raises GroveError for a text that is no
    learner.
    """
    parsed: Any = text
    if text.lstrip().startswith(("{", '"')):
        try:
            parsed = json.loads(text)
        except ValueError as error:
            msg = f"learner={text!r} must be a name or JSON, as in a spec: {error}"
            raise GroveError(msg) from None
    body = dict(parsed) if isinstance(parsed, dict) and "learner" in parsed else {"learner": parsed}
    learner = body["learner"]
    name = learner.get("name") if isinstance(learner, dict) else learner
    spec = Spec.parse({"drift": "none" if name in OWN_DETECTORS else "ddm"} | body)
    whole = spec.to_dict()
    return json.dumps({part: whole[part] for part in ("learner", "drift", *PUBLISHING) if part in whole})


def outcome(rows: Rows, setting: Setting, strategy: str, seed: int) -> Outcome:
    """Return the results of a strategy on the rows; the seed also determines which labels are lost."""
    spec = json.loads(setting.learner) | {
        "query": STRATEGIES[strategy],
        "budget": {"name": "count", "limit": 1.0 if strategy == ALL_LABELS else setting.limit},
        "evaluation": {"every": 0},
        "seed": seed,
    }
    table = ModelTable()
    index = table.add(Model.create(Spec.parse(spec), rows.schema))
    came = rows.y.copy()
    came[np.random.default_rng(2000 + seed).random(len(came)) < setting.loss] = -1
    answers = answered(table, index, rows, came, setting.delay)
    model, measures = table.model(index), measures_of(rows.y, answers.prediction)
    summary, evaluation, n = model.summary(), model.evaluation(), len(rows.y)
    covered = evaluation.accuracy_unbiased_low <= measures.accuracy <= evaluation.accuracy_unbiased_high
    sets = sets_of(rows.y, answers.probability, answers.report)
    return Outcome(measures, summary.labels, summary.requests / n, summary.refused / n, covered, sets)


def answered(table: ModelTable, index: int, rows: Rows, came: npt.NDArray[np.int32], delay: int) -> Answers:
    """Let the model answer all rows; return the answers, without events.

    came: the labels as they arrive, int32[n], -1 for a lost label. With a delay d the label of row t is
    learned after row t + d was answered, and at most RUN rows later.
    """
    n = len(rows.y)
    models, weights = np.full(n, index), np.ones(n)
    if delay == 0:
        return table.answer(models, rows.x, came, weights, ON_REQUEST)
    answers = Answers.to(n, rows.classes, table.has_reports)
    unlabelled, learned, run = np.full(n, NO_LABEL, dtype=np.int32), 0, min(RUN, delay)
    for begin in range(0, n, run):
        part = slice(begin, min(begin + run, n))
        of_part = table.answer(models[part], rows.x[part], unlabelled[part], weights[part])
        for column in ("prediction", "probability", "asked", "sampled", "importance", "report"):
            if getattr(answers, column) is not None:
                getattr(answers, column)[part] = getattr(of_part, column)
        due = max(part.stop - delay, 0)
        places = learned + np.flatnonzero(answers.asked[learned:due] & (came[learned:due] >= 0))
        learned = due
        if len(places):
            table.learn(
                models[places],
                rows.x[places],
                came[places],
                weights[places],
                answers.prediction[places],
                answers.asked[places],
                answers.sampled[places],
                answers.importance[places],
                answers.probability[places],
                None if answers.report is None else answers.report[places],
            )
    return answers
