"""Our worker with a clock at the stations of a record; it writes the times to a file when it ends.

    python -m benchmarks.rig.traced FILE TOPIC worker …

A record's age is the time since its timestamp. Ages of the records of TOPIC are summed by second and station,
so the time that a record spends between two stations is the difference of their means; the answer's way to a
reader follows the last station. Counts are per second. The product contains none of this: its methods are
wrapped here.
"""

from __future__ import annotations

import functools
import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from aiokafka.protocol.fetch import FetchRequest

from streamapp.cli.main import main as run
from streamapp.worker.driver.consumer import Consumer
from streamapp.worker.driver.thread import ConsumerThread, Fetched
from streamapp.worker.processing.commit_schedule import CommitSchedule
from streamapp.worker.processing.committer import Committer
from streamapp.worker.processing.pipeline import Pipeline
from streamapp.worker.processing.results import Results
from streamapp.worker.processing.task_manager import TaskManager
from streamapp.worker.processing.transactions import Transactions
from streamapp.worker.transport.partition_health import PartitionHealth
from topics.columns.records import RawRecords
from topics.columns.spans import TIMESTAMP, Ints64
from topics.producing.coordinator_steps import CoordinatorSteps
from topics.producing.transaction_sender import TransactionSender

Sums = defaultdict[int, list[float]]

TAKEN, BEGUN, COMPUTED, SENT = "fetched", "begun", "computed", "handed over"
CUT, COMMITTED = "its commit begins", "committed"
PACE = "wait: from records taken to the next request of records"
ANSWER = "wait: from a request of records to its answer"
AGENT = "wait: from the driver to the agent"


class Trace:
    """Sums by second of the monotonic clock: [count, sum]."""

    def __init__(self, source: str) -> None:
        """`source` is the topic whose records count."""
        self._source = source
        self.ages: dict[str, Sums] = defaultdict(lambda: defaultdict(lambda: [0, 0.0]))  # ms, by station
        self.seconds: dict[str, Sums] = defaultdict(lambda: defaultdict(lambda: [0, 0.0]))  # by activity
        self._sent: list[Ints64] = []  # timestamps of records that are in no commit yet
        self._begun: dict[str, float] = {}  # waits that have not ended

    def note(self, station: str, timestamps: Ints64) -> None:
        """Note that records with these timestamps (ms) are at a station now."""
        here = self.ages[station][int(time.monotonic())]
        here[0] += len(timestamps)
        here[1] += time.time() * 1e3 * len(timestamps) - float(timestamps.sum())

    def note_raw(self, station: str, raw: RawRecords) -> None:
        if raw.topic == self._source:
            self.note(station, raw.spans.table[TIMESTAMP])

    def sent(self, results: Results) -> None:
        if results.run.raw.topic == self._source:
            self.note_raw(SENT, results.run.raw)
            self._sent.append(results.run.raw.spans.table[TIMESTAMP])

    def cut(self) -> list[Ints64]:
        """Return the timestamps of the records in the commit that begins."""
        sent, self._sent = self._sent, []
        return sent

    def begin(self, wait: str) -> None:
        """Begin a wait, or begin it once more."""
        self._begun[wait] = time.perf_counter()

    def end(self, wait: str) -> None:
        """End a wait, if it has begun."""
        began = self._begun.pop(wait, None)
        if began is not None:
            here = self.seconds[wait][int(time.monotonic())]
            here[0] += 1
            here[1] += time.perf_counter() - began

    @contextmanager
    def measure(self, what: str) -> Iterator[None]:
        began = time.perf_counter()
        try:
            yield
        finally:
            here = self.seconds[what][int(time.monotonic())]
            here[0] += 1
            here[1] += time.perf_counter() - began

    def around(self, owner: type, name: str, what: str) -> None:
        """Measure every call of a method."""
        method = getattr(owner, name)

        @functools.wraps(method)
        def measured(*arguments: Any, **named: Any) -> Any:
            with self.measure(what):
                return method(*arguments, **named)

        setattr(owner, name, measured)

    def around_async(self, owner: type, name: str, what: str) -> None:
        """Measure every call of an async method."""
        method = getattr(owner, name)

        @functools.wraps(method)
        async def measured(*arguments: Any, **named: Any) -> Any:
            with self.measure(what):
                return await method(*arguments, **named)

        setattr(owner, name, measured)

    def to_json(self) -> str:
        return json.dumps({"ages": self.ages, "seconds": self.seconds})


