"""Records as columns: the result of decoding a batch, and the input of encoding.

A batch is decoded into a few arrays and lists, never into one object per record. `n` is the number of rows of
a batch: one for each good record, and in a block record (Arrow) one for each good row. Rows are in the order
of their records, rows of a block in the order of the block. `record` maps a row to its record in
`RawRecords`.

docs/records.md describes the wire formats.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from topics.columns.headers import Headers as Headers
from topics.columns.members import member
from topics.columns.raw_records import RawRecords as RawRecords
from topics.columns.raw_records import Schemas as Schemas
from topics.errors import Reason

Ints32 = npt.NDArray[np.int32]
Ints64 = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Command = Literal[
    "create", "configure", "freeze", "reset", "delete", "import", "challenge", "promote", "drop"
]
Format = Literal["json", "packed", "arrow"]

MAX_WEIGHT: Final = 1e9
"""Largest weight of a record: sums in a model stay exact over millions of records of this weight."""


def weight_rule(weight: float) -> str:
    """Return the error text for a refused weight.

    >>> weight_rule(1e20)
    'weight=1e+20 must be above 0 and at most 1e+09; scale all weights of the stream by one factor'
    """
    rule = f"must be above 0 and at most {MAX_WEIGHT:g}"
    return f"weight={weight} {rule}; scale all weights of the stream by one factor"


# -- coming in ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Malformed:
    """A record that cannot be processed, or the bad rows of a block whose other rows are good."""

    record: int  # index in RawRecords
    reason: Reason
    detail: str  # one sentence for a person; at most 300 characters
    rows: tuple[
        tuple[int, Reason], ...
    ] = ()  # bad rows of a block (numbered from 0 in the record), ascending


@dataclass(frozen=True, slots=True, eq=False)
class Features:
    """Feature values of the m rows that name the same features in the same order."""

    names: tuple[str, ...] | None  # None: by position, in schema order
    rows: Ints64  # int64[m], ascending: rows of the batch
    values: Floats  # float64[m, d], C order; NaN where missing and where the cell is a string
    strings: dict[int, list[str | None]] = field(default_factory=dict)  # column -> m cells; None: no string

    @classmethod
    def of(
        cls,
        names: Sequence[str] | None,
        values: npt.ArrayLike,
        strings: Mapping[int, list[str | None]] | None = None,
    ) -> Features:
        """Return the features of a batch in which all rows have the same feature names (for encoding)."""
        columns = np.ascontiguousarray(values, dtype=np.float64)
        rows = np.arange(len(columns), dtype=np.int64)
        return cls(None if names is None else tuple(names), rows, columns, dict(strings or {}))

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True, slots=True, eq=False)
class Instances:
    """Decoded records of the topic `instances`: n rows."""

    record: Ints32  # int32[n]: index in RawRecords, ascending
    row: Ints32  # int32[n]: row within its record; 0 for a record that is one instance
    keys: list[str]  # distinct model keys of the batch
    key: Ints32  # int32[n] into keys
    ids: Sequence[str]  # n: from the producer, else "<partition>-<offset>", for blocks with "-<row>" appended
    label_values: list[str]  # distinct canonical class names of the batch
    label: Ints32  # int32[n] into label_values; -1: no label
    weight: Floats  # float64[n], above 0 and at most MAX_WEIGHT; 1.0 where absent
    features: list[Features]  # every row is in exactly one of them
    blocks: Ints32  # int32[b, 3]: record, first row, good rows of each block record, ascending
    malformed: list[Malformed]  # ascending by record

    def __len__(self) -> int:
        return len(self.record)


@dataclass(frozen=True, slots=True, eq=False)
class Labels:
    """Decoded records of the topic `labels`: n rows."""

    record: Ints32  # int32[n]: index in RawRecords, ascending
    row: Ints32  # int32[n]: row within its record; 0 for a record that is one label
    keys: list[str]  # distinct model keys of the batch
    key: Ints32  # int32[n] into keys
    ids: Sequence[str]  # n instance ids; always given by the producer
    label_values: list[str]  # distinct canonical class names of the batch
    label: Ints32  # int32[n] into label_values; -1: declined
    weight: Floats  # float64[n], above 0 and at most MAX_WEIGHT; 1.0 where absent
    annotators: list[str | None]
    features: list[Features]  # of the rows with features; a row is in at most one of them
    malformed: list[Malformed]  # ascending by record

    def __len__(self) -> int:
        return len(self.record)


@dataclass(frozen=True, slots=True, eq=False)
class FeatureValues:
    """Decoded records of the topic `feature-values`: n rows, one record each."""

    record: Ints32  # int32[n]: index in RawRecords, ascending
    row: Ints32  # int32[n]: zeros
    keys: list[str]  # distinct model keys of the batch
    key: Ints32  # int32[n] into keys
    ids: list[str]  # n instance ids
    values: list[dict[str, float | str]]  # n: values by feature; strings as they came
    unavailable: list[dict[str, str | None]]  # n: features that cannot be bought, and why
    finish: list[bool]  # n: whether the answer is wanted now
    malformed: list[Malformed]  # ascending by record

    def __len__(self) -> int:
        return len(self.record)


@dataclass(frozen=True, slots=True)
class Control:
    """One command to the model of a key."""

    record: int  # index in RawRecords
    key: str
    command: Command
    body: dict[str, Any]  # the other members of the object; checked by the task (`bad-control`)


@dataclass(frozen=True, slots=True, eq=False)
class Controls:
    """Decoded records of the topic `controls`, in order."""

    items: list[Control]
    malformed: list[Malformed]  # ascending by record

    def __len__(self) -> int:
        return len(self.items)


# -- going out ----------------------------------------------------------------------------------------------


class Acquired(NamedTuple):
    """The features that a model bought for a record before it answered."""

    features: list[str]  # bought, in the order of their values
    cost: float
    stop: str  # why the model bought no more

    @staticmethod
    def from_json(given: Any) -> Acquired:
        """Return the features in an object; KeyError if it lacks a member."""
        return Acquired(given["features"], given["cost"], given["stop"])


DECIMALS: Final = 4
"""Decimals of a probability in JSON."""


def _shares(given: dict[str, Any]) -> dict[str, float]:
    """Return probabilities by class, leaving out cells that are not numbers."""
    return {name: float(value) for name, value in given.items() if type(value) in (float, int)}


def _rounded(shares: dict[str, float]) -> dict[str, float]:
    """Return probabilities as JSON has them."""
    return {name: round(share, DECIMALS) for name, share in shares.items()}


def _names(cells: list[Any]) -> list[str]:
    """Return the names in a list, leaving out cells that are no text."""
    return [name for name in cells if type(name) is str]


@dataclass(frozen=True, slots=True, eq=False)
class Predictions:
    """Answers of models that share one list of classes: n rows, each its own record or all in one block."""

    classes: tuple[str, ...]  # K class names in code order
    ids: Sequence[str]  # n instance ids
    prediction: Ints32  # int32[n] class code; -1: the model has learned no class yet
    probability: Floats  # float64[n, >= K]; columns beyond K are ignored
    version: Ints64  # int64[n]: labels learned before the answer; -1: a dead-lettered row of a block
    # Optional members: the codecs write and read them by these declarations.
    explanation: list[str | None] | None = field(
        default=None, metadata=member("explanation", str, block="string", packed=True, compiled=True)
    )
    """Rule path of each row."""
    acquired: list[Acquired | None] | None = field(
        default=None, metadata=member("acquired", dict, Acquired._asdict, Acquired.from_json)
    )
    """Features that each row's model bought."""
    challenger: list[str | None] | None = field(
        default=None, metadata=member("challenger", str, block="string")
    )
    """Class that the challenger of each row's model answered."""
    raw_probabilities: list[dict[str, float] | None] | None = field(
        default=None,
        metadata=member("raw_probabilities", dict, _rounded, _shares, block="shares", packed=True),
    )
    """Probabilities of the classes before calibration."""
    sets: list[list[str] | None] | None = field(
        default=None, metadata=member("set", list, from_json=_names, block="strings", packed=True)
    )
    """Classes of the conformal set."""

    def __len__(self) -> int:
        return len(self.ids)


