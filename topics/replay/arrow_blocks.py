"""Replay blocks: rows and labels as Arrow blocks, many rows of one model key in one record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from topics.codecs import encode_instances, encode_labels
from topics.readers.dataset import Dataset
from topics.replay.emission import Outgoing, Rows, Wording
from topics.replay.owed import LabelRows
from topics.replay.replay_plan import ReplayPlan
from topics.replay.row_keys import KeyRing


class Columns(Protocol):
    """Rows as columns that can be cut and joined."""

    def __len__(self) -> int:
        """Return the number of rows."""

    def at(self, places: Any) -> Any:
        """Return the rows at these places."""

    @classmethod
    def joined(cls, pieces: Any) -> Any:
        """Return the rows of all pieces."""


C = TypeVar("C", bound=Columns)


class BlockQueue(Generic[C]):
    """Rows of one key that wait until a block is full."""

    def __init__(self) -> None:
        self.pieces: list[C] = []
        self.size = 0

    def add(self, piece: C) -> None:
        self.pieces.append(piece)
        self.size += len(piece)

    def take(self, rows: int, least: int) -> Iterator[C]:
        """Yield blocks of at most `rows` rows as long as at least `least` rows are held."""
        if self.size < least:
            return
        whole: C = self.pieces[0] if len(self.pieces) == 1 else type(self.pieces[0]).joined(self.pieces)
        at = 0
        while len(whole) - at >= least:
            block: C = whole.at(slice(at, at + rows))
            at += len(block)
            yield block
        self.size = len(whole) - at
        self.pieces = [whole.at(slice(at, None))] if self.size else []


class BlockEmitter:
    """Collects rows of each key until a block is full.

    A block has the timestamp of its last row. A block of labels is never sent before the instances of its
    labels: an unfinished block of instances is sent first, shorter.
    """

    def __init__(self, plan: ReplayPlan, dataset: Dataset, ring: KeyRing) -> None:
        self._size = plan.block_rows
        self._names = plan.names
        self._ids = plan.ids
        self._prefix = plan.id_prefix
        self._wording = Wording(plan, dataset)
        self._ring = ring
        queues = range(1 if ring.each else len(ring.encoded))
        self._rows: list[BlockQueue[Rows]] = [BlockQueue() for _ in queues]
        self._labels: list[BlockQueue[LabelRows]] = [BlockQueue() for _ in queues]

    def emit(self, rows: Rows, labels: LabelRows) -> Outgoing:
        outgoing = Outgoing()
        for queue, selection in self._split(rows.number):
            self._rows[queue].add(rows.at(selection))
            self._send_rows(queue, self._size, outgoing)
        for queue, selection in self._split(labels.row):
            self._labels[queue].add(labels.at(selection))
            self._send_labels(queue, self._size, outgoing)
        return outgoing

    def rest(self) -> Outgoing:
        """Return all unfinished blocks, instances first."""
        outgoing = Outgoing()
        for queue in range(len(self._rows)):
            self._send_rows(queue, 1, outgoing)
        for queue in range(len(self._labels)):
            self._send_labels(queue, 1, outgoing)
        return outgoing

    def _split(self, numbers: np.ndarray) -> Iterator[tuple[int, Any]]:
        """Yield each queue that gets rows, with these rows, in order."""
        if not len(numbers):
            return
        if self._ring.each:
            yield 0, slice(None)
            return
        keys = self._ring.of(numbers)
        order = np.argsort(keys, kind="stable")
        queues, starts = np.unique(keys[order], return_index=True)
        ends = [*starts[1:].tolist(), len(order)]
        for queue, start, end in zip(queues.tolist(), starts.tolist(), ends, strict=True):
            yield queue, order[start:end]

    def _send_rows(self, queue: int, least: int, outgoing: Outgoing) -> None:
        """Move blocks of instances out of a queue as long as it holds at least `least` rows."""
        for block in self._rows[queue].take(self._size, least):
            [value] = encode_instances(
                self._wording.features(block.x),
                format="arrow",
                ids=self._id_column(block.number) if self._ids else None,
                labels=self._wording.classes(block.code),
            )
            self._address(self._names.instances, queue, value, int(block.timestamp[-1]), outgoing)

    def _send_labels(self, queue: int, least: int, outgoing: Outgoing) -> None:
        """Move blocks of labels out of a queue as long as it holds at least `least` labels."""
        for block in self._labels[queue].take(self._size, least):
            held_back = self._rows[queue].pieces
            if held_back and held_back[0].number[0] <= block.row.max():
                self._send_rows(queue, 1, outgoing)
            names = self._wording.classes(block.code)
            assert names is not None
            [value] = encode_labels(self._id_column(block.row), names, format="arrow")
            self._address(self._names.labels, queue, value, int(block.timestamp.max()), outgoing)

    def _id_column(self, numbers: np.ndarray) -> Any:
        """Return the ids of n rows as an Arrow column, without making Python strings."""
        ids = pc.cast(pa.array(numbers), pa.string())
        return pc.binary_join_element_wise(self._prefix, ids, "") if self._prefix else ids

    def _address(self, topic: str, queue: int, value: bytes, timestamp: int, outgoing: Outgoing) -> None:
        ring = self._ring
        for key in range(len(ring.encoded)) if ring.each else (queue,):
            outgoing.topics.append(topic)
            outgoing.values.append(value)
            outgoing.keys.append(ring.encoded[key])
            outgoing.partitions.append(int(ring.partitions[key]))
            outgoing.timestamps.append(timestamp)
