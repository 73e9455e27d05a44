"""Replay: a data set as a stream of instances and labels."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from topics.clients.cluster import Cluster
from topics.clients.sender import Sender
from topics.errors import CatalogueError, DatasetError
from topics.patience import Patience
from topics.readers.dataset import Batch, Dataset
from topics.replay.arrow_blocks import BlockEmitter
from topics.replay.emission import Emitter, Outgoing, Register, RowEmitter, Rows, Writer
from topics.replay.label_loop import LabelLoop, LoopGroups, stations_of
from topics.replay.owed import OwedLabels
from topics.replay.replay_plan import ReplayPlan
from topics.replay.row_keys import KeyRing
from topics.replay.timeline import Timeline

CHUNK_ROWS = 2000
CHUNK_ROWS_OF_BLOCKS = 16_000
CHUNK_S = 0.01  # seconds of schedule sent at once: no row is early by more
PROGRESS_S = 0.1
LOOK_S = 0.1  # between two checks of the label loop
MARKS = 8  # marks in the loop, at least, when it holds the largest allowed number of rows


@dataclass(frozen=True, slots=True)
class ReplayProgress:
    """The progress of a replay, and its result at the end."""

    rows: int  # sent by this run
    next_row: int  # to continue, start with from_row=next_row
    instances: int  # records on the topic of instances, over all keys; a block is one
    labels: int  # records on the topic of labels, over all keys; a block is one
    labels_lost: int  # rows whose label is never sent
    labels_owed: int  # rows whose label is not due yet
    seconds: float
    total_rows: int | None  # rows that this run will send; None: unknown, or without end
    stopped: bool = False  # whether `stop` ended it early

    @property
    def rows_per_second(self) -> float:
        """Return the mean rate so far."""
        return self.rows / self.seconds if self.seconds > 0 else 0.0


class Replay:
    """Sends a data set as planned; `run` in one thread, `stop` from any thread or a signal handler."""

    def __init__(
        self,
        dataset: Dataset,
        plan: ReplayPlan,
        kafka: Mapping[str, Any],
        groups: LoopGroups | None = None,
        tell: Callable[[str], object] = lambda _: None,
        register: Register | None = None,
    ) -> None:
        """Reach the broker and find the partitions; `kafka` holds client properties under Kafka's names.

        With `max_outstanding`, `groups` are the groups of the label loop, and `tell` gets a line of progress
        every few seconds while the replay waits for it. Records in Avro need `register`.
        """
        if not dataset.names:
            message = "the data set has no attribute beside the class; instances need one at least"
            raise DatasetError(message)
        self.plan = plan
        self._dataset = dataset
        self._stop = threading.Event()
        self._timeline = Timeline(plan)
        self._owed = OwedLabels()
        ring = KeyRing(plan, _partitions(kafka, plan))
        self._emitter: Emitter
        if plan.format == "arrow":
            self._emitter = BlockEmitter(plan, dataset, ring)
        else:
            self._emitter = RowEmitter(plan, dataset, ring, _writer(plan, dataset, register))
        self._sender = Sender(kafka, self._stop.is_set)
        self._loop: LabelLoop | None = None
        if plan.max_outstanding is not None:
            if groups is None:
                message = "max_outstanding needs the groups of the label loop"
                raise ValueError(message)
            self._loop = LabelLoop(kafka, plan.names, stations_of(plan, groups))
        self._tell = tell
        self._marked = 0  # rows before the newest mark
        self._look_at = 0.0
        self._rows = self._instances = self._labels = self._lost = 0
        self._started = 0.0

    def stop(self) -> None:
        """Make `run` end soon: owed labels are sent at once, everything is flushed."""
        self._stop.set()

    def run(self, progress: Callable[[ReplayProgress], object] | None = None) -> ReplayProgress:
        """Send everything and return the result; `progress` is called about ten times a second.

        Raises DeliveryError if any record was not delivered.
        """
        try:
            return self._run(progress)
        finally:
            self._sender.close()
            if self._loop is not None:
                self._loop.close()

    def _run(self, progress: Callable[[ReplayProgress], object] | None) -> ReplayProgress:
        self._started = time.monotonic()
        reported = 0.0
        for numbers, batch in self._wanted():
            self._wait_until(self._timeline.scheduled(int(numbers[0])))
            if self._loop is not None:
                self._wait_for(self._loop, len(numbers))
            if self._stop.is_set():
                break
            self._send_rows(numbers, batch)
            if progress and self._elapsed() - reported >= PROGRESS_S:
                reported = self._elapsed()
                progress(self._state())
        if self._timeline.on_the_clock:
            while len(self._owed) and not self._stop.is_set():
                self._wait_until(self._owed.next_due)
        stopped = self._stop.is_set()
        self._send_due(np.inf)
        self._send(self._emitter.rest())
        self._sender.flush()
        report = self._state(stopped)
        if progress:
            progress(report)
        return report

    def _elapsed(self) -> float:
        return time.monotonic() - self._started

    def _wait_until(self, scheduled: float) -> None:
        """Return at a time (seconds since the start) or when stopped; send labels that are due until then."""
        while not self._stop.is_set():
            now = self._elapsed()
            if self._timeline.on_the_clock:
                self._send_due(now)
            if now >= scheduled:
                return
            wake = min(scheduled, self._owed.next_due) if self._timeline.on_the_clock else scheduled
            self._stop.wait(max(0.0, wake - now))

    def _wait_for(self, loop: LabelLoop, n: int) -> None:
        """Return when the label loop has room for `n` more rows, or when stopped.

        Labels that are due by the clock are sent during the wait.
        """
        most = self.plan.max_outstanding
        assert most is not None
        if self._rows > self._marked and self._rows - self._marked >= most // MARKS:
            self._sender.flush()
            self._marked = self._rows
            loop.mark(self._rows)
        patience = Patience(np.inf, self._tell)
        while not self._stop.is_set():
            if self._elapsed() >= self._look_at:
                loop.look()
                self._look_at = self._elapsed() + LOOK_S
            outstanding = self._rows - loop.settled
            if outstanding + n <= most:
                return
            patience.note(f"{outstanding:,} rows are not through the label loop: {loop.missing}")
            if self._timeline.on_the_clock:
                self._send_due(self._elapsed())
            self._stop.wait(max(0.0, self._look_at - self._elapsed()))

    def _send_rows(self, numbers: np.ndarray, batch: Batch) -> None:
        """Send rows, and the labels that are due among them."""
        x, codes = batch
        elapsed = self._elapsed()
        kept = self._timeline.surviving(numbers, codes)
        self._lost += int((kept != codes).sum())
        with_label = self.plan.labels == "with"
        rows = Rows(
            numbers,
            x,
            kept if with_label else np.full(len(numbers), -1, dtype=np.int32),
            self._timeline.places(numbers, elapsed),
            self._timeline.timestamps(numbers),
        )
        if self.plan.labels == "apart":
            self._owed.add(self._timeline.labels(numbers, kept, elapsed))
        self._send(self._emitter.emit(rows, self._owed.take(float(rows.place[-1]))))
        self._rows += len(numbers)

    def _send_due(self, until: float) -> None:
        """Send the labels that are due independently of a row."""
        labels = self._owed.take(until)
        if len(labels):
            self._send(self._emitter.emit(Rows.none(len(self._dataset.names)), labels))

    def _send(self, outgoing: Outgoing) -> None:
        if not len(outgoing):
            return
        self._sender.send(
            outgoing.topics, outgoing.values, outgoing.keys, outgoing.partitions, outgoing.timestamps
        )
        labels = outgoing.topics.count(self.plan.names.labels)
        self._labels += labels
        self._instances += len(outgoing) - labels

    def _wanted(self) -> Iterator[tuple[np.ndarray, Batch]]:
        """Yield the rows that the plan selects, with their numbers."""
        plan = self.plan
        end = np.inf if plan.records is None else plan.from_row + plan.records
        for first, (x, y) in self._numbered():
            start = max(0, plan.from_row - first)
            stop = int(min(len(y), end - first))
            if start < stop:
                yield np.arange(first + start, first + stop), (x[start:stop], y[start:stop])
            if first + len(y) >= end:
                return

    def _numbered(self) -> Iterator[tuple[int, Batch]]:
        """Yield batches with the number of their first row, repeatedly if the plan loops."""
        plan, dataset = self.plan, self._dataset
        size = _chunk_rows(plan)
        if not plan.loop:
            first = plan.from_row
            for batch in dataset.batches(size, plan.from_row):
                yield first, batch
                first += len(batch[1])
            if dataset.rows is not None and plan.from_row > dataset.rows:
                message = f"from_row={plan.from_row} must be at most the {dataset.rows} rows of the data set"
                raise DatasetError(message)
            return
        first = 0
        while not self._stop.is_set():
            if dataset.rows and plan.from_row - first >= dataset.rows:
                first += (plan.from_row - first) // dataset.rows * dataset.rows  # whole passes
            before = first
            for batch in dataset.batches(size):
                yield first, batch
                first += len(batch[1])
            if first == before:
                message = "the data set has no rows to loop over"
                raise DatasetError(message)

    def _state(self, stopped: bool = False) -> ReplayProgress:
        plan = self.plan
        total = plan.records
        if self._dataset.rows is not None and not plan.loop:
            rows_left = max(0, self._dataset.rows - plan.from_row)
            total = rows_left if total is None else min(total, rows_left)
        return ReplayProgress(
            rows=self._rows,
            next_row=plan.from_row + self._rows,
            instances=self._instances,
            labels=self._labels,
            labels_lost=self._lost,
            labels_owed=len(self._owed),
            seconds=self._elapsed(),
            total_rows=total,
            stopped=stopped,
        )


def _chunk_rows(plan: ReplayPlan) -> int:
    most = CHUNK_ROWS_OF_BLOCKS if plan.format == "arrow" else CHUNK_ROWS
    if plan.max_outstanding is not None:
        most = max(1, min(most, plan.max_outstanding // MARKS))
    return most if plan.rate is None else int(np.clip(plan.rate * CHUNK_S, 1, most))


def _writer(plan: ReplayPlan, dataset: Dataset, register: Register | None) -> Writer | None:
    """Return the writer of values in Avro; None for other formats."""
    if plan.format != "avro":
        return None
    if register is None:
        message = "records in Avro need a schema registry"
        raise ValueError(message)
    from topics.replay.avro_writer import AvroWriter  # kernels: loaded only when they are needed

    return AvroWriter(plan, dataset, register)


def _partitions(kafka: Mapping[str, Any], plan: ReplayPlan) -> int:
    """Return the number of partitions of the plan's topics, which must be equal."""
    cluster = Cluster(kafka)
    instances = cluster.partition_count(plan.names.instances)
    if plan.labels == "apart":
        topic = plan.names.labels
        labels = cluster.partition_count(topic)
        if labels != instances:
            message = (
                f"topic {topic!r} has {labels} partitions, {plan.names.instances!r} has {instances}; "
                f"they must be equal: see 'grove topics check'"
            )
            raise CatalogueError(message)
    return instances