LARGEST: Final = 2**53
"""More records than any model has answered."""


class Seen(NamedTuple):
    """Range and count of a feature's numbers in the records that a model has answered."""

    low: float
    high: float
    n: int

    @staticmethod
    def to_json(ranges: dict[str, Seen]) -> dict[str, tuple[float, ...]] | None:
        """Return ranges by feature as JSON has them; None if there are none."""
        return {name: tuple(seen) for name, seen in ranges.items()} or None

    @staticmethod
    def from_json(given: dict[str, Any]) -> dict[str, Seen]:
        """Return ranges by feature, leaving out cells that are not ranges."""
        ranges: dict[str, Seen] = {}
        for name, cell in given.items():
            if type(cell) is list and len(cell) == len(Seen._fields) and set(map(type, cell)) <= {float, int}:
                low, high, n = cell
                if low <= high and 1 <= n <= LARGEST:
                    ranges[name] = Seen(float(low), float(high), int(n))
        return ranges


@dataclass(frozen=True, slots=True, eq=False)
class LabelRequests:
    """Requests for the true labels of n instances; encoded by workers, decoded by oracle and demo."""

    request_ids: Sequence[str]
    instance_ids: Sequence[str]
    features: list[Features]  # rows are rows of this batch; a row is in at most one of them
    predictions: Sequence[str | None]  # class name that the model answered; None: no class learned yet
    strategies: Sequence[str]  # name of the query strategy that made the request
    utility: Floats  # float64[n]: the strategy's score of the label; NaN: it has none
    expires_ms: Ints64  # int64[n]: event time in ms after which the label comes too late; -1: never
    record: Ints32 | None = None  # int32[n]: index in the decoded values; None when encoding
    malformed: list[Malformed] = field(default_factory=list)  # records that could not be read
    # Optional members: the codec writes and reads them by these declarations.
    explanations: list[str | None] | None = field(default=None, metadata=member("explanation", str))
    """The rules that led to the answer."""
    probabilities: list[dict[str, float] | None] | None = field(
        default=None, metadata=member("probabilities", dict, from_json=_shares)
    )
    """Probabilities of the classes, after these rules."""
    ranges: list[dict[str, Seen]] | None = field(
        default=None, metadata=member("ranges", dict, Seen.to_json, Seen.from_json, absent=dict)
    )
    """By feature, statistics of the model's records so far."""
    reasons: list[str | None] | None = field(default=None, metadata=member("reason", str))
    """Why a label was requested, if the strategy did not request it."""
    challengers: list[str | None] | None = field(default=None, metadata=member("challenger", str))
    """Class that the challenger of the model answered."""

    def __len__(self) -> int:
        return len(self.request_ids)


