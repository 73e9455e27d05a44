"""Replay timeline: the place of a label in the stream, and the timestamps of records.

Every row has a place in the order of sending. The place of a label is the place of its row plus its delay,
and the label is sent after the last row whose place is not greater. The unit of places follows from the plan:

- delay in records: the number of the row;
- delay in seconds, own event time: milliseconds of event time (without waiting: an hour may be replayed in a
  second);
- delay in seconds, time of sending: seconds since the start. Only here a label may be due between rows.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from topics.draws import Draw, uniform
from topics.replay.owed import LabelRows
from topics.replay.replay_plan import ReplayPlan

Rows = npt.NDArray[np.int64]


class Timeline:
    """Places and timestamps of rows and labels."""

    def __init__(self, plan: ReplayPlan) -> None:
        self._plan = plan
        self.on_the_clock = plan.label_delay.unit == "seconds" and plan.start_ms is None

    def scheduled(self, row: int) -> float:
        """Return when a row is to be sent, in seconds since the start; -infinity for as fast as possible."""
        rate = self._plan.rate
        return -np.inf if rate is None else (row - self._plan.from_row) / rate

    def places(self, rows: Rows, elapsed: float) -> npt.NDArray[np.float64]:
        """Return the places of n rows, sent `elapsed` seconds after the start: float64[n], ascending."""
        if self._plan.label_delay.unit == "records":
            return rows.astype(np.float64)
        if self._plan.start_ms is not None:
            return self._plan.start_ms + rows.astype(np.float64) * self._plan.step_ms
        if self._plan.rate is None:
            return np.full(len(rows), elapsed)
        return (rows - self._plan.from_row).astype(np.float64) / self._plan.rate

    def timestamps(self, rows: Rows) -> Rows:
        """Return the timestamps of n rows in ms, 0 for the time of sending: int64[n]."""
        if self._plan.start_ms is None:
            return np.zeros(len(rows), dtype=np.int64)
        return self._event_time(rows.astype(np.float64))

    def _event_time(self, rows: npt.NDArray[np.float64]) -> Rows:
        assert self._plan.start_ms is not None
        return (self._plan.start_ms + np.floor(rows * self._plan.step_ms)).astype(np.int64)

    def labels(self, rows: Rows, codes: npt.NDArray[np.int32], elapsed: float) -> LabelRows:
        """Return the labels of n rows, without rows of code -1 (no label, or lost)."""
        plan = self._plan
        delay = plan.label_delay.draw(plan.seed, Draw.LABEL_DELAY, rows)
        places = self.places(rows, elapsed)
        if plan.start_ms is None:
            due, timestamps = places + delay, np.zeros(len(rows), dtype=np.int64)
        elif plan.label_delay.unit == "records":
            due, timestamps = places + delay, self._event_time(rows + delay)
        else:
            due = places + 1000 * delay
            timestamps = np.floor(due).astype(np.int64)
        labels = LabelRows(due, rows, codes, timestamps)
        return labels.at(np.flatnonzero(codes >= 0))

    def surviving(self, rows: Rows, codes: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        """Return the class codes, int32[n], with -1 in place of lost labels."""
        if not self._plan.label_loss:
            return codes
        lost = uniform(self._plan.seed, Draw.LABEL_LOST, rows) < self._plan.label_loss
        return np.where(lost, np.int32(-1), codes)
