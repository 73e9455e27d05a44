"""Respondent: the source of an oracle's answers, for one kind of request."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from topics.definitions import TopicNames
from topics.oracle.drawn_answers import Outcome
from topics.readers.dataset import Dataset


class Decision(NamedTuple):
    """The outcome of one request."""

    instance_id: str
    outcome: Outcome
    value: bytes | None  # value of the answer; None: no answer
    delay: float  # seconds until the answer
    features: int = 0  # values in the answer
    unavailable: int = 0  # features that the answer reports as unavailable


class Respondent(Protocol):
    """Answers the requests of one topic on another."""

    def topics(self, names: TopicNames) -> tuple[str, str]:
        """Return the topic of the requests and the topic of the answers."""

    def read(self, dataset: Dataset, stopped: Callable[[], bool]) -> None:
        """Read the source of the answers once, until stopped; raise DatasetError if it has none."""

    def decide(self, values: Sequence[bytes]) -> list[Decision | None]:
        """Return the outcome of each request, None for a request that cannot be read."""
