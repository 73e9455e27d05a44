"""Run size: how many records a run takes at most, found from what runs have cost (adaptive batching).

What a run costs however small it is (some hundred microseconds of Python) is shared by its records, so under
load runs grow. But a run holds the event loop, so they grow until one takes `TARGET_S` of CPU. CPU and not
time: on a busy machine smaller runs would make it busier. One that is a little too long halves them at most,
for the next may be as cheap as those before; one that has held up the others is not tried again.

What a task does is a function of records and their order, never of cuts
(tests/property/test_core_batch_cuts.py): this may change with every measurement.
"""

from __future__ import annotations

from typing import Final

TARGET_S: Final = 0.016
FIRST: Final = 2000
FEWEST: Final = 8
"""Of some milliseconds each: what a run costs beside them is little then."""
SLOW_S: Final = 0.1
"""So long no run may hold up the others."""
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
            least = self.limit // 2 if seconds <= SLOW_S else 0
            self.limit = max(min(self.limit, max(wanted, least)), min(FEWEST, self._most))
        elif records >= FULL * self.limit and seconds < TARGET_S / 2:
            self.limit = min(2 * self.limit, self._most)
