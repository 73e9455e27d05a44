"""Fetch times: when the records of a run were taken from the fetched batches."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from typing import Final, NamedTuple

from streamapp.worker.transport.runs import FetchedColumns, Run

TopicPartition = tuple[str, int]

MAX_FETCHES: Final = 256
"""Fetches of a topic partition that are remembered: its read-ahead is a few of them."""


class FetchTime(NamedTuple):
    """One fetch, in ns since the epoch."""

    began: int
    ended: int


class FetchTimes:
    """The fetches whose records may be waiting for their turn."""

    def __init__(self) -> None:
        self._fetches: dict[TopicPartition, deque[tuple[int, FetchTime]]] = {}

    def note(self, columns: Mapping[TopicPartition, FetchedColumns], began: float) -> None:
        """Note a fetch that is over; `began`: on the clock of `time.monotonic`."""
        if not columns:
            return
        ended = time.time_ns()
        fetch = FetchTime(ended - int((time.monotonic() - began) * 1e9), ended)
        for place, fetched in columns.items():
            fetches = self._fetches.setdefault((place[0], place[1]), deque(maxlen=MAX_FETCHES))
            if fetches and fetched.position <= fetches[-1][0]:  # the partition was sought back
                fetches.clear()
            fetches.append((fetched.position, fetch))

    def of(self, run: Run) -> FetchTime | None:
        """Return the fetch of a run's first record; None if it is not known any more."""
        fetches = self._fetches.get((run.topic, run.raw.partition))
        while fetches and fetches[0][0] <= run.raw.offsets[0]:
            fetches.popleft()
        return fetches[0][1] if fetches else None
