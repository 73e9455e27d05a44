"""Replay emission: rows and labels as single records (JSON, packed)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from topics.codecs import encode_instances, encode_labels
from topics.columns.records import Features, Format
from topics.errors import DatasetError
from topics.readers.dataset import Dataset
from topics.replay.owed import LabelRows
from topics.replay.replay_plan import ReplayPlan
from topics.replay.row_keys import KeyRing

ALL: Final = "*"
"""Every feature, in place of names of features."""


@dataclass(slots=True)
class Outgoing:
    """Records as columns in the order of sending."""

    topics: list[str] = field(default_factory=list)
    values: list[bytes] = field(default_factory=list)
    keys: list[bytes] = field(default_factory=list)
    partitions: list[int] = field(default_factory=list)
    timestamps: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.values)

    def extend(self, other: Outgoing) -> None:
        self.topics += other.topics
        self.values += other.values
        self.keys += other.keys
        self.partitions += other.partitions
        self.timestamps += other.timestamps

    def reordered(self, order: Sequence[int]) -> Outgoing:
        """Return the records, at least two, in another order."""
        pick = itemgetter(*order)
        return Outgoing(
            list(pick(self.topics)),
            list(pick(self.values)),
            list(pick(self.keys)),
            list(pick(self.partitions)),
            list(pick(self.timestamps)),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Rows of the data set to be sent, as columns of equal length."""

    number: npt.NDArray[np.int64]  # int64[n]
    x: npt.NDArray[np.float64]  # float64[n, d]
    code: npt.NDArray[np.int32]  # int32[n]: the class sent with the instance; -1: none
    place: npt.NDArray[np.float64]  # float64[n]: place in the order of the stream (see Timeline)
    timestamp: npt.NDArray[np.int64]  # int64[n] ms; 0: time of sending

    def __len__(self) -> int:
        return len(self.number)

    def at(self, places: npt.NDArray[np.intp] | slice) -> Rows:
        return Rows(
            self.number[places], self.x[places], self.code[places], self.place[places], self.timestamp[places]
        )

    @classmethod
    def joined(cls, pieces: Sequence[Rows]) -> Rows:
        return cls(
            np.concatenate([piece.number for piece in pieces]),
            np.concatenate([piece.x for piece in pieces]),
            np.concatenate([piece.code for piece in pieces]),
            np.concatenate([piece.place for piece in pieces]),
            np.concatenate([piece.timestamp for piece in pieces]),
        )

    @classmethod
    def none(cls, d: int) -> Rows:
        integers = np.empty(0, dtype=np.int64)
        return cls(integers, np.empty((0, d)), np.empty(0, dtype=np.int32), np.empty(0), integers)


class Emitter(Protocol):
    """Turns rows and due labels into records."""

    def emit(self, rows: Rows, labels: LabelRows) -> Outgoing:
        """Return the records of rows and of the labels that are due among them, in order."""

    def rest(self) -> Outgoing:
        """Return the records held back so far (rows of unfinished blocks)."""


def withheld(plan: ReplayPlan, dataset: Dataset) -> list[int]:
    """Return the columns that are left out of instances; raise DatasetError for an unknown feature."""
    if ALL in plan.withhold:
        return list(range(len(dataset.names)))
    for name in plan.withhold:
        if name not in dataset.names:
            shown = ", ".join(dataset.names[:20])
            message = (
                f"withhold={name!r} must be a feature of the data set, or {ALL!r} for all; known: {shown}"
            )
            raise DatasetError(message)
    return [dataset.names.index(name) for name in plan.withhold]


class Wording:
    """The spelling of rows: features, ids, class names."""

    def __init__(self, plan: ReplayPlan, dataset: Dataset) -> None:
        self._plan = plan
        self._dataset = dataset
        self._names = dataset.names if plan.by_name and plan.format != "packed" else None
        # Packed has numbers only, so nominal values are sent as codes.
        words = () if plan.format == "packed" else enumerate(dataset.kinds)
        self._words = tuple(j for j, kind in words if kind == "nominal")
        self._withheld = withheld(plan, dataset)

    def features(self, x: npt.NDArray[np.float64]) -> Features:
        """Return the features of n rows, nominal values as words."""
        strings: dict[int, list[str | None]] = {}
        if self._words or self._withheld:
            x = x.copy()
            x[:, self._withheld] = np.nan
            values = self._dataset.values
            for j in self._words:
                words = np.array([*values[j], None], dtype=object)
                strings[j] = words[np.where(np.isnan(x[:, j]), -1, x[:, j]).astype(np.int64)].tolist()
                x[:, j] = np.nan
        return Features.of(self._names, x, strings)

    def ids(self, numbers: npt.NDArray[np.int64]) -> list[str] | None:
        if not self._plan.ids:
            return None
        prefix = self._plan.id_prefix
        return [f"{prefix}{number}" for number in numbers.tolist()]

    def classes(self, codes: npt.NDArray[np.int32]) -> list[str | None] | None:
        """Return the class names of n codes; None if no row has a class."""
        if not (codes >= 0).any():
            return None
        names = np.array([*self._dataset.classes, None], dtype=object)
        labels: list[str | None] = names[codes].tolist()
        return labels


