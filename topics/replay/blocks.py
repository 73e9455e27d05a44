"""Rows and labels to Arrow blocks: many rows of one model key in one record."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from topics.codecs import encode_instances, encode_labels
from topics.readers.dataset import Dataset
from topics.replay.emission import Outgoing, Rows, Wording
from topics.replay.keys import KeyRing
from topics.replay.owed import LabelRows
from topics.replay.plan import ReplayPlan


class BlockEmitter:
    """Collects rows of each key until a block is full.

    A block bears the timestamp of its last row. A block of labels never goes out before the instances it
    speaks of: an unfinished block of instances is sent first, shorter.
    """

    def __init__(self, plan: ReplayPlan, dataset: Dataset, ring: KeyRing) -> None:
        """Prepare for a replay."""
        self._size = plan.block_rows
        self._names = plan.names
        self._wording = Wording(plan, dataset)
        self._ring = ring
        self._queues = 1 if ring.each else len(ring.encoded)
        self._rows: list[list[Rows]] = [[] for _ in range(self._queues)]
        self._labels: list[list[LabelRows]] = [[] for _ in range(self._queues)]

    def emit(self, rows: Rows, labels: LabelRows) -> Outgoing:
        """Return the blocks that became full."""
        outgoing = Outgoing()
        for queue, some in self._split(rows.number):
            self._rows[queue].append(_rows_at(rows, some))
            self._send_rows(queue, self._size, outgoing)
        for queue, some in self._split(labels.row):
            self._labels[queue].append(labels.at(some))
            self._send_labels(queue, self._size, outgoing)
        return outgoing

    def rest(self) -> Outgoing:
        """Return all unfinished blocks, instances first."""
        outgoing = Outgoing()
        for queue in range(self._queues):
            self._send_rows(queue, 1, outgoing)
        for queue in range(self._queues):
            self._send_labels(queue, 1, outgoing)
        return outgoing

    def _split(self, numbers: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """Yield each queue that gets some of the rows, and which ones."""
        if not len(numbers):
            return
        if self._ring.each:
            yield 0, np.arange(len(numbers))
            return
        keys = self._ring.of(numbers)
        for queue in np.unique(keys).tolist():
            yield queue, np.flatnonzero(keys == queue)

    def _send_rows(self, queue: int, least: int, outgoing: Outgoing) -> None:
        """Move blocks of instances out of a queue while it holds at least so many rows."""
        waiting = sum(len(rows.number) for rows in self._rows[queue])
        if waiting < least:
            return
        rows = _joined_rows(self._rows[queue])
        at = 0
        while waiting - at >= least:
            block = _rows_at(rows, np.arange(at, min(at + self._size, waiting)))
            [value] = encode_instances(
                self._wording.features(block.x),
                format="arrow",
                ids=self._wording.ids(block.number),
                labels=self._wording.classes(block.code),
            )
            self._address(self._names.instances, queue, value, int(block.timestamp[-1]), outgoing)
            at += len(block.number)
        self._rows[queue] = [_rows_at(rows, np.arange(at, waiting))] if at < waiting else []

    def _send_labels(self, queue: int, least: int, outgoing: Outgoing) -> None:
        """Move blocks of labels out of a queue while it holds at least so many."""
        waiting = sum(map(len, self._labels[queue]))
        if waiting < least:
            return
        labels = _joined_labels(self._labels[queue])
        at = 0
        while waiting - at >= least:
            block = labels.at(slice(at, min(at + self._size, waiting)))
            held_back = self._rows[queue]
            if held_back and held_back[0].number[0] <= block.row.max():
                self._send_rows(queue, 1, outgoing)
            ids, names = self._wording.ids(block.row), self._wording.classes(block.code)
            assert ids is not None and names is not None  # noqa: S101 - the plan and OwedLabels see to it
            [value] = encode_labels(ids, names, format="arrow")
            self._address(self._names.labels, queue, value, int(block.timestamp.max()), outgoing)
            at += len(block)
        self._labels[queue] = [labels.at(slice(at, None))] if at < waiting else []

    def _address(self, topic: str, queue: int, value: bytes, timestamp: int, outgoing: Outgoing) -> None:
        ring = self._ring
        for key in range(len(ring.encoded)) if ring.each else (queue,):
            outgoing.topics.append(topic)
            outgoing.values.append(value)
            outgoing.keys.append(ring.encoded[key])
            outgoing.partitions.append(int(ring.partitions[key]))
            outgoing.timestamps.append(timestamp)


def _rows_at(rows: Rows, some: np.ndarray) -> Rows:
    return Rows(rows.number[some], rows.x[some], rows.code[some], rows.place[some], rows.timestamp[some])


def _joined_rows(pieces: list[Rows]) -> Rows:
    if len(pieces) == 1:
        return pieces[0]
    return Rows(
        np.concatenate([piece.number for piece in pieces]),
        np.concatenate([piece.x for piece in pieces]),
        np.concatenate([piece.code for piece in pieces]),
        np.concatenate([piece.place for piece in pieces]),
        np.concatenate([piece.timestamp for piece in pieces]),
    )


def _joined_labels(pieces: list[LabelRows]) -> LabelRows:
    return LabelRows(
        np.concatenate([piece.due for piece in pieces]),
        np.concatenate([piece.row for piece in pieces]),
        np.concatenate([piece.code for piece in pieces]),
        np.concatenate([piece.timestamp for piece in pieces]),
    )
