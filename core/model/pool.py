"""Pool survey: answers, places and scores of many records of one model, none of which is counted.

In a pool all records are known and the labels are not. Before each label, the survey finds where each record
ends and how useful its label would be (streamapp/lab/pool). The model is read only: no byte of it changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from core import registry, run
from core.active.label_query import uncertainty_of
from core.active.queries.rate import score_of
from core.kernels.jit import kernel, row_of, words_at
from core.kernels.records import Record, word
from core.layout.learning import LEAD, NO_CLASS, SHARE, WEIGHT, Row
from core.layout.model import Floats, Ints, ModelHeader
from core.layout.plan import plan_at
from core.learners.protocol import workspace_of
from core.model.model import Model
from core.model.prediction import preparation
from core.tree.columns import gather

COLUMNS: Final = SHARE | LEAD | WEIGHT


@dataclass(frozen=True, slots=True)
class Survey:
    """A model's answers for records; columns by row."""

    prediction: npt.NDArray[np.int32]
    """Class code, -1 while the model has learned no class."""
    place: Ints
    """Where the record ends in the block that answers (core/learners/protocol.py); in a tree, its leaf."""
    score: Floats
    """Usefulness of the label by the strategy's ``score``; zeros without a strategy."""


def survey(model: Model, x: Floats, scored: str | None = None) -> Survey:
    """Return a model's answers for the rows of x (float64[n, d], C order).

    scored: a strategy that has a ``score`` (core/active/queries/base.py), or None.
    """
    n, k = len(x), max(model.schema.n_classes, 1)
    answers = Survey(np.full(n, NO_CLASS, dtype=np.int32), np.zeros(n, dtype=np.int64), np.zeros(n))
    kind = -1 if scored is None else registry.kind("queries", scored)
    surveyed = Surveyed.over(np.array([model.address, model.plan.address, 0, kind], dtype=np.int64))
    workspace = workspace_of(x.shape[1], k)
    shares = np.zeros((1, k))
    prepared = None  # kept alive here: the kernel gets its address
    while look_at(surveyed, x, answers.prediction, answers.place, answers.score, shares, workspace):
        prepared = preparation(model.plan, model.ints)
        surveyed.prepared = prepared.ctypes.data
    return answers


class Surveyed(Record):
    """A model in a survey."""

    model: int = word("address of the model")
    plan: int = word("address of its plan")
    prepared: int = word("address of the result of BlockLayout.prepare, 0: not computed yet")
    scorer: int = word("kind of the strategy whose score is computed, -1: none")


@kernel(
    "boolean(Surveyed, float64[:, ::1], int32[::1], int64[::1], float64[::1], float64[:, ::1],"
    " float64[:, ::1])",
    alone=True,
)
def look_at(surveyed: Surveyed, x, prediction, place, score, shares, workspace) -> bool:
    """Write answer, place and score of each record; return whether the block has to be prepared first."""
    ints, floats = words_at(surveyed.model)
    model, plan = ModelHeader(ints, floats, 0), plan_at(surveyed.plan)
    columns, scratch, votes = row_of(workspace, 0), row_of(workspace, 1), row_of(shares, 0)
    for row in range(len(x)):
        record = row_of(x, row)
        shares[0, :] = 0.0
        unlabelled = Row(record, gather(plan, record, columns), -1, 1.0)
        best, end, _ = run.answer(
            plan.learner, plan, model.block(0), run.NOTHING, unlabelled, surveyed.prepared, scratch, votes
        )
        if end < 0:
            return True
        prediction[row], place[row] = best, end
        if surveyed.scorer >= 0:
            doubt = uncertainty_of(plan, model, end, votes, scratch, COLUMNS | plan.columns, model.labels + 1)
            score[row] = score_of(surveyed.scorer, doubt)
    return False
