"""Demo tally: the results of one model, compared with the data set.

The stream is divided into fifths: the gain in accuracy from the first to the last fifth shows what was
learned.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from topics.columns.records import Acquired

PARTS = 5


class Truth:
    """Class of every row of the stream: codes int32[rows] (-1 none) into `classes`; and the schema."""

    def __init__(
        self,
        codes: npt.NDArray[np.int32],
        classes: Sequence[str],
        schema: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self.codes = codes
        self.schema = schema
        self._code_of = {name: code for code, name in enumerate(classes)}

    @property
    def rows(self) -> int:
        return len(self.codes)

    @property
    def features(self) -> int:
        """Number of features of a row."""
        return len(self.schema.get("attributes", ()))

    @property
    def fifth(self) -> int:
        return max(1, self.rows // PARTS)

    def base_rate(self, rows: slice = slice(None)) -> float:
        """Accuracy of a model that always answers the most frequent class."""
        labelled = self.codes[self.codes >= 0]
        judged = self.codes[rows]
        judged = judged[judged >= 0]
        return float((judged == np.bincount(labelled).argmax()).mean()) if len(judged) else 0.0

    def code(self, name: str | None) -> int:
        """Code of a class name; -2 for none or an unknown class, which equals no row's code."""
        return -2 if name is None else self._code_of.get(name, -2)


class ModelTally:
    """Answers and requests of one model; repeated records (at-least-once delivery) are counted once."""

    def __init__(self, truth: Truth) -> None:
        self._truth = truth
        self._answered = np.zeros(truth.rows, np.bool_)
        self._asked = np.zeros(truth.rows, np.bool_)
        self._evaluated = 0
        self._right = 0
        self._first: list[bool] = []
        self._last: deque[bool] = deque(maxlen=truth.fifth)
        self.answered = 0
        self.untrained = 0
        self.asked = 0
        self.drifts = 0
        self._feature_requests: set[str] = set()
        self.features_requested = 0
        self.bought = 0
        self.cost = 0.0

    def answer(self, row: int, label: str | None, version: int, acquired: Acquired | None = None) -> None:
        """Count the answer to a row.

        Answers of a model that has learned no label (version 0) are counted as ``untrained``, not as right or
        wrong: their number depends on how fast the first labels come back, not on the model.
        """
        if self._answered[row]:
            return
        if acquired is not None:
            self.bought += len(acquired.features)
            self.cost += acquired.cost
        self._answered[row] = True
        self.answered += 1
        if version == 0:
            self.untrained += 1
            return
        truth = int(self._truth.codes[row])
        if truth >= 0:
            right = self._truth.code(label) == truth
            self._evaluated += 1
            self._right += right
            self._last.append(right)
            if len(self._first) < self._truth.fifth:
                self._first.append(right)

    def ask(self, row: int) -> None:
        """Count one label request."""
        if not self._asked[row]:
            self._asked[row] = True
            self.asked += 1

    def ask_features(self, request_id: str, n: int) -> None:
        """Count one request for n features."""
        if request_id not in self._feature_requests:
            self._feature_requests.add(request_id)
            self.features_requested += n

    @property
    def evaluated(self) -> tuple[int, int]:
        """Number of trained answers to rows whose class is known, and how many of them were right."""
        return self._evaluated, self._right

    @property
    def accuracy(self) -> float:
        return self._right / self._evaluated if self._evaluated else 0.0

    @property
    def first_accuracy(self) -> float:
        return sum(self._first) / len(self._first) if self._first else 0.0

    @property
    def last_accuracy(self) -> float:
        """Accuracy over the latest answers, a fifth of the stream: in the end, its last fifth."""
        return sum(self._last) / len(self._last) if self._last else 0.0

    @property
    def complete(self) -> bool:
        return self.answered == self._truth.rows
