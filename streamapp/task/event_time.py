"""Event time of a partition: the highest record timestamp seen, guarded against a clock gone wrong.

Nothing in a task reads the wall clock, so that a replay sees the same time as the first run. One record
with a timestamp far ahead (a device that thinks it is 2099) must not expire everything that waits for a
label, so a jump of more than `event.time.max.jump.ms` moves the clock only when the record after it jumps
as well: time did move on then, and the smaller of the two timestamps is believed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Ints64 = npt.NDArray[np.int64]


class RunTime:
    """The clock at each record of one run."""

    __slots__ = ("_before", "_clocks", "_timestamps", "last")

    def __init__(self, timestamps: Sequence[int], before: int, last: int, clocks: Ints64 | None) -> None:
        """`before`: the clock before the run; `clocks`: int64[n], or None where no record jumped."""
        self._timestamps = timestamps
        self._before = before
        self._clocks = clocks
        self.last = last  # the clock after the run

    @property
    def first(self) -> int:
        """The clock at the first record of the run."""
        return max(self._timestamps[0], self._before) if self._clocks is None else int(self._clocks[0])

    def clocks(self) -> Ints64:
        """Return int64[n]: the clock once each record was seen. Only runs that keep something need it."""
        if self._clocks is None:
            timestamps = np.array(self._timestamps, dtype=np.int64)
            self._clocks = np.maximum(np.maximum.accumulate(timestamps), self._before)
        return self._clocks


class EventTime:
    """The clock of one partition."""

    __slots__ = ("_max_jump_ms", "_suspect", "clock", "jumps")

    def __init__(self, max_jump_ms: int) -> None:
        self._max_jump_ms = max_jump_ms
        self._suspect: int | None = (
            None  # the timestamp of the record before, if it jumped and was not believed
        )
        self.clock: int | None = None  # ms since the epoch; None before the first record
        self.jumps = 0  # timestamps that were not believed at first sight

    def state(self) -> tuple[int | None, int | None, int]:
        """Return what `restore` takes back."""
        return self._suspect, self.clock, self.jumps

    def restore(self, state: tuple[int | None, int | None, int]) -> None:
        """Go back to an earlier `state`."""
        self._suspect, self.clock, self.jumps = state

    def advance(self, timestamps: Sequence[int]) -> RunTime:
        """Move the clock over the records of a run (at least one) and return what it showed at each."""
        before, highest = self.clock, max(timestamps)
        if before is not None and highest - before <= self._max_jump_ms:
            self._suspect = None
            self.clock = max(before, highest)
            return RunTime(timestamps, before, self.clock, None)
        clocks = np.array([self._see(timestamp) for timestamp in timestamps], dtype=np.int64)
        return RunTime(timestamps, int(clocks[0]), int(clocks[-1]), clocks)

    def _see(self, timestamp: int) -> int:
        suspect, self._suspect = self._suspect, None
        clock = timestamp if self.clock is None else self.clock
        if timestamp - clock > self._max_jump_ms:
            clock = self._jump(clock, timestamp, suspect)
        self.clock = max(clock, timestamp) if self._suspect is None else clock
        return self.clock

    def _jump(self, clock: int, timestamp: int, suspect: int | None) -> int:
        """Return where the clock goes when `timestamp` is too far ahead; what is doubted is the suspect."""
        if suspect is None:
            self.jumps += 1
            self._suspect = timestamp
            return clock
        clock = min(suspect, timestamp)
        if max(suspect, timestamp) - clock > self._max_jump_ms:
            self.jumps += timestamp > suspect
            self._suspect = max(suspect, timestamp)
        return clock
