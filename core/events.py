"""Model events: splits, prunings, drift levels, evaluations and growth stops of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Action = Literal[
    "none",
    "background tree started",
    "background tree dropped",
    "background tree took over",
    "new tree",
    "subtree pruned",
    "leaf began anew",
    "alternate tree started",
    "alternate tree took over",
    "alternate tree dropped",
]


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened at a row of a run, to the model at an index of the table."""

    row: int
    model: int


Kind = Literal["numeric", "category", "multiway"]


@dataclass(frozen=True, slots=True)
class NodeTest:
    """What an inner node asks."""

    attribute: int
    test: Kind
    value: float
    """Threshold or value code; 0 for a multiway test."""


@dataclass(frozen=True, slots=True)
class Split(Event):
    """A leaf became an inner node, or an inner node got another test."""

    node: int
    """Its number; parents come before children, the root is 0."""
    attribute: int
    test: Kind
    value: float
    """Threshold or value code; 0 for a multiway test."""
    merits: tuple[float, float]
    """Of the best and of the second best attribute. A learner that revises its splits compares averages: of
    the best attribute, and of no split or the test that was there."""
    bound: float
    """ε, in the unit of the merits."""
    n: float
    """Labelled weight behind the decision."""
    reason: Literal["gap", "tie", "only"]
    action: Literal["split", "replaced", "moved"] = "split"
    """A leaf was split; a subtree made way for a new test with new leaves; a threshold moved, and what is
    below it stayed."""
    former: NodeTest | None = None
    """The test that was there, None at a leaf."""
    depth: int | None = None
    """Of the node; None: the learner does not say."""
    pair: tuple[int, int] | None = None
    """The two classes whose tree it is; None: the model has one tree for all."""
    masses: tuple[float, ...] = ()
    """Class weight that the node had before, of the classes that the model has learned, in the order of the
    schema; empty: the learner does not say."""
    member: int | None = None
    """Number of the forest's member whose tree it is; None: the model is no forest."""


@dataclass(frozen=True, slots=True)
class Pruned(Event):
    """An inner node became a leaf: not to split is better than its test."""

    node: int
    merits: tuple[float, float]
    """Averages: of no split, and of the test that was there."""
    bound: float
    n: float
    reason: Literal["gap", "tie", "only"]
    former: NodeTest
    """The test that was there."""
    depth: int | None = None
    """Of the node, 0: the root."""
    member: int | None = None
    """Number of the forest's member; None: the model is no forest."""


@dataclass(frozen=True, slots=True)
class Drift(Event):
    """The level of the drift detector changed, of the model's or of a node's."""

    level: Literal["in-control", "warning", "drift"]
    detector: str
    error_rate: float
    action: Action
    node: int | None = None
    """Number of the node that it watches; None: it watches the model."""
    depth: int | None = None
    pair: tuple[int, int] | None = None
    """The two classes whose tree it is; None: the model has one tree for all."""
    member: int | None = None
    """Number of the forest's member that the detector watches; None: the model is no forest."""


@dataclass(frozen=True, slots=True)
class ThresholdsSet(Event):
    """Numeric attributes that declare no thresholds got theirs, of their first values (``ufodt``)."""

    attributes: int
    left: int
    """Attributes whose first values are still gathered."""


@dataclass(frozen=True, slots=True)
class GrowthStopped(Event):
    """A leaf should have split, but ``max_leaves`` or ``max_bytes`` is reached: the tree grows no more."""

    leaves: int
