"""Pace: how long fetches wait, so that a trickle takes a bounded share of a core."""

from __future__ import annotations

from typing import Final

PACE_SHARE: Final = 4.0
"""Pause between two fetches, in rounds of runs: records of a trickle wait for each other.

The first record after a silence does not wait.
"""

PACE_MAX_S: Final = 0.025
"""Longest such pause, in seconds."""

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
    """How long a round of runs takes on average."""

    def __init__(self, spent_s: float = 0.0, lasts_s: float = 0.0) -> None:
        self.spent_s = spent_s  # CPU seconds
        self.lasts_s = lasts_s  # seconds by the clock

    def note(self, spent_s: float, lasts_s: float) -> None:
        """Add a round to the means."""
        self.spent_s += ROUND_WEIGHT * (spent_s - self.spent_s)
        self.lasts_s += ROUND_WEIGHT * (lasts_s - self.lasts_s)

    @property
    def between_fetches_s(self) -> float:
        """Seconds between two fetches, at least."""
        return min(PACE_SHARE * self.spent_s, PACE_MAX_S)

    @property
    def room_s(self) -> float:
        """Seconds that a fetch and a round need before a commit."""
        return FETCH_S + ROUND_ROOM * self.lasts_s
