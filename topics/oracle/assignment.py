"""Oracle assignment: the partitions of an oracle, and whether they have been read to the end."""

from __future__ import annotations

from collections.abc import Iterable


class Assignment:
    """The assigned partitions, which change with rebalances; a slow first fetch, or no assignment yet, is not
    silence.
    """

    def __init__(self) -> None:
        self._partitions: set[int] = set()
        self._unread: set[int] = set()
        self._known = False

    def add(self, partitions: Iterable[int]) -> None:
        """Add newly assigned partitions; the list may be empty."""
        new = set(partitions)
        self._partitions |= new
        self._unread |= new
        self._known = True

    def drop(self, partitions: Iterable[int]) -> None:
        """Remove revoked partitions; without any, the group will make a new assignment."""
        gone = set(partitions)
        self._partitions -= gone
        self._unread -= gone
        self._known = bool(self._partitions)

    def has(self, partition: int) -> bool:
        return partition in self._partitions

    def came(self, partition: int) -> None:
        """Note a request in an assigned partition, whose end has moved."""
        self._unread.add(partition)

    def ended(self, partition: int) -> None:
        self._unread.discard(partition)

    @property
    def read(self) -> bool:
        return self._known and not self._unread
