"""Oversized answers: which partitions to request, while one has a batch that makes an answer too long.

A broker sends the first batch of an answer whole, however few bytes were requested. An answer that is longer
than the bound on frames is not read, and does not show which partition made it so long. Its partitions are
suspects: each is then requested alone, in turn with all that are no suspects. A suspect whose answer is too
long again has the batch. It is requested again from time to time, because retention may delete the batch.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Hashable, Iterable
from typing import Final, Generic, TypeVar

AGAIN_S: Final = 30.0
"""Seconds until a partition with such a batch is requested again."""

SUSPECT_WAIT_MS: Final = 5
"""Milliseconds that a broker may wait for records of a suspect, while the other partitions wait."""

P = TypeVar("P", bound=Hashable)


class OversizedAnswers(Generic[P]):
    """The suspects among partitions, and the partitions with such a batch."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._suspects: dict[P, float] = {}
        """Times of the next request, by partition."""
        self._found: set[P] = set()
        self._alone_next: set[int] = set()
        """Brokers whose next request is for a suspect."""

    def __bool__(self) -> bool:
        """Return whether there is a suspect, or a partition that was one."""
        return bool(self._suspects or self._found)

    def chosen(self, node: int, partitions: Iterable[P]) -> list[P]:
        """Return which of the partitions to request next of a broker: one suspect, or all that are none."""
        asked = list(partitions)
        others = [partition for partition in asked if partition not in self._suspects]
        now = self._clock()
        due = [partition for partition in asked if self._suspects.get(partition, now + 1) <= now]
        if due and (not others or node in self._alone_next):
            self._alone_next.discard(node)
            return [min(due, key=self._suspects.__getitem__)]
        self._alone_next.add(node)
        return others

    def has(self, partitions: Iterable[P]) -> bool:
        """Return whether one of the partitions is a suspect."""
        return not self._suspects.keys().isdisjoint(partitions)

    def failed(self, partitions: Collection[P]) -> P | None:
        """Note an answer that was too long; return the partition that it shows to have the batch, if that was
        not known before.
        """
        now = self._clock()
        if len(partitions) > 1:
            for partition in partitions:
                self._suspects.setdefault(partition, now)
            return None
        (partition,) = partitions
        is_new = partition not in self._found
        self._suspects[partition] = now + AGAIN_S
        self._found.add(partition)
        return partition if is_new else None

    def forget(self, partitions: Iterable[P]) -> None:
        """Forget partitions: an answer was read, or they continue elsewhere or not at all."""
        for partition in partitions:
            self._suspects.pop(partition, None)
            self._found.discard(partition)

    def seconds_to_next(self) -> float:
        """Return the time until another suspect may be requested; infinity if all may be now."""
        now = self._clock()
        return min((at - now for at in self._suspects.values() if at > now), default=float("inf"))
