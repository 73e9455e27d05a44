"""A pipeline and its sender in memory: the effects of a run are its offsets, and faults are set by a test."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

from core.state_version import STATE_VERSION
from streamapp.worker.journal.entry import Step
from streamapp.worker.processing.results import Results
from streamapp.worker.task.effects.effects import Effects
from streamapp.worker.task.models.eviction.swap_file import SwapFileError
from streamapp.worker.task.sources import SourceName
from streamapp.worker.transport.runs import Run
from tests.unit.streamapp.worker.snapshots.memory import ListCut


class OffsetsTask(list[int]):
    """A task that is a list of the offsets it was given."""

    state_version = STATE_VERSION

    def __init__(self, outputs: Outputs, partition: int, offsets: Iterable[int] = ()) -> None:
        super().__init__(offsets)
        self.outputs = outputs
        self.partition = partition
        self.advanced: dict[str, int] = {}  # sources whose records ended earlier, to these positions

    def cut(self) -> ListCut:
        if self.outputs.cut_fails is not None:
            raise self.outputs.cut_fails
        return ListCut({"task": repr(list(self)).encode()})

    def advance(self, source: SourceName, position: int) -> None:
        self.advanced[source] = position

    def close(self) -> None:
        self.outputs.closed += 1
        if self.outputs.tasks.get(self.partition) is self:
            del self.outputs.tasks[self.partition]


class OffsetsResults(Results):
    """The results of a run, which have a size and no outputs."""

    size = 0

    def __init__(self, run: Run, step: Step, input_bytes: int, rest: Run | None, size: int) -> None:
        super().__init__(run, Effects(), [], step, input_bytes, rest)
        self.size = size


class Outputs:
    """The pipeline of a worker and its sender. What a thread waits for is let go by a test."""

    config = "{}"
    journal_bytes = 1 << 20

    def __init__(self, seen: list[int] | None = None) -> None:
        """`seen`: what readers of committed outputs see."""
        self.sender = self
        self.tasks: dict[int, OffsetsTask] = {}  # those that are not closed, by partition
        self.closed = 0
        self.tasks_lock = asyncio.Lock()
        # What has become of records and outputs, by offset
        self.skipped: list[int] = []
        self.sent: list[int] = []
        self.handed: list[int] = []  # how many runs each time
        self.delivered: list[int] = []
        self.unsettled: list[int] = []  # sent, and not yet seen by any reader
        self.seen = [] if seen is None else seen
        # What the sender is doing
        self.offered: list[Any] = []  # results that are not handed over yet
        self.committing = False  # a transaction that outputs are part of
        self.flushing = False
        self.draining = False
        self.is_full = False
        self.lost = False  # outputs that the producer had no room for
        self.gate = threading.Event()  # a flush waits for it
        self.gate.set()
        self.room = threading.Event()  # outputs that the producer has no room for wait for it
        # Faults and delays
        self.output_bytes = 0  # of each record
        self.step = 1 << 30  # records that a task processes at once
        self.fails: Exception | None = None  # a flush
        self.refuses: Exception | None = None  # the output of a run
        self.will_not: Exception | None = None  # be handed over
        self.loses: Exception | None = None  # outputs that wait for room
        self.cut_fails: Exception | None = None
        self.bug: Exception | None = None  # of a run, when its task has changed
        self.foreign: Any = None  # outcome of each run, which no pipeline has
        self.readies: Callable[[], Awaitable[None]] | None = None  # models of a run
        self.computes: Callable[[Run], Awaitable[None] | None] | None = None  # as long as a thread does

    def fill(self, loses: Exception | None = None) -> None:
        """The producer has no room; outputs that wait for it are lost if there is an error to raise."""
        self.is_full, self.loses = True, loses

    def empty(self) -> None:
        self.is_full, self.loses = False, None

    # -- pipeline

    def new_task(self, partition: int) -> OffsetsTask:
        task = self.tasks[partition] = OffsetsTask(self, partition)
        return task

    def adopt_task(self, task: OffsetsTask) -> None:
        self.tasks[task.partition] = task

    async def process(
        self, work: Sequence[tuple[OffsetsTask, Run]], is_ours: Callable[[int], bool], most: int
    ) -> list[Any]:
        lost = None
        if self.readies is not None:
            try:
                await self.readies()
            except SwapFileError as error:
                lost = error
        outcomes = [
            (lost or self._outcome(task, run)) if is_ours(run.raw.partition) else None for task, run in work
        ]
        for _, run in work:
            if self.computes is not None and (computing := self.computes(run)) is not None:
                async with self.tasks_lock:
                    await computing
        return outcomes

    def _outcome(self, task: OffsetsTask, run: Run) -> Any:
        try:
            return self._results(task, run) if self.foreign is None else self.foreign
        except (ValueError, SwapFileError) as error:
            return error

    def _results(self, task: OffsetsTask, run: Run) -> Any:
        if b"poison" in run.raw.values:
            message = f"topic={run.topic} partition={run.raw.partition} offset={run.raw.offsets[0]}"
            raise ValueError(message)
        if b"lost" in run.raw.values:
            message = "the disk lost a model"
            raise SwapFileError(message)
        run, rest = run.cut(self.step) if len(run.raw) > self.step else (run, None)
        self.skipped += sorted(run.skipped)
        task += run.raw.offsets
        if self.bug is not None:
            raise self.bug
        n_bytes = sum(len(value or b"") for value in run.raw.values)
        source: Any = run.topic
        size = n_bytes + self.output_bytes * len(run.raw)
        step = Step(source, run.position)
        return OffsetsResults(run, step, n_bytes, rest, size)

    # -- sender

    def send(self, group: Sequence[Any]) -> None:
        if self.refuses is not None:
            raise self.refuses
        self.offered += group
        if self.will_not is not None:
            raise self.will_not
        assert not self.committing, "a client refuses records while it commits their transaction"
        self._take()

    def _take(self) -> None:
        offered, self.offered = self.offered, []
        self.handed += [len(offered)] if offered else []
        for results in offered:
            self.sent += results.run.raw.offsets
            self.unsettled += results.run.raw.offsets

    def drain(self) -> None:
        self.draining = True
        assert self.room.wait(60)
        if self.loses is not None:
            self.lost = True
            raise self.loses
        self.is_full = False

    def flush(self) -> None:
        self._take()
        sent, flushed = list(self.sent), len(self.unsettled)
        self.flushing = True
        assert self.gate.wait(60)
        self.flushing = False
        if self.fails is not None:
            raise self.fails
        self.delivered = sent
        if not self.committing:  # they are part of no transaction
            self.settle(flushed)

    def settle(self, n: int | None = None) -> None:
        """Let readers see what was sent, all or the first `n`."""
        self.seen += self.unsettled[:n]
        del self.unsettled[:n]
