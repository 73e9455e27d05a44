"""Run size: how many records a run takes at most, found from what runs have cost (adaptive batching).

What a run costs however small it is (some hundred microseconds of Python) is shared by its records, so under
load runs grow. But a run holds the event loop, so they grow until one takes `TARGET_S` of CPU. CPU and not
time: on a busy machine smaller runs would make it busier. What a task does is a function of records and their
order, never of cuts (tests/property/test_core_batch_cuts.py): this may change with every measurement.
"""

from __future__ import annotations

from typing import Final

TARGET_S: Final = 0.016
FIRST: Final = 2000
FEWEST: Final = 100
FULL: Final = 0.9
"""Of the records that a run may have: with fewer there is no need of larger ones."""


class RunSize:
    """The records of a run at most, for all partitions of a worker."""

    def __init__(self, most: int) -> None:
        """`most`: records that a run never has more of (max.poll.records)."""
        self._most = most
        self.limit = min(FIRST, most)
        """Records of the next run, at most."""

    def note(self, records: int, seconds: float) -> None:
        """Take in that a run with so many records took so much CPU."""
        if seconds > TARGET_S:
            wanted = int(records * TARGET_S / seconds)
            self.limit = max(min(self.limit, max(wanted, self.limit // 2)), min(FEWEST, self._most))
        elif records >= FULL * self.limit and seconds < TARGET_S / 2:
            self.limit = min(2 * self.limit, self._most)
