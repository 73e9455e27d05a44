"""Cards: a request as a person sees it, and what may be wrong with an answer to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

CELLS_MAX: Final = 500
"""Features of a card at most: nobody reads more, and a record may be as large as 8 MiB."""
WANTED_MAX: Final = 50
"""Features that a card asks for at most; a request for more is left to machines."""
TEXT_MAX: Final = 1024
"""Characters of a cell at most."""
RULES_MAX: Final = 4096
"""Characters of a path of rules at most."""

Cell = float | str | None
Kind = Literal["label", "features"]  # what is asked for


@dataclass(frozen=True, slots=True)
class Range:
    """The numbers that a feature had in some records."""

    low: float
    high: float
    n: int


@dataclass(frozen=True, slots=True)
class Request:
    """A request for a label or, if it names features, for these, as it came from its topic."""

    partition: int
    key: str  # the model key
    request_id: str
    instance_id: str
    asked_ms: int  # timestamp of the record
    expires_ms: int  # event time after which an answer comes too late; -1: never
    utility: float  # NaN: the strategy does not say
    prediction: str | None
    strategy: str
    features: dict[str, Cell]  # what is known of the instance
    left_out: int = 0  # features beyond CELLS_MAX
    wanted: tuple[str, ...] = ()  # features that are asked for; none: the label is
    cost: float | None = None  # of these together
    rules: str | None = None  # path of the tree that led to the prediction
    shares: Mapping[str, float] = field(default_factory=dict)  # class → probability where the path ends
    seen: Mapping[str, Range] = field(default_factory=dict)  # by feature: of all that its model has answered

    @property
    def kind(self) -> Kind:
        """Return what it asks for."""
        return "features" if self.wanted else "label"

    @property
    def subject(self) -> str:
        """Return by what it is known: an instance has one label, but may be asked about more than once."""
        return self.request_id if self.wanted else self.instance_id


@dataclass(frozen=True, slots=True)
class Label:
    """A label that came from its topic, whoever sent it."""

    key: str
    instance_id: str
    label: str | None  # None: declined
    annotator: str | None
    timestamp: int


@dataclass(frozen=True, slots=True)
class Given:
    """What a person, or anybody, says to a request for features."""

    features: Mapping[str, float | str] = field(default_factory=dict)
    unavailable: Mapping[str, str | None] = field(default_factory=dict)  # and why not
    finish: bool = False  # the model is to answer with what it knows

    @property
    def names(self) -> set[str]:
        """Return the features that it speaks of; `FINISH` stands for all others."""
        return {*self.features, *self.unavailable, *([FINISH] if self.finish else [])}


FINISH: Final = ""
"""In the place of a feature's name, which is never empty: no other value is waited for."""


@dataclass(frozen=True, slots=True)
class Values:
    """Feature values that came from their topic, whoever sent them."""

    key: str
    instance_id: str
    given: Given
    timestamp: int


@dataclass(frozen=True, slots=True)
class Attribute:
    """What a control declares of a feature."""

    key: str
    name: str
    kind: str = "numeric"  # or "nominal"
    values: tuple[str, ...] = ()  # of a nominal one
    open: bool = False  # it takes in other values too
    low: float | None = None  # of a numeric one, as far as its schema says
    high: float | None = None


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
    cost: float | None
    rules: str | None
    shares: Mapping[str, float]
    wanted: tuple[str, ...]  # features that are asked for and have not come; none: the label is
    classes: tuple[str, ...]  # known of this model key, in the order of their names
    attributes: Mapping[str, Attribute]  # declared ones among the features, by name
    ranges: Mapping[str, Range]  # by feature: of the requests of its model that were read
    seen: Mapping[str, Range] = field(
        default_factory=dict
    )  # of all that its model had answered when it asked


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
    weight: float = 1.0
    given: Given | None = None  # of a request for features


@dataclass(frozen=True, slots=True)
class Counts:
    """What a page shows of the whole queue."""

    open: int  # nobody has answered
    leased: int
    undoable: int  # answered, within the undo window or not confirmed by the broker
    sent: int
    overtaken: int  # somebody else's answer came within the undo window
    dropped: int  # requests above the limit, those of least utility


class Refused(Exception):
    """An answer or an undo that cannot be taken; the text is for the person who gave it."""
