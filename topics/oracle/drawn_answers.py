"""Oracle answers: the label that an instance id gets, and its delay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import numpy as np
import numpy.typing as npt

from topics.draws import Draw, uniform
from topics.oracle.label_index import NO_LABEL, UNKNOWN, LabelIndex
from topics.oracle.oracle_plan import OraclePlan

NO_ROW = -1
"""Number of no row, for an id of another form."""


class Outcome(IntEnum):
    """The outcome of a request."""

    LABEL = 0
    WRONG_LABEL = 1
    DECLINED = 2
    LOST = 3
    UNKNOWN_ID = 4
    NO_LABEL = 5  # the row has no label in the data set
    FEATURES = 6  # values, or that they are unavailable


ANSWERED: Final = (Outcome.LABEL, Outcome.WRONG_LABEL, Outcome.DECLINED, Outcome.FEATURES)
"""Outcomes with an answer."""


@dataclass(frozen=True, slots=True, eq=False)
class OracleAnswers:
    """Answers to n requests as columns."""

    outcome: npt.NDArray[np.int8]  # int8[n]: Outcome
    code: npt.NDArray[np.int32]  # int32[n]: class to name; -1: none
    delay: npt.NDArray[np.float64]  # float64[n]: seconds


class Answerer:
    """Decides outcomes by row number, so that a repeated request gets the same answer."""

    def __init__(self, plan: OraclePlan, index: LabelIndex) -> None:
        self._plan = plan
        self._index = index

    def answer(self, ids: Sequence[str]) -> OracleAnswers:
        plan = self._plan
        rows = np.array([row_of(id_, plan.id_prefix) for id_ in ids], dtype=np.int64)
        places = np.where(rows != NO_ROW, rows % len(self._index), NO_ROW) if plan.loop else rows
        code = self._index.codes(places)
        outcome = np.full(len(rows), Outcome.LABEL, dtype=np.int8)

        def chosen(stream: Draw, share: float) -> npt.NDArray[np.bool_]:
            picked: npt.NDArray[np.bool_] = uniform(plan.seed, stream, rows) < share
            return picked

        wrong = chosen(Draw.ANSWER_WRONG, plan.error_rate) & (code >= 0)
        classes = len(self._index.classes)
        if classes > 1:
            other = (uniform(plan.seed, Draw.ANSWER_CLASS, rows) * (classes - 1)).astype(np.int32)
            other += other >= code  # every class but the true one
            code = np.where(wrong, other, code)
            outcome[wrong] = Outcome.WRONG_LABEL
        declined = chosen(Draw.ANSWER_DECLINED, plan.declined)
        outcome[declined] = Outcome.DECLINED
        outcome[chosen(Draw.ANSWER_LOST, plan.loss)] = Outcome.LOST
        outcome[code == NO_LABEL] = Outcome.NO_LABEL
        outcome[code == UNKNOWN] = Outcome.UNKNOWN_ID
        code = np.where(outcome <= Outcome.WRONG_LABEL, code, np.int32(NO_LABEL))
        return OracleAnswers(outcome, code, plan.delay.draw(plan.seed, Draw.ANSWER_DELAY, rows))


def row_of(instance_id: str, prefix: str) -> int:
    """Return the row number in an instance id, NO_ROW if the id has another form."""
    number = instance_id.removeprefix(prefix)
    ours = len(number) < len(instance_id) or not prefix
    if not ours or not number.isascii() or not number.isdecimal() or len(number) > 18:
        return NO_ROW
    return int(number)
