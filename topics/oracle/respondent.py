"""Respondent: what an oracle answers with, and to which requests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from topics.definitions import TopicNames
from topics.oracle.answers import Outcome
from topics.readers.dataset import Dataset


class Decision(NamedTuple):
    """What becomes of one request."""

    instance_id: str
    outcome: Outcome
    value: bytes | None  # of the answer; None: there is none
    delay: float  # seconds until it
    features: int = 0  # values in it
    unavailable: int = 0  # features that it says are not to be had


class Respondent(Protocol):
    """Answers the requests of one topic on another."""

    def topics(self, names: TopicNames) -> tuple[str, str]:
        """Return the topic of the requests and that of the answers."""

    def read(self, dataset: Dataset, stopped: Callable[[], bool]) -> None:
        """Read what it answers from, once; ends early when stopped. DatasetError if there is nothing."""

    def decide(self, values: Sequence[bytes]) -> list[Decision | None]:
        """Return what becomes of each request, None for one that cannot be read."""
