"""Label index: the label of every row of a data set, in one small array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from topics.errors import DatasetError
from topics.readers.dataset import Dataset

Codes = npt.NDArray[np.int8] | npt.NDArray[np.int16]

BATCH_ROWS = 8192
UNKNOWN = -2
NO_LABEL = -1


class LabelIndex:
    """Class codes by row number: one byte per row for up to 127 classes, two bytes for more."""

    def __init__(self, codes: Codes, classes: tuple[str, ...]) -> None:
        """Take the code of each row, -1 for no label."""
        self._codes = codes
        self.classes = classes

    @classmethod
    def read(cls, dataset: Dataset, stopped: Callable[[], bool] = lambda: False) -> LabelIndex:
        """Read a data set once and keep only its labels. Ends early, with the labels so far, when stopped."""
        pieces: list[Codes] = []
        for _, y in dataset.batches(BATCH_ROWS):
            few = y.max(initial=0) <= np.iinfo(np.int8).max
            pieces.append(y.astype(np.int8) if few else y.astype(np.int16))
            if stopped():
                break
        if not pieces:
            message = "the data set has no rows; an oracle needs labels"
            raise DatasetError(message)
        codes: Any = np.concatenate(pieces)
        return cls(codes, dataset.classes)

    def __len__(self) -> int:
        return len(self._codes)

    @property
    def nbytes(self) -> int:
        return int(self._codes.nbytes)

    def codes(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
        """Return the class of n rows, NO_LABEL for a row without label, UNKNOWN if there is no such row."""
        exists = (rows >= 0) & (rows < len(self._codes))
        codes = np.full(len(rows), UNKNOWN, dtype=np.int32)
        codes[exists] = self._codes[rows[exists]]
        return codes
