"""Model quota: how many models a worker may hold, for all its tasks."""

from __future__ import annotations

import threading


class ModelQuota:
    """A count. Tasks of one worker run one at a time, except a task that is being restored in a thread."""

    __slots__ = ("_lock", "closed", "limit", "reported", "taken")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.taken = 0
        self.closed = False  # a replay refuses the models that were refused before
        self.reported = False  # the log has a line that the quota is used up
        self._lock = threading.Lock()

    def take(self) -> bool:
        """Take a place for a model; return whether there was one."""
        with self._lock:
            if self.closed or self.taken >= self.limit:
                return False
            self.taken += 1
            return True

    def add(self, places: int) -> None:
        """Take places for models that exist already, even beyond the limit."""
        with self._lock:
            self.taken += places

    def give_back(self, places: int = 1) -> None:
        """Return places of deleted models."""
        with self._lock:
            self.taken -= places
        self.reported = False
