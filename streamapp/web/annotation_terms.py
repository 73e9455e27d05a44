"""Annotation terms: how long things last in the label queue, and how many annotators answer a request."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final

from streamapp.people.settlement import Weighting

ANSWERED_LIMIT: Final = 1024  # bytes of a class name, the default of text.max.bytes


@dataclass(frozen=True, slots=True)
class Overlap:
    """The share of label requests that several annotators answer, independently of each other.

    A request belongs to the share by a hash of its id. So the choice is the same after a restart or with a
    lost store, and a larger share contains a smaller one.
    """

    share: float = 0.0
    answers: int = 2
    wait_ms: int = 3_600_000  # from the first answer until the label goes out without the others

    def covers(self, request_id: str) -> bool:
        """Return whether a request belongs to the share."""
        digest = blake2b(request_id.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        return int.from_bytes(digest) < self.share * 2**64


@dataclass(frozen=True, slots=True)
class Terms:
    """Durations in ms, the limit of kept requests, and the number of annotators that have to agree."""

    lease_ms: int = 300_000
    undo_ms: int = 5_000
    jump_ms: int = 24 * 3600 * 1000  # a stream whose event time lags the clock by more is of the past
    open_max: int = 200_000
    text_max: int = ANSWERED_LIMIT
    agree: int = 1
    weighted: Weighting = "majority"
    sure_utility: float = 0.1  # the model is sure if the utility is at most this
    models: tuple[str, ...] = ()  # keys of the models that have cards; (): all models
    overlap: Overlap = field(default_factory=Overlap)
    gold_share: float = 0.0  # of an annotator's cards that are gold questions, at most
    gold_feedback: bool = False  # the annotator gets to read the class of a gold question
    sure_posterior: float = 0.9  # weighted by quality: below it one more annotator gets the request
    review_below: float = 0.8  # an outcome that is less certain is reviewed
    review_ms: int = 0  # for so long an outcome that is reviewed is not sent
    learn_corrections: bool = False  # a correction is learned as one more example
    decline_reasons: tuple[str, ...] = ()  # one of them is needed to decline; (): no reason is asked for
    comments: bool = False  # answers may have a comment

    @property
    def by_quality(self) -> bool:
        """Whether requests are settled by the annotator model."""
        return self.weighted == "quality"

    @property
    def keeps_votes(self) -> bool:
        """Whether the votes of a request that expires are settled; otherwise they are dropped with it."""
        return self.by_quality or self.overlap.share > 0

    def needed(self, request_id: str) -> int:
        """Return how many annotators have to answer a request for a label."""
        return self.overlap.answers if self.overlap.covers(request_id) else self.agree

    def event_time(self, event_ms: int, now: int) -> int:
        """Return the event time of a partition, as far as this process can infer it.

        event_ms: time of the newest request. The event time of a stream of the present follows the clock
        even if no request comes. A stream of the past stops with its requests.
        """
        return max(event_ms, now) if now - event_ms <= self.jump_ms else event_ms
