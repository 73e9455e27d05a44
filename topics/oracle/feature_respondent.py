"""Features: the respondent to feature requests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from topics.codecs import decode_feature_requests, encode_feature_values
from topics.columns.records import FeatureRequest, Floats, Malformed
from topics.definitions import TopicNames
from topics.draws import Draw, uniform
from topics.errors import DatasetError
from topics.oracle.drawn_answers import Outcome, row_of
from topics.oracle.oracle_plan import OraclePlan
from topics.oracle.respondent import Decision
from topics.readers.dataset import Dataset

NO_SUCH: Final = "the data set has no such feature"
MISSING: Final = "missing in the data set"
REFUSED: Final = "not available"


class FeatureRespondent:
    """Answers with the values of a row; the values are kept in memory, 8 bytes each.

    Whether a value is available is drawn by row and feature, so a repeated request gets the same answer. Loss
    and delay are drawn by row and the first requested feature.
    """

    def __init__(self, plan: OraclePlan) -> None:
        self._plan = plan

    def topics(self, names: TopicNames) -> tuple[str, str]:
        return names.feature_requests, names.feature_values

    def read(self, dataset: Dataset, stopped: Callable[[], bool]) -> None:
        pieces: list[Floats] = []
        for x, _ in dataset.batches():
            pieces.append(x)
            if stopped():
                break
        if not pieces:
            message = "the data set has no rows; an oracle needs their features"
            raise DatasetError(message)
        self._x = np.concatenate(pieces)
        self._column = {name: column for column, name in enumerate(dataset.names)}
        self._values = tuple(
            values if kind == "nominal" else None
            for kind, values in zip(dataset.kinds, dataset.values, strict=True)
        )

    def decide(self, values: Sequence[bytes]) -> list[Decision | None]:
        return [
            None if isinstance(request, Malformed) else self._decide(request)
            for request in decode_feature_requests(values)
        ]

    def _decide(self, request: FeatureRequest) -> Decision:
        plan, name = self._plan, request.instance_id
        row = row_of(name, plan.id_prefix)
        place = row % len(self._x) if plan.loop and row >= 0 else row
        if not 0 <= place < len(self._x):
            return Decision(name, Outcome.UNKNOWN_ID, None, 0.0)
        columns = [self._column.get(feature, -1) for feature in request.features]
        draw = np.array([row * len(self._column) + max(columns[:1], default=0)], dtype=np.int64)
        if uniform(plan.seed, Draw.FEATURES_LOST, draw)[0] < plan.loss:
            return Decision(name, Outcome.LOST, None, 0.0)
        cells: dict[str, float | str] = {}
        unavailable: dict[str, str | None] = {}
        for feature, column in zip(request.features, columns, strict=True):
            cell = self._cell(row, place, column)
            if isinstance(cell, Unavailable):
                unavailable[feature] = str(cell)
            else:
                cells[feature] = cell
        (value,) = encode_feature_values([name], [cells], [unavailable])
        delay = float(plan.delay.draw(plan.seed, Draw.FEATURES_DELAY, draw)[0])
        return Decision(name, Outcome.FEATURES, value, delay, len(cells), len(unavailable))

    def _cell(self, row: int, place: int, column: int) -> float | str | Unavailable:
        """Return the value of a feature of a row, or why it is unavailable."""
        if column < 0:
            return Unavailable(NO_SUCH)
        value, names = float(self._x[place, column]), self._values[column]
        if np.isnan(value):
            return Unavailable(MISSING)
        draw = np.array([row * len(self._column) + column], dtype=np.int64)
        if uniform(self._plan.seed, Draw.FEATURE_UNAVAILABLE, draw)[0] < self._plan.unavailable:
            return Unavailable(REFUSED)
        return value if names is None else names[int(value)]


class Unavailable(str):
    """The reason why a feature is unavailable."""

    __slots__ = ()