Register = Callable[[str, str, str], int]
"""A function that registers a schema, given its topic, its record's name and its text; returns its id."""


class Writer(Protocol):
    """Writes the values of rows and labels."""

    def instances(
        self, features: Features, ids: list[str] | None, labels: list[str | None] | None
    ) -> list[bytes]:
        """Return the values of n instances."""

    def labels(self, ids: list[str], labels: list[str | None]) -> list[bytes]:
        """Return the values of n labels."""


class CodecWriter:
    """Writes values in a format that needs no schema."""

    def __init__(self, form: Format) -> None:
        self._format = form

    def instances(
        self, features: Features, ids: list[str] | None, labels: list[str | None] | None
    ) -> list[bytes]:
        return encode_instances(features, format=self._format, ids=ids, labels=labels)

    def labels(self, ids: list[str], labels: list[str | None]) -> list[bytes]:
        return encode_labels(ids, labels, format=self._format)


class RowEmitter:
    """One record for each row and label, for each key if every row goes to every key."""

    def __init__(
        self, plan: ReplayPlan, dataset: Dataset, ring: KeyRing, writer: Writer | None = None
    ) -> None:
        """`writer`: of values that need a schema; None: the format of the plan needs none."""
        self._writer = writer or CodecWriter("json" if plan.format == "avro" else plan.format)
        self._instances = plan.names.instances
        self._labels = plan.names.labels
        self._wording = Wording(plan, dataset)
        self._ring = ring

    def emit(self, rows: Rows, labels: LabelRows) -> Outgoing:
        """Return the records of rows and of due labels, each label after the rows before it."""
        outgoing = Outgoing()
        if len(rows):
            values = self._writer.instances(
                self._wording.features(rows.x),
                self._wording.ids(rows.number),
                self._wording.classes(rows.code),
            )
            outgoing = self._addressed(self._instances, values, rows.number, rows.timestamp)
        if not len(labels):
            return outgoing
        ids = self._wording.ids(labels.row)
        names = self._wording.classes(labels.code)
        assert ids is not None and names is not None
        values = self._writer.labels(ids, names)
        instances = len(outgoing)
        outgoing.extend(self._addressed(self._labels, values, labels.row, labels.timestamp))
        if not instances:
            return outgoing
        behind = np.searchsorted(rows.place, labels.due, side="right")
        turns = np.concatenate([2 * np.arange(len(rows.number)), 2 * behind - 1])
        copies = len(outgoing) // len(turns)
        order = np.argsort(np.repeat(turns, copies), kind="stable")
        return outgoing.reordered(order.tolist())

    def rest(self) -> Outgoing:
        """Return nothing: records are never held back."""
        return Outgoing()

    def _addressed(
        self,
        topic: str,
        values: list[bytes],
        numbers: npt.NDArray[np.int64],
        timestamps: npt.NDArray[np.int64],
    ) -> Outgoing:
        """Return the records of n values: topic, key, partition, timestamp."""
        ring = self._ring
        if ring.each:
            copies = len(ring.encoded)
            if copies > 1:
                values = [value for value in values for _ in range(copies)]
            n = len(numbers)
            return Outgoing(
                [topic] * len(values),
                values,
                ring.encoded * n,
                ring.partitions.tolist() * n,
                np.repeat(timestamps, copies).tolist(),
            )
        key = ring.of(numbers)
        encoded = ring.encoded
        return Outgoing(
            [topic] * len(values),
            values,
            [encoded[k] for k in key.tolist()],
            ring.partitions[key].tolist(),
            timestamps.tolist(),
        )
