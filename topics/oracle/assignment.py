"""Oracle assignment: the partitions of an oracle, and whether they are read to their end."""

from __future__ import annotations

from collections.abc import Iterable


class Assignment:
    """Partitions come and go with rebalances; a slow first fetch, or none assigned yet, is not silence."""

    def __init__(self) -> None:
        self._partitions: set[int] = set()
        self._unread: set[int] = set()
        self._known = False

    def add(self, partitions: Iterable[int]) -> None:
        """Note partitions that are ours from now on; none may be an answer too."""
        new = set(partitions)
        self._partitions |= new
        self._unread |= new
        self._known = True

    def drop(self, partitions: Iterable[int]) -> None:
        """Note partitions that are ours no longer; when all are gone the group will say how it goes on."""
        gone = set(partitions)
        self._partitions -= gone
        self._unread -= gone
        self._known = bool(self._partitions)

    def has(self, partition: int) -> bool:
        return partition in self._partitions

    def came(self, partition: int) -> None:
        """Note a request in one of ours: its end is further away."""
        self._unread.add(partition)

    def ended(self, partition: int) -> None:
        self._unread.discard(partition)

    @property
    def read(self) -> bool:
        return self._known and not self._unread
