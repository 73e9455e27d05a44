"""One pass of one system over the backlog: from its first visible answer to its last."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from typing import Protocol

from benchmarks.rig.process import Child, cpu_of_machine, cpu_of_tree
from benchmarks.rig.visible import Cluster

LOOK_SECONDS = 0.01
LAST_QUARTER = 0.75  # start of the last quarter, as a share of all rows
START_SECONDS = 300.0  # until the first answer
STALL_SECONDS = 120.0  # without a new answer


@dataclass(frozen=True)
class Cost:
    """The cost of some rows."""

    rows: int
    seconds: float
    cpu_seconds: float

    @property
    def rows_per_second(self) -> float:
        return self.rows / self.seconds

    @property
    def cpu_per_million(self) -> float:
        return self.cpu_seconds / self.rows * 1e6


@dataclass(frozen=True)
class Pass(Cost):
    """The cost of one pass. Rates count from the first check at which answers were visible."""

    peak_mib: float
    start_seconds: float  # from the start of the process to its first visible answer
    last_quarter: Cost | None  # None: too few rows for a separate figure
    others_cores: float  # used by the rest of the machine, including an external broker
    load_average: float  # of the last minute, at the end
    threads: dict[str, float] = field(default_factory=dict)  # CPU seconds by thread name


class Progress(Protocol):
    """The progress of a system, as the broker reports it."""

    def visible(self) -> int:
        """Return how many records are answered."""


class AnswerTopic:
    """The answers on a system's output topic, counted from `start`; only without transactions."""

    def __init__(self, cluster: Cluster, topic: str, partitions: int) -> None:
        self._cluster = cluster
        self.topic = topic
        self.partitions = partitions
        self.start = self.ends()

    def ends(self) -> list[int]:
        return self._cluster.ends(self.topic, self.partitions)

    def visible(self) -> int:
        return sum(self.ends()) - sum(self.start)


class Committed:
    """The input records that a group has committed: the same measure with and without transactions.

    The ends of output topics are not, because they include markers. The resolution is the commit interval.
    """

    def __init__(self, cluster: Cluster, group: str, topic: str, partitions: int) -> None:
        self._cluster = cluster
        self._group = group
        self._topic = topic
        self._partitions = partitions

    def visible(self) -> int:
        return self._cluster.committed(self._group, self._topic, self._partitions)


@dataclass(frozen=True)
class Look:
    """The visible answers at a moment, and the cost up to then."""

    visible: int
    at: float
    cpu_seconds: float
    others_seconds: float  # CPU of all but this program, its broker and the measured process

    @classmethod
    def now(cls, child: Child, visible: int) -> Look:
        at = time.monotonic()
        others = cpu_of_machine() - cpu_of_tree(os.getpid())
        return cls(visible, at, child.cpu_seconds(), others)

    def since(self, earlier: Look, rows_per_record: int) -> Cost:
        rows = (self.visible - earlier.visible) * rows_per_record
        return Cost(rows, self.at - earlier.at, self.cpu_seconds - earlier.cpu_seconds)


def watch(child: Child, answers: Progress, records: int, rows_per_record: int) -> Pass:
    """Follow `child` until `records` answers are visible."""
    started = time.monotonic()
    visible = await_answers(child, answers, 1, started + START_SECONDS)
    threads, first = child.cpu_by_thread(), Look.now(child, visible)
    quarter = Look.now(child, await_answers(child, answers, int(records * LAST_QUARTER), None))
    last = Look.now(child, await_answers(child, answers, records, None))
    if last.visible == first.visible:
        message = f"{records} answers were visible at the first look: too few to measure; raise --records"
        raise ValueError(message)
    cost = last.since(first, rows_per_record)
    others = (last.others_seconds - first.others_seconds) / cost.seconds
    by_thread = {name: seconds - threads.get(name, 0.0) for name, seconds in child.cpu_by_thread().items()}
    seen = first.visible < quarter.visible < last.visible
    return Pass(
        cost.rows,
        cost.seconds,
        cost.cpu_seconds,
        peak_mib=child.peak_mib(),
        start_seconds=first.at - started,
        last_quarter=last.since(quarter, rows_per_record) if seen else None,
        others_cores=max(others, 0.0),  # the kernel counts in ticks
        load_average=os.getloadavg()[0],
        threads=by_thread,
    )


def await_answers(child: Child, answers: Progress, records: int, deadline: float | None) -> int:
    """Return the number of visible answers once it is at least `records`.

    Raises ChildFailed if the process ends, or has not reached `records` by the deadline, or, without a
    deadline, makes no progress.
    """
    seen, changed = 0, time.monotonic()
    while True:
        visible = answers.visible()
        now = time.monotonic()
        if visible >= records:
            return visible
        child.check()
        if visible != seen:
            seen, changed = visible, now
        if now > (deadline if deadline is not None else changed + STALL_SECONDS):
            silent = now - changed
            raise child.failed(f"stopped answering: {visible} of {records} answers after {silent:.0f} s")
        time.sleep(LOOK_SECONDS)  # there is no event for a moved watermark
