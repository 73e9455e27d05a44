"""Parts of a run: where a run is cut by ticks, and how.

At ticks of event time expired requests are closed in their models, whose budgets may spend them again. A run
is cut at every tick inside it, so that a record sees the same label account in whatever runs the records
come. It is cut at a record where the clock goes back, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from streamapp.task.pending.event_time import RunTime
from streamapp.task.pending.pending import Pending
from topics.records import RawRecords


def ticks(pending: Pending, time: RunTime) -> list[int]:
    """Return where the parts of a run begin: 0, each record that is the first one after a tick, and each that
    turns the clock back."""
    if time.ascends and pending.tick_of(time.first) == pending.tick_of(time.last):
        return [0]
    clocks = time.clocks()
    number = np.array([pending.tick_of(clock) for clock in clocks.tolist()])
    return [0, *(np.flatnonzero((np.diff(number) != 0) | (np.diff(clocks) < 0)) + 1).tolist()]


def parts(raw: RawRecords, starts: Sequence[int]) -> Iterator[tuple[int, RawRecords]]:
    """Yield the parts of a run that begin at `starts` (ascending, the first is 0), each with its start."""
    for start, stop in zip(starts, [*starts[1:], len(raw)], strict=True):
        cut = slice(start, stop)
        part = replace(
            raw,
            offsets=raw.offsets[cut],
            timestamps=raw.timestamps[cut],
            keys=raw.keys[cut],
            values=raw.values[cut],
            headers=raw.headers[cut],
        )
        yield start, part
