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
