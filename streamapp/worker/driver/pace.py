"""Pace: how long fetches wait, so that a trickle takes a bounded share of a core."""

from __future__ import annotations

import math
from typing import Final

PACE_MAX_S: Final = 0.025
"""Longest wait between two fetches, in seconds."""

SILENCE_S: Final = 0.1
"""Seconds after which the CPU time since the last round is not the cost of the next round."""

ROUND_WEIGHT: Final = 0.1
"""Weight of the newest round in the mean duration of rounds."""

PAUSE_MAX_S: Final = 0.100
"""Longest pause before a commit, in seconds: a longer one would leave too much to the last round.

Records that a commit will publish wait for the last moment before it that has room for a fetch and a round.
"""

FETCH_S: Final = 0.005
"""Seconds that a fetch takes."""

ROUND_ROOM: Final = 2.0
"""Room before a commit, in rounds of mean duration."""


class RoundTime:
    """How long the rounds after a fetch take on average, and how much CPU time the process takes for them.

    The time of the whole process counts, because the threads of its clients work for a round as well.
    """

    def __init__(self, share: float, spent_s: float = 0.0, lasts_s: float = 0.0) -> None:
        """`share`: of a core, up to which the process fetches more often than every PACE_MAX_S."""
        self._share = share
        self.spent_s = spent_s  # CPU seconds, fetch and hand-over included
        self.lasts_s = lasts_s  # seconds by the clock
        self._ended = -math.inf
        self._process_s = 0.0

    def note(self, began: float, ended: float, process_s: float) -> None:
        """Add the rounds after a fetch to the means: begin and end, and the CPU time of the process then."""
        self.lasts_s += ROUND_WEIGHT * (ended - began - self.lasts_s)
        if ended - self._ended <= SILENCE_S:
            self.spent_s += ROUND_WEIGHT * (process_s - self._process_s - self.spent_s)
        self._ended, self._process_s = ended, process_s

    @property
    def between_fetches_s(self) -> float:
        """Seconds between two fetches, at least; after a silence the first record does not wait."""
        return min(self.spent_s / self._share, PACE_MAX_S)

    @property
    def room_s(self) -> float:
        """Seconds that a fetch and its rounds need before a commit."""
        return FETCH_S + ROUND_ROOM * self.lasts_s
