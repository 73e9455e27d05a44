"""Run size: the largest number of records in a run, adapted to the cost of runs (adaptive batching).

The fixed cost of a run (a few hundred microseconds of Python) is shared by its records, so runs grow under
load. But a run holds the event loop, so they grow only until one takes `TARGET_S` of CPU time. Elapsed time
would be wrong: on a busy machine smaller runs would make it busier. A run that is a little too long at most
halves the size, because the next may be as cheap as earlier runs. A size that has held up other partitions is
not tried again.

A task's results are a function of records and their order, never of cuts
(tests/property/test_core_batch_cuts.py): so the size may change with every measurement.
"""

from __future__ import annotations

from typing import Final

TARGET_S: Final = 0.016
FIRST: Final = 2000
FEWEST: Final = 8
"""Fewest records of a run. If each takes milliseconds, the fixed cost of a run is small in comparison."""
SLOW_S: Final = 0.1
"""No run may hold up other partitions this long."""
FULL: Final = 0.9
"""Share of the allowed records from which a run counts as full: below it larger runs are not needed."""


class RunSize:
    """The most records of a run, for all partitions of a worker."""

    def __init__(self, most: int) -> None:
        """`most`: upper bound of the size (max.poll.records)."""
        self._most = most
        self.limit = min(FIRST, most)
        """Most records of the next run."""

    def note(self, records: int, seconds: float) -> None:
        """Take note that a run of `records` records took `seconds` of CPU time."""
        if seconds > TARGET_S:
            aim = int(records * TARGET_S / seconds)
            least = self.limit // 2 if seconds <= SLOW_S else 0
            self.limit = max(min(self.limit, max(aim, least)), min(FEWEST, self._most))
        elif records >= FULL * self.limit and seconds < TARGET_S / 2:
            self.limit = min(2 * self.limit, self._most)
