"""Patience: how long a request waits for a busy cluster, with lines of progress during the wait."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Final

LEAST_S: Final = 60.0
PER_PARTITION_S: Final = 0.1
"""Seconds per partition: a broker creates a partition in some milliseconds, but one that shares two cores
with ten others needs longer.
"""

TELL_S: Final = 5.0  # between two lines of progress, and before the first
PAUSE_S: Final = 0.05  # before the second check; each further pause is twice as long
LONGEST_PAUSE_S: Final = 1.0


def seconds_for(partitions: int) -> float:
    """Return the seconds that the creation of this many partitions may take."""
    return LEAST_S + PER_PARTITION_S * partitions


class Patience:
    """A wait that is ended by events or by a bound in seconds, with a line of progress every few seconds."""

    def __init__(
        self,
        seconds: float,
        tell: Callable[[str], object] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`tell` gets each line of progress."""
        self.seconds = seconds
        self._tell = tell
        self._clock = clock
        self._began = self._told_at = clock()
        self._pause = PAUSE_S

    @property
    def left(self) -> float:
        """Seconds until it ends; never below 0."""
        return max(0.0, self.seconds - (self._clock() - self._began))

    @property
    def is_over(self) -> bool:
        """Whether all seconds have passed."""
        return self.left <= 0

    def note(self, missing: str) -> None:
        """Report from time to time what is missing."""
        now = self._clock()
        if now - self._told_at >= TELL_S:
            self._told_at = now
            most = f" of at most {self.seconds:g} s" if math.isfinite(self.seconds) else ""
            self._tell(f"waiting, {now - self._began:.0f} s{most}: {missing}")

    def pause(self, missing: str) -> float:
        """Return the seconds until the next check; report from time to time what is missing."""
        self.note(missing)
        pause, self._pause = self._pause, min(2 * self._pause, LONGEST_PAUSE_S)
        return min(pause, self.left)
