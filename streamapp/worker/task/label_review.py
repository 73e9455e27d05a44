"""Label review: an observer of a task's answers and labels, which may decide otherwise about labels.

A worker has none. `grove whatif` compares two tasks with it: a logged task, and an alternative task that
requests the same labels or other labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from streamapp.worker.task.effects.replies import Replies
from streamapp.worker.task.pending.name_columns import Names
from topics.columns.records import Instances, Ints32, Ints64, Labels, RawRecords

Mask = npt.NDArray[np.bool_]


class ReviewedRun(Protocol):
    """A run of n instances that have been answered; their labels are not requested yet."""

    raw: RawRecords
    batch: Instances
    replies: Replies
    model: Ints64  # int64[n]
    label: Ints32  # int32[n] into `label_values`: labels that came with the rows or before them; -1: none

    @property
    def label_values(self) -> Sequence[str]:
        """Class names."""

    @property
    def labelled(self) -> Mask:
        """bool[n]: rows whose label was learned at once."""

    @property
    def names(self) -> Names:
        """Model key and id of each row."""

    @property
    def clocks(self) -> Ints64:
        """int64[n]: the clock at each row."""


class LabelReview(Protocol):
    """Receives answers before their labels are requested, and labels before they are learned."""

    def answered(self, run: ReviewedRun) -> None:
        """Receive a run; `asked`, `sampled` and `importance` of its replies may be changed."""

    def arrived(self, labels: Labels) -> Labels:
        """Return the labels that the task is to process."""
