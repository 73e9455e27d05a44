"""Event time of a partition: the highest record timestamp that is believed.

Nothing in a task reads the wall clock, so that a replay sees the same time as the first run. A device that
thinks it is 2099 must not expire everything that waits for a label, so no single record is believed alone.
With J = `event.time.max.jump.ms`:

*Forward.* A record more than J ahead of the clock moves it only when the record after it is as far ahead:
time did move on then. If those two disagree by more than J, the smaller is believed, and the larger stays in
doubt.

*Back.* A clock that has just begun (at the first record of all) or just jumped is itself in doubt, until
`TRUSTED` records have agreed with it: they were at most J older than the clock. If, before that, the number
of consecutive records more than J older than the clock reaches the number that agreed with it, these records
are believed instead: the clock goes back to the highest of them, and waiting times are counted from there. A
clock that is trusted never goes back: a backfill of old records does not turn it.

*Without a time.* A record may have none (Kafka's -1). It never moves the clock, and has no effect on other
records. Before the first record with a time the clock shows -1; items that wait by then are counted from that
first time on.

The rule counts records in their order, so it does not matter how they are cut into runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from topics.columns.spans import Numbers

Ints64 = npt.NDArray[np.int64]

TRUSTED: Final = 100
"""Records that have to agree with a clock before it can no longer go back."""


NO_TIME: Final = -1
"""The clock before the first record with a time."""


class ClockState(NamedTuple):
    """The state that a clock keeps from record to record."""

    clock: int | None  # ms since the epoch; None before the first record that has a time
    suspect: int | None  # the timestamp of the previous record, if it jumped and was not believed
    agreed: int  # records that agreed with the clock since it began or jumped; counted up to TRUSTED
    behind: int  # records in a row, up to the last one, more than J older than a clock in doubt
    behind_at: int  # the highest timestamp of those
    jumps: int  # timestamps not believed, at once or because of later records


class RunTime:
    """The clock at each record of one run."""

    __slots__ = ("_before", "_clocks", "_timestamps", "begins", "first", "last", "turned_back")

    def __init__(
        self,
        timestamps: Sequence[int],
        before: int | None,
        last: int,
        clocks: Ints64 | None,
        first: int | None = None,
    ) -> None:
        """`before`: the clock before the run; `clocks`: int64[n], or None if it is the highest timestamp;
        `first`: the first timestamp, None: it has not been read yet.
        """
        self._timestamps = timestamps
        self._before = before
        self._clocks = clocks
        self.first = self._at_first() if first is None or before is None else max(first, before)
        """The clock at the first record."""
        self.last = last  # the clock after the run
        self.turned_back = before is not None and self.first < before  # by the first record of the run
        self.begins = before is None and self.first > NO_TIME  # with the first record of the run

    def _at_first(self) -> int:
        if self._clocks is not None:
            return int(self._clocks[0])
        assert self._before is not None
        return max(self._timestamps[0], self._before)

    @property
    def ascends(self) -> bool:
        """Whether it is known that the clock does not go back within the run."""
        return self._clocks is None

    def clocks(self) -> Ints64:
        """Return int64[n]: the clock after each record. Only runs that keep something need it."""
        if self._clocks is None:
            assert self._before is not None
            timestamps = np.array(self._timestamps, dtype=np.int64)
            self._clocks = np.maximum(np.maximum.accumulate(timestamps), self._before)
        return self._clocks


class EventTime:
    """The clock of one partition."""

    __slots__ = ("_agreed", "_behind", "_behind_at", "_marked", "_max_jump_ms", "_suspect", "clock", "jumps")

    def __init__(self, max_jump_ms: int) -> None:
        self._max_jump_ms = max_jump_ms
        self.restore(ClockState(None, None, 0, 0, 0, 0))
        self.mark()

    def configure(self, max_jump_ms: int) -> None:
        """Change the largest jump that is believed at once."""
        self._max_jump_ms = max_jump_ms

    def state(self) -> ClockState:
        """Return a state for `restore`."""
        return ClockState(self.clock, self._suspect, self._agreed, self._behind, self._behind_at, self.jumps)

    def restore(self, state: ClockState) -> None:
        """Go back to an earlier `state`."""
        self.clock: int | None
        self.clock, self._suspect, self._agreed, self._behind, self._behind_at, self.jumps = state

    def mark(self) -> None:
        """Note the state, to which `rollback` goes back."""
        self._marked = self.clock, self._suspect, self._agreed, self._behind, self._behind_at, self.jumps

    def rollback(self) -> None:
        """Go back to the state of the last `mark`."""
        self.restore(ClockState(*self._marked))

    def advance(self, timestamps: Sequence[int]) -> RunTime:
        """Move the clock over the records of a run (at least one) and return the clock at each."""
        before, highest = self.clock, _highest(timestamps)
        if before is not None and self.ascend(highest):
            return RunTime(timestamps, before, self.now, None)
        clocks = np.array([self._see(timestamp) for timestamp in timestamps], dtype=np.int64)
        return RunTime(timestamps, before, int(clocks[-1]), clocks)

    @property
    def now(self) -> int:
        """The clock, which has begun."""
        assert self.clock is not None
        return self.clock

    def ascend(self, highest: int) -> bool:
        """Move the clock over records up to their highest timestamp.

        Return False, and leave it, if it may go back, or does not believe such a timestamp at once.
        """
        clock = self.clock
        if clock is None or self._agreed < TRUSTED or highest - clock > self._max_jump_ms:
            return False
        if highest > NO_TIME:
            self._suspect = None
            self.clock = max(clock, highest)
        return True

    def follow(self, timestamps: Sequence[int]) -> RunTime | None:
        """Move the clock over the records of a run.

        None: the clock begins or goes back in the run, or a timestamp is not believed; it may have moved.
        """
        if self.clock is None:
            return None
        jumps = self.jumps
        time = self.advance(timestamps)
        clocks = time.clocks()
        is_steady = self.jumps == jumps and not time.turned_back and not np.count_nonzero(np.diff(clocks) < 0)
        return time if is_steady else None

    def _see(self, timestamp: int) -> int:
        """Move the clock by a record; return it."""
        if timestamp <= NO_TIME:
            return NO_TIME if self.clock is None else self.clock
        suspect, self._suspect = self._suspect, None
        if self.clock is None:
            self.clock, self._agreed = timestamp, 1
        elif timestamp - self.clock > self._max_jump_ms:
            self._jump(timestamp, suspect)
        elif self.clock - timestamp > self._max_jump_ms:
            self._fall_behind(timestamp)
        else:
            self.clock = max(self.clock, timestamp)
            self._agreed = min(self._agreed + 1, TRUSTED)
            self._behind = 0
        return self.clock

    def _jump(self, timestamp: int, suspect: int | None) -> None:
        """Doubt a timestamp too far ahead, or believe it if the previous record was as far ahead."""
        self._behind = 0
        if suspect is None:
            self.jumps += 1
            self._suspect = timestamp
            return
        if abs(timestamp - suspect) <= self._max_jump_ms:
            self.clock, self._agreed = timestamp, 2
            return
        self.clock, self._suspect, self._agreed = min(suspect, timestamp), max(suspect, timestamp), 1
        self.jumps += timestamp > suspect  # a larger suspect is counted already

    def _fall_behind(self, timestamp: int) -> None:
        """Note a timestamp too far back; go back if there are as many in a row as records that agreed."""
        if self._agreed >= TRUSTED:
            return
        self._behind_at = max(self._behind_at, timestamp) if self._behind else timestamp
        self._behind += 1
        if self._behind == self._agreed:
            self.jumps += 1
            self.clock, self._behind = self._behind_at, 0


def _highest(timestamps: Sequence[int]) -> int:
    """Return the highest of a run's timestamps, which usually are an array."""
    return int(timestamps.array.max()) if isinstance(timestamps, Numbers) else max(timestamps)
