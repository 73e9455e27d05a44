"""Cards: a request as a person sees it, and the values that their answers can have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

CELLS_MAX: Final = 500
"""Features of a card at most. A record may be as large as 8 MiB, and people read no more."""
WANTED_MAX: Final = 50
"""Requested features of a card at most; a request for more is left to programs."""
TEXT_MAX: Final = 1024
"""Characters of a cell at most."""
RULES_MAX: Final = 4096
"""Characters of a path of rules at most."""

Cell = float | str | None
CORRECTION: Final = "correction"
EXAMPLE: Final = "example"
Kind = Literal["label", "features", "correction", "example"]
"""What a request is for; answers are also corrections of labels, and examples to learn after a correction."""


@dataclass(frozen=True, slots=True)
class Range:
    """The range of a feature's numbers in some records."""

    low: float
    high: float
    n: int


@dataclass(frozen=True, slots=True)
class Request:
    """A request from its topic: for the features that it names or, if it names none, for the label."""

    partition: int
    key: str  # the model key
    request_id: str
    instance_id: str
    asked_ms: int  # timestamp of the record
    expires_ms: int  # event time after which an answer comes too late; -1: never
    utility: float  # NaN: the strategy gives none
    prediction: str | None
    strategy: str
    features: dict[str, Cell]  # the known features of the instance
    left_out: int = 0  # features beyond CELLS_MAX
    wanted: tuple[str, ...] = ()  # requested features; none: the label is requested
    cost: float | None = None  # of these features together
    rules: str | None = None  # path of the tree that led to the prediction
    shares: Mapping[str, float] = field(default_factory=dict)  # class → probability where the path ends
    seen: Mapping[str, Range] = field(default_factory=dict)  # by feature: among all records of its model
    reason: str | None = None  # why the label is requested, if not by its strategy alone

    @property
    def kind(self) -> Kind:
        """Return what the request is for."""
        return "features" if self.wanted else "label"

    @property
    def subject(self) -> str:
        """Return the id of what is requested: one instance may have several requests for features."""
        return self.request_id if self.wanted else self.instance_id


@dataclass(frozen=True, slots=True)
class Label:
    """A label from its topic, of any sender."""

    key: str
    instance_id: str
    label: str | None  # None: declined
    annotator: str | None
    timestamp: int


@dataclass(frozen=True, slots=True)
class Given:
    """Values with which a person or a program answers a request for features."""

    features: Mapping[str, float | str] = field(default_factory=dict)
    unavailable: Mapping[str, str | None] = field(default_factory=dict)  # by feature: the reason, if any
    finish: bool = False  # True: the model is to answer with the features that it has

    @property
    def names(self) -> set[str]:
        """Return the features that were given or are unavailable; `FINISH` stands for all other features."""
        return {*self.features, *self.unavailable, *([FINISH] if self.finish else [])}


FINISH: Final = ""
"""Stands in the place of a feature's name, which is never empty: no other value is waited for."""


@dataclass(frozen=True, slots=True)
class Values:
    """Feature values from their topic, of any sender."""

    key: str
    instance_id: str
    given: Given
    timestamp: int


@dataclass(frozen=True, slots=True)
class Attribute:
    """The declaration of a feature in a control."""

    key: str
    name: str
    kind: str = "numeric"  # or "nominal"
    values: tuple[str, ...] = ()  # if nominal
    open: bool = False  # values not listed are allowed, too
    low: float | None = None  # if numeric, and if the schema has a range
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Card:
    """A request that is leased to one annotator."""

    number: int  # of the request in the store
    key: str
    instance_id: str
    asked_ms: int
    expires_ms: int  # -1: never
    utility: float | None
    prediction: str | None
    strategy: str
    reason: str | None
    features: dict[str, Cell]
    left_out: int
    cost: float | None
    rules: str | None
    shares: Mapping[str, float]
    wanted: tuple[str, ...]  # requested features that have not come yet; none: the label is requested
    classes: tuple[str, ...]  # known classes of the model key, in the order of their names
    attributes: Mapping[str, Attribute]  # by feature: its declaration, if there is one
    ranges: Mapping[str, Range]  # by feature: range among the requests of the model that were read
    seen: Mapping[str, Range] = field(
        default_factory=dict
    )  # by feature: range among all records that the model had answered at the request


@dataclass(frozen=True, slots=True)
class Outgoing:
    """An answer whose undo window is over."""

    number: int  # of the answer in the store
    partition: int
    key: str
    instance_id: str
    label: str | None  # None: declined
    annotator: str
    timestamp: int  # ms: time of the answer, never before the time of the request
    weight: float = 1.0
    given: Given | None = None  # if features were requested
    kind: Kind = "label"
    cells: Mapping[str, float | str] = field(default_factory=dict)  # of an example to learn


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts of the whole queue, for pages."""

    open: int  # without an answer
    leased: int
    undoable: int  # answered, within the undo window or not confirmed by the broker
    sent: int
    overtaken: int  # another sender's answer came within the undo window
    dropped: int  # requests of least utility, dropped because there were too many


class Refused(Exception):
    """An answer or an undo that cannot be accepted; the text is for the person who gave it."""
