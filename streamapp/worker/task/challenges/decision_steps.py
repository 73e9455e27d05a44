"""Steps of event time, at which decisions of challenges take effect.

The rule may decide in the middle of a run. Its decision takes effect at the first record of a later step, and
runs are cut there while there is a challenge (parts.py). So it does not matter how records came in runs.
"""

from __future__ import annotations

from typing import Final

STEP_MS: Final = 100


def step_of(clock: int) -> int:
    """Return the number of the step of a clock."""
    return clock // STEP_MS