@dataclass(frozen=True, slots=True)
class FeatureRequest:
    """A request for features of an instance; encoded by a worker, decoded by an oracle."""

    request_id: str
    instance_id: str
    features: list[str]
    cost: float  # cost of all the features together
    utility: float  # the model's score of the features; NaN: it has none
    known: dict[str, float | str]  # values of the instance that the model has
    expires_ms: int  # event time in ms after which a value comes too late


@dataclass(frozen=True, slots=True)
class DriftAlert:
    """A change of level of a drift detector, or a window of inputs that differs from the reference."""

    level: Literal["warning", "drift", "in-control", "input"]
    detector: str
    error_rate: float  # as the detector estimates it, 0..1; NaN for the level "input"
    action: str  # the reaction, e.g. "new tree"; "none" if there was only an alert
    node: int | None = None  # None: the whole model
    version: int = 0  # labels learned at that time
    instance_id: str | None = None  # the instance whose label led to the alert
    depth: int | None = None  # depth of the node, 0: a root
    classes: list[str] | None = None  # the two classes of the tree; None: one tree for all classes
    member: int | None = None  # the forest's member whose errors are watched; None: the model is no forest
    inputs: list[dict[str, Any]] | None = None  # the inputs that moved most; None: it watches errors
    moved: int | None = None  # number of all inputs that moved


LifeEvent = Literal[
    "created",
    "configured",
    "frozen",
    "unfrozen",
    "reset",
    "imported",
    "deleted",
    "challenged",
    "decided",
    "promoted",
    "dropped",
    "undecided",
]
"""Events of a whole model: a control or the rule of a challenge led to them."""


@dataclass(frozen=True, slots=True)
class ModelEvent:
    """Something that happened to a model, and the record that led to it."""

    event: Literal[
        LifeEvent,
        "split",
        "revised",
        "pruned",
        "drift",
        "growth-stopped",
        "thresholds-set",
    ]
    topic: str  # topic of the record that led to it; the event has the same partition
    offset: int  # offset of that record
    time_ms: int  # event time
    version: int  # labels that the model had learned
    records: int  # records that the model had answered
    instance_id: str | None  # None: a control led to it
    detail: dict[str, Any]  # by event: docs/records.md


