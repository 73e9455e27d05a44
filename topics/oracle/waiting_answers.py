"""Waiting answers of the oracle, by due time."""

from __future__ import annotations

import heapq
from collections.abc import Collection
from dataclasses import dataclass

from topics.oracle.drawn_answers import Outcome


@dataclass(frozen=True, slots=True, order=True)
class WaitingAnswer:
    """A decided answer; answers compare by the order of sending."""

    due_ms: float
    partition: int  # partition of the request, and so of the answer
    offset: int  # offset of the request
    key: bytes
    instance_id: str
    outcome: Outcome
    value: bytes
    timestamp: int  # ms; 0: time of sending
    features: int = 0  # values in the answer
    unavailable: int = 0  # features that the answer reports as unavailable


class WaitingAnswers:
    """Answers by due time."""

    def __init__(self) -> None:
        self._heap: list[WaitingAnswer] = []

    def __len__(self) -> int:
        return len(self._heap)

    @property
    def next_due_ms(self) -> float:
        """Return when the next answer is due; infinity if none waits."""
        return self._heap[0].due_ms if self._heap else float("inf")

    def add(self, answer: WaitingAnswer) -> None:
        heapq.heappush(self._heap, answer)

    def take(self, until_ms: float, most: float) -> list[WaitingAnswer]:
        """Remove and return at most `most` answers due at a time, in order."""
        due: list[WaitingAnswer] = []
        while self._heap and self._heap[0].due_ms <= until_ms and len(due) < most:
            due.append(heapq.heappop(self._heap))
        return due

    def forget(self, partitions: Collection[int]) -> None:
        """Drop the answers of partitions that another oracle has now."""
        self._heap = [answer for answer in self._heap if answer.partition not in partitions]
        heapq.heapify(self._heap)
