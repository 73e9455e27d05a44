"""What came back for one model, judged against the data set."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

RECENT = 1000


class Truth:
    """Class of every row of the stream: codes int32[rows] (-1 none) into `classes`."""

    def __init__(self, codes: npt.NDArray[np.int32], classes: Sequence[str]) -> None:
        self.codes = codes
        self._code_of = {name: code for code, name in enumerate(classes)}

    @property
    def rows(self) -> int:
        return len(self.codes)

    def code(self, name: str | None) -> int:
        """Code of a class name; -2 for none or an unknown one, so that it equals no row's."""
        return -2 if name is None else self._code_of.get(name, -2)


class ModelTally:
    """Answers and questions of one model; repeats (at least once) are counted once."""

    def __init__(self, truth: Truth) -> None:
        self._truth = truth
        self._answered = np.zeros(truth.rows, np.bool_)
        self._asked = np.zeros(truth.rows, np.bool_)
        self._judged = 0
        self._right = 0
        self._recent: deque[bool] = deque(maxlen=RECENT)
        self.answered = 0
        self.asked = 0
        self.drifts = 0

    def answer(self, row: int, label: str | None) -> None:
        """Take in one prediction."""
        if self._answered[row]:
            return
        self._answered[row] = True
        self.answered += 1
        wanted = int(self._truth.codes[row])
        if wanted >= 0:
            right = self._truth.code(label) == wanted
            self._judged += 1
            self._right += right
            self._recent.append(right)

    def ask(self, row: int) -> None:
        """Take in one label request."""
        if not self._asked[row]:
            self._asked[row] = True
            self.asked += 1

    @property
    def judged(self) -> tuple[int, int]:
        """Answers to rows whose class is known, and how many of them were right."""
        return self._judged, self._right

    @property
    def accuracy(self) -> float:
        return self._right / self._judged if self._judged else 0.0

    @property
    def recent_accuracy(self) -> float:
        return sum(self._recent) / len(self._recent) if self._recent else 0.0

    @property
    def complete(self) -> bool:
        return self.answered == self._truth.rows
