"""Cards: a label request as a person sees it, and what may be wrong with an answer to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

CELLS_MAX: Final = 500
"""Features of a card at most: nobody reads more, and a record may be as large as 8 MiB."""
TEXT_MAX: Final = 1024
"""Characters of a cell at most."""

Cell = float | str | None


@dataclass(frozen=True, slots=True)
class Request:
    """A label request as it came from its topic."""

    partition: int
    key: str  # the model key
    request_id: str
    instance_id: str
    asked_ms: int  # timestamp of the record
    expires_ms: int  # event time after which a label comes too late; -1: never
    utility: float  # NaN: the strategy does not say
    prediction: str | None
    strategy: str
    features: dict[str, Cell]
    left_out: int = 0  # features beyond CELLS_MAX


@dataclass(frozen=True, slots=True)
class Label:
    """A label that came from its topic, whoever sent it."""

    key: str
    instance_id: str
    label: str | None  # None: declined
    annotator: str | None
    timestamp: int


@dataclass(frozen=True, slots=True)
class Card:
    """A request that one annotator has before him."""

    number: int  # of the request in the store
    key: str
    instance_id: str
    asked_ms: int
    expires_ms: int  # -1: never
    utility: float | None
    prediction: str | None
    strategy: str
    features: dict[str, Cell]
    left_out: int
    classes: tuple[str, ...]  # known of this model key, in the order of their names


@dataclass(frozen=True, slots=True)
class Outgoing:
    """An answer whose undo window is over."""

    number: int  # of the answer in the store
    partition: int
    key: str
    instance_id: str
    label: str | None  # None: declined
    annotator: str
    timestamp: int  # ms: that of the answer, never before that of the request


@dataclass(frozen=True, slots=True)
class Counts:
    """What a page shows of the whole queue."""

    open: int  # nobody has answered
    leased: int
    undoable: int  # answered, within the undo window or not confirmed by the broker
    sent: int
    overtaken: int  # somebody else's label came within the undo window
    dropped: int  # requests above the limit, those of least utility


class Refused(Exception):
    """An answer or an undo that cannot be taken; the text is for the person who gave it."""
