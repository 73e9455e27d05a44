"""Effects of a run: columns and small records in input order, for outputs and log.

Rows refer to the records of the run by their index in `RawRecords`: the encoder takes key, timestamp and
headers of an answer from the record it answers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from topics.columns.records import (
    DriftAlert,
    EvaluationRecord,
    FeatureRequest,
    Headers,
    Ints32,
    Ints64,
    LabelRequests,
    Malformed,
    ModelEvent,
    Predictions,
    RawRecords,
)
from topics.errors import Reason


@dataclass(frozen=True, slots=True, eq=False)
class PredictionGroup:
    """Predictions of models that share their classes: a record for each row, or one block for all rows."""

    record: Ints32  # int32[m] index in RawRecords; the same in every row of a block
    predictions: Predictions  # m rows
    block: bool = False
    key: bytes | None = None  # model key; None: the key of the records


@dataclass(frozen=True, slots=True, eq=False)
class Requests:
    """Label requests, in input order."""

    record: Ints32  # int32[m] index in RawRecords
    requests: LabelRequests  # m rows
    key: bytes | None = None  # model key; None: the key of the records


@dataclass(frozen=True, slots=True, eq=False)
class FeatureRequests:
    """Requests for features, and the record that led to them."""

    record: int
    requests: list[FeatureRequest]
    key: bytes  # model key


class Alert(NamedTuple):
    """A drift alert, and the record whose label raised it."""

    record: int
    alert: DriftAlert
    key: bytes | None = None  # model key; None: the key of the record


class Evaluated(NamedTuple):
    """The evaluation of a model, and the record after which it was due."""

    record: int
    evaluation: EvaluationRecord
    key: bytes | None = None  # model key; None: the key of the record


class Happened(NamedTuple):
    """Something that happened to a model, and the record that led to it."""

    record: int
    event: ModelEvent
    key: bytes | None = None  # model key; None: the key of the record


class Origin(NamedTuple):
    """A consumed record in its original form."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers

    @staticmethod
    def of(raw: RawRecords, record: int) -> Origin:
        """Return a record of a run."""
        return Origin(
            raw.topic,
            raw.partition,
            raw.offsets[record],
            raw.timestamps[record],
            raw.keys[record],
            raw.values[record],
            raw.headers[record],
        )

    @staticmethod
    def of_all(raw: RawRecords, records: Ints64) -> list[Origin]:
        """Return several records of a run in their original form; records: int64[m]."""
        chosen = raw.chosen(records)
        columns = chosen.offsets, chosen.timestamps, chosen.keys, chosen.values, chosen.headers
        topic, partition = raw.topic, raw.partition
        return [Origin(topic, partition, *cells) for cells in zip(*columns, strict=True)]


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record that was not processed, or (with `rows`) the unprocessed rows of a block."""

    origin: Origin
    reason: Reason
    detail: str  # one sentence for a person
    rows: tuple[tuple[int, Reason], ...] = ()  # bad rows of a block, ascending
    exception: str = "MalformedRecord"  # value of the header __streams.errors.exception
    stacktrace: str | None = None
    attempts: int = 1
    record: int = 0  # index in RawRecords of the record that led to it: for an early label, its instance
    last_offset: int | None = None  # of a batch that was put aside whole; the origin has its first offset

    @staticmethod
    def of(raw: RawRecords, malformed: Malformed) -> DeadLetter:
        """Return the dead letter of a record that could not be decoded."""
        return DeadLetter(
            Origin.of(raw, malformed.record),
            malformed.reason,
            malformed.detail,
            malformed.rows,
            record=malformed.record,
        )


@dataclass(frozen=True, slots=True)
class Notice:
    """A line for the log of the worker."""

    level: Literal["debug", "info", "warning", "error"]
    text: str
    model: str | None  # model key
    offset: int


def _no_counts() -> Counter[Any]:
    """Return an empty counter, without the lookup of initial contents: a small run has three counters."""
    return Counter.__new__(Counter)


@dataclass(slots=True, eq=False)
class Effects:
    """All effects of one run."""

    answers: list[PredictionGroup] = field(default_factory=list)
    requests: list[Requests] = field(default_factory=list)
    feature_requests: list[FeatureRequests] = field(default_factory=list)
    alerts: list[Alert] = field(default_factory=list)
    evaluations: list[Evaluated] = field(default_factory=list)
    happened: list[Happened] = field(default_factory=list)
    dead_letters: list[DeadLetter] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=_no_counts)  # what the run added, by name (counters.py)
    closed: Counter[tuple[str, str]] = field(default_factory=_no_counts)  # ended requests: (strategy, how)
    label_delays: list[Ints64] = field(default_factory=list)  # ms of event time from answer to label
    splits: Counter[str] = field(default_factory=_no_counts)  # splits installed, by why the leaf was due
    cost: float = 0.0  # of the features that were bought

    def dead_lettered(self, *reasons: Reason) -> list[int]:
        """Return the offsets of records that became dead letters for one of `reasons`, or have such rows."""
        return [
            letter.origin.offset
            for letter in self.dead_letters
            if letter.reason in reasons or any(why in reasons for _, why in letter.rows)
        ]

    def add(self, other: Effects, key: bytes | None) -> None:
        """Add effects of the same run; key: of the model they are about, None: the keys of the records."""
        self.answers += [replace(group, key=key) for group in other.answers]
        self.requests += [replace(group, key=key) for group in other.requests]
        self.feature_requests += other.feature_requests
        self.alerts += [alert._replace(key=key) for alert in other.alerts]
        self.evaluations += [evaluation._replace(key=key) for evaluation in other.evaluations]
        self.happened += [happening._replace(key=key) for happening in other.happened]
        self.dead_letters += other.dead_letters
        self.notices += other.notices
        self.label_delays += other.label_delays
        self.add_sums(other)

    def add_sums(self, other: Effects) -> None:
        """Add the counts and sums of other effects."""
        self.counts.update(other.counts)
        self.closed.update(other.closed)
        self.splits.update(other.splits)
        self.cost += other.cost

    def count(self, name: str, n: int = 1) -> None:
        """Add to a counter."""
        if n:
            self.counts[name] += n


def join(parts: Iterable[tuple[int, Effects]]) -> Effects:
    """Return the effects of consecutive runs as of one run; each comes with its first record's index."""
    joined = Effects()
    for start, part in parts:
        joined.answers += [replace(group, record=_shifted(group.record, start)) for group in part.answers]
        joined.requests += [replace(group, record=_shifted(group.record, start)) for group in part.requests]
        joined.alerts += [alert._replace(record=alert.record + start) for alert in part.alerts]
        joined.evaluations += [
            evaluation._replace(record=evaluation.record + start) for evaluation in part.evaluations
        ]
        joined.happened += [
            happening._replace(record=happening.record + start) for happening in part.happened
        ]
        joined.dead_letters += [replace(letter, record=letter.record + start) for letter in part.dead_letters]
        joined.notices += part.notices
        joined.feature_requests += [
            replace(request, record=request.record + start) for request in part.feature_requests
        ]
        joined.add_sums(part)
        joined.label_delays += part.label_delays
    return joined


def _shifted(record: Ints32, start: int) -> Ints32:
    return record + np.int32(start)
