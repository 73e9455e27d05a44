"""How many models a worker may hold, shared by its tasks."""

from __future__ import annotations


class ModelQuota:
    """A plain count; tasks of one worker run one at a time."""

    __slots__ = ("limit", "reported", "taken")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.taken = 0
        self.reported = False  # the operator was told that it is used up

    def take(self) -> bool:
        """Take a place for a model; whether there was one."""
        if self.taken >= self.limit:
            return False
        self.taken += 1
        return True

    def give_back(self, places: int = 1) -> None:
        """Return places of models that are gone."""
        self.taken -= places
        self.reported = False