def install(trace: Trace, source: str) -> None:
    """Put the clocks into the worker's classes."""
    feed: Callable[..., Any] = Consumer._feed
    process: Callable[..., Any] = Pipeline.process
    send: Callable[..., Any] = Pipeline.send
    commit: Callable[..., Any] = CommitSchedule.commit

    async def traced_feed(self: Consumer, epoch: int, fetched: Fetched) -> None:
        if fetched.records:
            with trace.measure("fetches with records"):
                pass
        for tp, columns in fetched.columns.items():
            if tp.topic == source:
                trace.note(TAKEN, columns.records.table[TIMESTAMP])
        await feed(self, epoch, fetched)

    async def traced_process(self: Pipeline, work: Any, *arguments: Any) -> Any:
        for _, of in work:
            trace.note_raw(BEGUN, of.raw)
        with trace.measure("group of runs: decode, task, encode"):
            outcomes = await process(self, work, *arguments)
        for _, of in work:
            trace.note_raw(COMPUTED, of.raw)
        return outcomes

    def traced_send(self: Pipeline, group: Sequence[Results]) -> None:
        with trace.measure("group of runs: hand over"):
            send(self, group)
        for results in group:
            trace.sent(results)

    async def traced_commit(self: CommitSchedule, transact: Any) -> None:
        cut = trace.cut()
        for timestamps in cut:
            trace.note(CUT, timestamps)
        with trace.measure("commit"):
            await commit(self, transact)
        for timestamps in cut:
            trace.note(COMMITTED, timestamps)

    Consumer._feed = traced_feed  # type: ignore[method-assign]
    Pipeline.process = traced_process  # type: ignore[assignment, method-assign]
    Pipeline.send = traced_send  # type: ignore[method-assign]
    CommitSchedule.commit = traced_commit  # type: ignore[method-assign]
    install_waits(trace)
    trace.around_async(Consumer, "_deliver_round", "rounds")
    trace.around(Committer, "_close", "commit: cut")
    trace.around(Transactions, "commit", "commit: in its thread")
    trace.around_async(CoordinatorSteps, "send_offsets", "commit: offsets")
    trace.around_async(TransactionSender, "flush", "commit: records")
    trace.around_async(CoordinatorSteps, "end", "commit: end of the transaction")


def install_waits(trace: Trace) -> None:
    """Put clocks where a record, or the request for it, waits."""
    drain: Callable[..., Any] = ConsumerThread._drain
    send: Callable[..., Any] = PartitionHealth._send_and_record
    deliver: Callable[..., Any] = Consumer._deliver
    process: Callable[..., Any] = TaskManager.process

    def traced_drain(
        self: ConsumerThread, fetcher: Any, positions: Any, fetched: Fetched, *arguments: Any, **options: Any
    ) -> None:
        n_before = len(fetched.columns)
        drain(self, fetcher, positions, fetched, *arguments, **options)
        if len(fetched.columns) > n_before:
            trace.begin(PACE)

    async def traced_send(self: PartitionHealth, node_id: int, request: Any, **options: Any) -> Any:
        if not isinstance(request, FetchRequest):
            return await send(self, node_id, request, **options)
        trace.end(PACE)
        with trace.measure(ANSWER):
            return await send(self, node_id, request, **options)

    async def traced_deliver(self: Consumer, *arguments: Any, **options: Any) -> int:
        trace.begin(AGENT)
        n: int = await deliver(self, *arguments, **options)
        return n

    async def traced_process(self: TaskManager, *arguments: Any, **options: Any) -> None:
        trace.end(AGENT)
        await process(self, *arguments, **options)

    ConsumerThread._drain = traced_drain  # type: ignore[method-assign]
    PartitionHealth._send_and_record = traced_send  # type: ignore[method-assign]
    Consumer._deliver = traced_deliver  # type: ignore[method-assign]
    TaskManager.process = traced_process  # type: ignore[method-assign]


def means(text: str, first: float, last: float) -> tuple[dict[str, float], dict[str, dict[str, float]]]:
    """Return mean ages by station (ms), and calls per second and their mean time (ms) by activity.

    `text` is the output of a worker; `first` and `last` bound the seconds that count, on the monotonic clock.
    """
    document = json.loads(text)

    def summed(by_second: dict[str, list[float]]) -> tuple[float, float]:
        pairs = [value for second, value in by_second.items() if first <= int(second) < last]
        return sum(n for n, _ in pairs), sum(total for _, total in pairs)

    ages = {station: summed(by_second) for station, by_second in document["ages"].items()}
    spent = {what: summed(by_second) for what, by_second in document["seconds"].items()}
    return (
        {station: round(total / n, 2) for station, (n, total) in ages.items() if n},
        {
            what: {"a_second": round(n / (int(last) - int(first)), 1), "ms": round(total / n * 1e3, 2)}
            for what, (n, total) in spent.items()
            if n
        },
    )


def main() -> int:
    file, source = Path(sys.argv[1]), sys.argv[2]
    del sys.argv[1:3]
    trace = Trace(source)
    install(trace, source)
    try:
        return run()
    finally:
        file.write_text(trace.to_json())


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    os._exit(status)  # as the installed command does
