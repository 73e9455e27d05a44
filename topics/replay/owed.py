"""Owed labels: labels of sent instances that are not due yet."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True, eq=False)
class LabelRows:
    """Labels of n rows as columns."""

    due: npt.NDArray[np.float64]  # float64[n]: place in the order of the stream (see Timeline)
    row: npt.NDArray[np.int64]
    code: npt.NDArray[np.int32]  # class
    timestamp: npt.NDArray[np.int64]  # ms; 0: time of sending

    def __len__(self) -> int:
        return len(self.row)

    def at(self, places: npt.NDArray[np.intp] | slice) -> LabelRows:
        return LabelRows(self.due[places], self.row[places], self.code[places], self.timestamp[places])

    @classmethod
    def joined(cls, pieces: Sequence[LabelRows]) -> LabelRows:
        return cls(
            np.concatenate([piece.due for piece in pieces]),
            np.concatenate([piece.row for piece in pieces]),
            np.concatenate([piece.code for piece in pieces]),
            np.concatenate([piece.timestamp for piece in pieces]),
        )

    def in_order(self) -> LabelRows:
        """Return the labels in the order in which they are due, ties by row."""
        later, same = self.due[1:] > self.due[:-1], self.due[1:] == self.due[:-1]
        if (later | same & (self.row[1:] > self.row[:-1])).all():
            return self  # a fixed delay keeps the order
        return self.at(np.lexsort((self.row, self.due)))


class OwedLabels:
    """A queue of labels by due time, kept as sorted pieces: adding and taking cost little per label."""

    def __init__(self) -> None:
        self._pieces: list[tuple[float, int, LabelRows]] = []  # heap by the first due label of each piece
        self._added = 0
        self._size = 0

    def __len__(self) -> int:
        return self._size

    @property
    def next_due(self) -> float:
        """Return when the next label is due; infinity if none is owed."""
        return self._pieces[0][0] if self._pieces else float("inf")

    def add(self, labels: LabelRows) -> None:
        if len(labels):
            self._push(labels.in_order())
            self._size += len(labels)

    def _push(self, piece: LabelRows) -> None:
        heapq.heappush(self._pieces, (float(piece.due[0]), self._added, piece))
        self._added += 1

    def take(self, until: float) -> LabelRows:
        """Remove and return the labels due at `until` or before, in order."""
        pieces = []
        while self._pieces and self.next_due <= until:
            piece = heapq.heappop(self._pieces)[2]
            cut = int(np.searchsorted(piece.due, until, side="right"))
            pieces.append(piece.at(slice(0, cut)))
            if cut < len(piece):
                self._push(piece.at(slice(cut, None)))
        if not pieces:
            empty = np.empty(0, dtype=np.int64)
            return LabelRows(np.empty(0), empty, np.empty(0, dtype=np.int32), empty)
        due = LabelRows.joined(pieces)
        self._size -= len(due)
        return due.in_order() if len(pieces) > 1 else due
