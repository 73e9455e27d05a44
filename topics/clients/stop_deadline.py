"""Stop deadline: how long a producer whose owner wants to end still waits for the brokers."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

STOP_S: Final = 10.0


class StopDeadline:
    """Is over STOP_S seconds after the first look at which the owner wants to end."""

    def __init__(self, stopped: Callable[[], bool]) -> None:
        """`stopped`: whether the owner wants to end."""
        self._stopped = stopped
        self._ends_at = float("inf")

    def is_over(self) -> bool:
        """Whether the brokers have had their time."""
        if not self._stopped():
            return False
        now = time.monotonic()
        self._ends_at = min(self._ends_at, now + STOP_S)
        return now >= self._ends_at
