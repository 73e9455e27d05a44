"""Pool survey: answers, places and scores of many records of one model, none of which is counted.

In a pool all records are known and the labels are not. Before each label, the survey finds where each record
ends and how useful its label would be (streamapp/lab/pool). The model is read only: no byte of it changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from core import registry, run
from core.active.label_query import uncertainty
from core.active.queries import base as queries
from core.active.queries.rate import score_of
from core.kernels.jit import kernel, row_of, words_at
from core.kernels.records import Words
from core.layout.learning import Row
from core.layout.plan import PlanRecord
from core.learners.protocol import workspace_of
from core.model.model import Model
from core.model.prediction import preparation
from core.tree import layout as at
from core.tree.byoffset.columns import gather
from core.tree.byoffset.statistics import known_classes
from core.tree.layout import Floats, Ints

COLUMNS: Final = at.SHARE | at.LEAD | at.WEIGHT


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
    found = Survey(np.full(n, -1, dtype=np.int32), np.zeros(n, dtype=np.int64), np.zeros(n))
    kind = -1 if scored is None else registry.kind("queries", scored)
    where = np.array([model.address, model.plan.address, 0, kind], dtype=np.int64)
    workspace = workspace_of(x.shape[1], k)
    shares = np.zeros((1, k))
    prepared = None  # kept alive here: the kernel gets its address
    while look_at(where, x, found.prediction, found.place, found.score, shares, workspace):
        prepared = preparation(model.plan, model.ints)
        where[PREPARED] = prepared.ctypes.data
    return found


ADDRESS: Final = 0
PLAN: Final = 1
PREPARED: Final = 2
SCORED: Final = 3


@kernel(
    "boolean(int64[::1], float64[:, ::1], int32[::1], int64[::1], float64[::1], float64[:, ::1],"
    " float64[:, ::1])",
    alone=True,
)
def look_at(where, x, prediction, place, score, shares, workspace) -> bool:
    """Write answer, place and score of each record; return whether the block has to be prepared first.

    where: int64[4]: address of the model and of its plan, the result of BlockLayout.prepare, and the kind of
    the strategy whose score is computed, -1: none.
    """
    ints, floats = words_at(where[ADDRESS])
    plan, params = words_at(where[PLAN])
    columns, scratch = row_of(workspace, 0), row_of(workspace, 1)
    votes = row_of(shares, 0)
    kind, t = plan[at.PLAN_LEARNER], ints[at.MODEL_FIRST]
    for row in range(len(x)):
        record = row_of(x, row)
        xs = gather(plan, record, columns)
        shares[0, :] = 0.0
        nothing: Any = np.int64(-1)
        best, end, _ = run.answer(
            kind,
            PlanRecord(plan, params, 0),
            Words(ints, floats, t),
            nothing,
            Row(record, xs, -1, 1.0),
            where[PREPARED],
            scratch,
            votes,
        )
        if end < 0:
            return True
        prediction[row], place[row] = best, end
        if where[SCORED] >= 0:
            share, lead, weight = uncertainty(
                kind, PlanRecord(plan, params, 0), Words(ints, floats, t), end, votes, scratch, COLUMNS
            )
            score[row] = score_of(
                where[SCORED],
                queries.Uncertainty(share, lead, weight, known_classes(ints), ints[at.MODEL_LABELS] + 1),
            )
    return False