@dataclass(frozen=True, slots=True)
class EvaluationRecord:
    """Prequential metrics of one model after some number of labels. NaN: not defined (yet)."""

    records: int
    labels: int
    accuracy: float
    accuracy_windowed: float
    kappa: float
    kappa_windowed: float
    f1_rarer: float
    f1_rarer_windowed: float
    label_share: float
    version: int = 0  # labels learned by the model
    asked: int = 0  # labels requested, and how these requests ended
    answered: int = 0
    declined: int = 0
    expired: int = 0
    outstanding: int = 0
    drawn_labels: int = 0  # evaluated predictions that were sampled to represent all records
    accuracy_unbiased: float = math.nan  # estimated from the sampled predictions, with its 95 % interval
    accuracy_unbiased_low: float = math.nan
    accuracy_unbiased_high: float = math.nan
    growth_stopped: bool = False  # the tree reached its leaf or memory limit
    kappa_m: float = math.nan  # against always predicting the class with most labels so far
    kappa_m_windowed: float = math.nan
    kappa_temporal: float = math.nan  # against predicting the last label
    kappa_temporal_windowed: float = math.nan
    classes: dict[str, int] | None = None  # labels of the most frequent classes; None: not counted
    measured: str | None = None  # what the figures below represent: "records", or "labels"; None: not kept
    accuracy_powered: float = math.nan  # estimated from the sampled predictions and the claims of all records
    accuracy_powered_low: float = math.nan
    accuracy_powered_high: float = math.nan
    accuracy_always_low: float = math.nan  # a band that holds at all times together
    accuracy_always_high: float = math.nan
    kappa_unbiased: float = math.nan  # this and the following rest on `measured`
    kappa_unbiased_low: float = math.nan
    kappa_unbiased_high: float = math.nan
    balanced_accuracy: float = math.nan  # mean recall
    balanced_accuracy_low: float = math.nan
    balanced_accuracy_high: float = math.nan
    log_loss: float = math.nan  # in nats
    log_loss_low: float = math.nan
    log_loss_high: float = math.nan
    brier: float = math.nan  # 0..1 for two classes, else 0..2
    brier_low: float = math.nan
    brier_high: float = math.nan
    auc: float = math.nan  # mean of the classes, each against the others
    auc_low: float = math.nan
    auc_high: float = math.nan
    calibration_error: float = math.nan  # expected, of the class answered
    calibration_error_low: float = math.nan
    calibration_error_high: float = math.nan
    coverage: float = math.nan  # share of the labels that were in their conformal sets
    coverage_low: float = math.nan
    coverage_high: float = math.nan
    set_size: float = math.nan  # mean number of classes in a set, over all answers
    per_class: dict[str, dict[str, float]] | None = None  # figures of the most frequent classes
    confusion: dict[str, Any] | None = None  # of the same classes: weights[label][prediction]
    challenge: dict[str, Any] | None = None  # the comparison with a challenger; None: there is none
    advice: str | None = None  # "stop", "go on" or "ask again after drift"; None: no estimate, or not kept
    accuracy_forecast: float = math.nan  # over all records after 500 more labels, with a band of 90 %
    accuracy_forecast_low: float = math.nan
    accuracy_forecast_high: float = math.nan
    gain_forecast: float = math.nan  # the part of the change that is due to these labels
    gain_forecast_low: float = math.nan
    gain_forecast_high: float = math.nan
    learning_curve: dict[str, Any] | None = (
        None  # by interval: labels [from, to], accuracy [value, low, high]
    )


LATEST_MS: Final = 253_402_300_799_000
"""The last second of the year 9999; a report with a later time was not written by this program."""


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """An action of a user of the web application. Fields that do not belong to the action are None."""

    id: str  # id of this entry; delivery is at least once, so an entry may come twice
    user: str
    action: str  # "label", "decline", "undo", "features", …; docs/records.md lists them
    at_ms: int
    key: str | None = None  # model key
    instance_id: str | None = None
    request_id: str | None = None
    detail: str | None = None  # the class, the features, the name of another user
    label: str | None = None  # the class of an answer or an outcome; None: declined, or an older entry
    seconds: float | None = None  # from the time at which the card was shown to the answer
    gold: str | None = None  # the settled class, if the card was a gold question
    votes: dict[str, str | None] | None = None  # of an outcome: annotator → class; None: not known
    prior: dict[str, float] | None = None  # of an outcome: the model's class shares in the request
    weight: float | None = None  # of an outcome: weight of the label that is sent
    posterior: float | None = None  # of an outcome: probability of the label by the annotator model
    annotator: str | None = None  # of "pause" and "resume": the user whom it concerns
    reason: str | None = None  # of a declined request: one of the operator's reasons
    comment: str | None = None  # of an answer or a review: free text of its user


@dataclass(frozen=True, slots=True, eq=False)
class ReceivedPredictions:
    """Predictions read back from their topic: n rows whose models may have different classes."""

    record: Ints32  # int32[n]: index in the decoded values
    row: Ints32  # int32[n]: row within its block; 0 for a record that is one prediction
    ids: list[str | None]  # None: the row was dead-lettered
    labels: list[str | None]  # None: no class known yet, or dead-lettered
    probabilities: list[dict[str, float]]
    version: Ints64  # int64[n]; -1: dead-lettered
    malformed: list[Malformed]
    explanation: list[str | None] = field(default_factory=list)
    acquired: list[Acquired | None] = field(default_factory=list)
    challenger: list[str | None] = field(default_factory=list)
    raw_probabilities: list[dict[str, float] | None] = field(default_factory=list)
    sets: list[list[str] | None] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.ids)
