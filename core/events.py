"""Model events: splits, prunings, drift levels, evaluations and growth stops of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

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

Level = Literal["in-control", "warning", "drift"]


@dataclass(frozen=True, slots=True)
class Event:
    """An event at a row of a run, for the model at an index of the table."""

    row: int
    model: int


Kind = Literal["numeric", "category", "multiway"]


@dataclass(frozen=True, slots=True)
class NodeTest:
    """The test of an inner node."""

    attribute: int
    test: Kind
    value: float
    """Threshold or value code; 0 for a multiway test."""


@dataclass(frozen=True, slots=True)
class Split(Event):
    """A leaf became an inner node, or an inner node got another test."""

    node: int
    """Number of the node; parents come before children, the root is 0."""
    attribute: int
    test: Kind
    value: float
    """Threshold or value code; 0 for a multiway test."""
    merits: tuple[float, float]
    """Merits of the best and of the second best attribute. A learner that revises its splits compares
    averages: of the best attribute, and of not splitting or of the former test.
    """
    bound: float
    """ε, in the unit of the merits."""
    n: float
    """Labelled weight that the decision is based on."""
    reason: Literal["gap", "tie", "only"]
    action: Literal["split", "replaced", "moved"] = "split"
    """A leaf was split, a subtree was replaced by a new test with leaves, or a threshold was moved."""
    former: NodeTest | None = None
    """The test before the event, None for a leaf."""
    depth: int | None = None
    """Depth of the node; None: the learner does not report it."""
    pair: tuple[int, int] | None = None
    """The two classes that the tree separates; None: the model has one tree for all classes."""
    masses: tuple[float, ...] = ()
    """Weight at the node by class before the split, in the order of the schema; empty: not reported."""
    member: int | None = None
    """Number of the forest's member that the tree belongs to; None: the model is no forest."""


@dataclass(frozen=True, slots=True)
class Pruned(Event):
    """An inner node became a leaf: not splitting is better than its test."""

    node: int
    merits: tuple[float, float]
    """Average merits of not splitting, and of the former test."""
    bound: float
    n: float
    reason: Literal["gap", "tie", "only"]
    former: NodeTest
    """The test before the event."""
    depth: int | None = None
    """Depth of the node, 0: the root."""
    member: int | None = None
    """Number of the forest's member; None: the model is no forest."""


@dataclass(frozen=True, slots=True)
class Drift(Event):
    """The level of a drift detector changed: the model's detector, or a node's."""

    level: Level
    detector: str
    error_rate: float
    action: Action
    node: int | None = None
    """Number of the node that the detector watches; None: it watches the model."""
    depth: int | None = None
    pair: tuple[int, int] | None = None
    """The two classes that the tree separates; None: the model has one tree for all classes."""
    member: int | None = None
    """Number of the forest's member that the detector watches; None: the model is no forest."""


Watched = Literal["feature", "share", "class"]
"""A feature of the records; the share of a record's answer, or its class."""


@dataclass(frozen=True, slots=True)
class Moved:
    """A feature whose window differs from the reference."""

    kind: Watched
    attribute: int
    """Its column; -1: it is no feature of the records."""
    ks: float
    """Kolmogorov and Smirnov's distance; of a category, the largest difference of a category's share."""
    psi: float
    """Population stability index."""
    hellinger: float
    """Hellinger distance, from 0 to 1."""
    missing: tuple[float, float]
    """Share of the records without a value, in the reference and in the window."""
    unseen: float
    """Share of the window's values that the reference does not have; 0 for numbers."""
    p: float
    """The smaller p-value of its two tests: of its values, and of the share of missing ones."""


@dataclass(frozen=True, slots=True)
class InputsChanged(Event):
    """The inputs of a window differ from the reference, which begins again with this record."""

    detector: str
    moved: tuple[Moved, ...]
    """The features that moved, those with the smallest p-values first; at most MOVED_MAX."""
    moved_count: int
    """Number of all features that moved."""
    window: int
    """Records of the window."""
    open_records: int
    """Next records whose labels are requested because of the alarm."""


MOVED_MAX: Final = 20
"""Most features that an event lists: a record of it must not be as long as a schema."""


@dataclass(frozen=True, slots=True)
class ThresholdsSet(Event):
    """Thresholds of numeric attributes were made from their first values: none were declared (``ufodt``)."""

    attributes: int
    left: int
    """Number of attributes whose first values are still being gathered."""


@dataclass(frozen=True, slots=True)
class GrowthStopped(Event):
    """A leaf was due to split, but ``max_leaves`` or ``max_bytes`` is reached: the tree no longer grows."""

    leaves: int
