"""Rounds of small runs, as at a low rate: µs of CPU of a round by stage, as JSON.

A round is one run of each partition, from the record batches of a fetch to the answers in the client's queue.
Their answers go to a producer whose broker is away: it accepts them, and its threads send nothing.

    python -m benchmarks.rounds                                   # 8 runs of about 6 records a round
    python -m benchmarks.rounds --partitions 64 --batch-bytes 300
    python -m benchmarks.rounds --batch-bytes 3600 --alone        # beside them the same runs one by one

All stages run in one thread without a broker. A stage does not include the stages inside it. Clocks cost a
round some tens of microseconds. The number of calls in Python, built-in functions included, is the same on
every machine, however busy it is. docs/benchmarks-pipeline.md has the results.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import cProfile
import gc
import json
import logging
import pstats
import statistics
from collections.abc import Callable
from typing import Any, Protocol

from aiokafka import TopicPartition
from aiokafka.consumer.fetcher import READ_COMMITTED, PartitionRecords

from benchmarks.rig.stages import GC_THRESHOLDS, NestedStopwatch, record_batches
from benchmarks.rig.stream import generate, model_keys
from streamapp.settings import Settings
from streamapp.worker.compile_ahead import warm_kernels
from streamapp.worker.journal.ledger import Ledger
from streamapp.worker.observability.metrics import Metrics
from streamapp.worker.outputs.encoder import Encoder
from streamapp.worker.outputs.record_sizes import OutputLimits
from streamapp.worker.processing.pipeline import KeyPlacement, Pipeline
from streamapp.worker.processing.results import Results
from streamapp.worker.processing.run_groups import groups
from streamapp.worker.reserved_ports import free_ports
from streamapp.worker.task.sources import SOURCES, source_topics
from streamapp.worker.task.task import Task
from streamapp.worker.transport.fetched_columns import decode, decode_small
from streamapp.worker.transport.rounds import together
from streamapp.worker.transport.runs import FetchedColumns, Run, TimeOrder
from topics.columns.spans import RecordSpans
from topics.definitions import TopicNames
from topics.fetching.fetched_records import FetchedRecords
from topics.producing.idempotent.idempotent_producer import IdempotentProducer

NAMES = TopicNames("grove.")
TOPIC = NAMES.instances
RUN_SIZE = 2000  # the worker's first limit of a run
FETCH, ORDER = "fetch: batches to columns", "order: runs of the round, groups"
REST, NOTE = "the rest of the pipeline", "ledger"
INSIDE: list[tuple[type, str, str]] = [
    (Pipeline, "_decoded", "decode"),
    (KeyPlacement, "check", "placement of keys"),
    (Task, "leading", "task: what a step may hold"),
    (Task, "process", "task: answer and learn"),
    (Encoder, "encode_runs", "encode"),
    (Pipeline, "_results", "journal step, results"),
    (Pipeline, "send", "hand over, count"),
    (IdempotentProducer, "hand_over", "hand over: client"),
]
"""Methods whose time is a separate stage."""


class Watch(Protocol):
    """A stopwatch for the stages of a round."""

    def measure(self, stage: str) -> contextlib.AbstractContextManager[None]: ...


class Unwatched:
    """A watch without clocks, for counts of calls."""

    def measure(self, _stage: str) -> contextlib.AbstractContextManager[None]:
        """Return a context that does nothing."""
        return NOTHING


NOTHING: contextlib.AbstractContextManager[None] = contextlib.nullcontext()


class Partitions:
    """The tasks of a worker, and the record batches that it fetches for each task."""

    def __init__(self, batches: list[list[bytes]], make: Callable[..., Pipeline] = Pipeline) -> None:
        limits = OutputLimits.of_catalogue(NAMES)
        logging.getLogger("aiokafka").setLevel(logging.CRITICAL)  # there is no broker
        self.sender = IdempotentProducer({"bootstrap.servers": f"127.0.0.1:{free_ports()}"})
        self._pipeline = make(Settings(), self.sender, Metrics(), partitions=len(batches), limits=limits)
        numbers = range(len(batches))
        self._tasks = [self._pipeline.new_task(number) for number in numbers]
        self._batches = batches
        self._orders = [_order(number) for number in numbers]
        self._ledgers = [
            Ledger(dict.fromkeys(SOURCES, 0), 1, self._pipeline.config, self._pipeline.journal_bytes)
            for _ in numbers
        ]

    async def round(self, number: int, watch: Watch, in_groups: bool) -> None:
        """Process the next run of each partition."""
        with watch.measure(FETCH):
            fetched = self._fetch([own[number] for own in self._batches])
        with watch.measure(ORDER):
            for order, columns in zip(self._orders, fetched, strict=True):
                order.add(TOPIC, columns)
            runs = [run for order in self._orders if (run := order.next_run(0.0, RUN_SIZE))]
            delivered = [group for part in together(runs, RUN_SIZE) for group in groups(part)]
            groups_of_runs = delivered if in_groups else [[run] for run in runs]
        for group in groups_of_runs:
            await self._process(group, watch)

    async def _process(self, group: list[Run], watch: Watch) -> None:
        work = [(self._tasks[run.raw.partition], run) for run in group]
        with watch.measure(REST):
            outcomes = await self._pipeline.process(work, lambda _: True)
        results = [outcome for outcome in outcomes if isinstance(outcome, Results)]
        assert len(results) == len(outcomes)
        self._pipeline.send(results)
        with watch.measure(NOTE):
            for result in results:
                result.note_in(self._ledgers[result.run.raw.partition])

    def _fetch(self, batches: list[bytes]) -> list[FetchedColumns]:
        """Return the records of a batch of each partition."""
        fetched = []
        for partition, batch in enumerate(batches):
            position = self._orders[partition].topics[TOPIC].position
            tp = TopicPartition(TOPIC, partition)
            records = PartitionRecords(
                tp, FetchedRecords(batch), [], position, None, None, True, READ_COMMITTED
            )
            fetched.append((records, None))
        together = zip(fetched, decode_small(fetched), strict=True)
        return [decode(*records) if small is None else small for records, small in together]


def _order(partition: int) -> TimeOrder:
    """Return the time order of a partition whose other topics have no records."""
    positions = [(topic, 0) for topic in source_topics(NAMES).values()]
    order = TimeOrder(partition, positions, skew_ms=0, max_idle_ms=0, max_records=RUN_SIZE)
    for topic in order.topics:
        order.add(topic, FetchedColumns(RecordSpans.none(), 0, 0))
    return order


def watch_inside(watch: NestedStopwatch) -> Callable[[], None]:
    """Measure the methods of INSIDE; return the function that ends this."""
    methods: list[tuple[type, str, Any]] = []
    for owner, name, stage in INSIDE:
        method = getattr(owner, name)
        methods.append((owner, name, method))
        setattr(owner, name, watch.around(stage, method))

    def end() -> None:
        for owner, name, method in methods:
            setattr(owner, name, method)

    return end


async def measure(
    batches: list[list[bytes]], rounds: int, in_groups: bool, make: Callable[..., Pipeline] = Pipeline
) -> dict[str, float]:
    """Return µs of CPU of a round by stage; a third of the rounds warms up."""
    partitions, watch = Partitions(batches, make), NestedStopwatch()
    end = watch_inside(watch)
    try:
        for number in range(rounds):
            if number == rounds // 3:
                watch.seconds.clear()
            await partitions.round(number, watch, in_groups)
    finally:
        end()
        partitions.sender.close()
    counted = rounds - rounds // 3
    return {stage: seconds / counted * 1e6 for stage, seconds in watch.seconds.items()}


async def count_calls(
    batches: list[list[bytes]], rounds: int, in_groups: bool, make: Callable[..., Pipeline] = Pipeline
) -> float:
    """Return the calls in Python of a round, built-in functions included; a third of the rounds warms up."""
    partitions, watch, profile = Partitions(batches, make), Unwatched(), cProfile.Profile()
    try:
        for number in range(rounds):
            if number == rounds // 3:
                profile.enable()
            await partitions.round(number, watch, in_groups)
    finally:
        profile.disable()
        partitions.sender.close()
    return float(pstats.Stats(profile).total_calls) / (rounds - rounds // 3)  # type: ignore[attr-defined]


def report(turns: list[dict[str, float]], in_groups: bool, batches: list[list[bytes]], calls: float) -> None:
    """Print medians over the turns, and the calls of a round."""
    stages = {stage: round(statistics.median(turn[stage] for turn in turns), 1) for stage in turns[0]}
    all_ = statistics.median(sum(turn.values()) for turn in turns)
    line = {
        "in_groups": in_groups,
        "runs": len(batches),
        "microseconds_per_round": round(all_),
        "microseconds_per_run": round(all_ / len(batches), 1),
        "calls_per_round": round(calls),
        "stages": stages,
    }
    print(json.dumps(line))


def batches_of(rounds: int, partitions: int, keys: int, batch_bytes: int) -> list[list[bytes]]:
    """Return record batches by partition, about one for each round."""
    rows = generate(rounds * partitions * batch_bytes // 100, model_keys(keys, partitions))
    encoded = record_batches(rows, "json", partitions, batch_bytes)
    return [[batch for at, batch in encoded if at == partition] for partition in range(partitions)]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rounds", description=__doc__.splitlines()[0])
    parser.add_argument("--partitions", type=int, default=8)
    parser.add_argument("--keys", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=300, help="a third of them warms up")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--batch-bytes", type=int, default=1000, help="of the records of a run, about")
    parser.add_argument("--alone", action="store_true", help="measure the same runs one by one, too")
    options = parser.parse_args()
    # The broker is away on purpose.
    logging.getLogger("topics.clients.delivery_failures").setLevel(logging.ERROR)
    warm_kernels()
    batches = batches_of(options.rounds, options.partitions, options.keys, options.batch_bytes)
    rounds = min(options.rounds, *map(len, batches))
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    ways = (True, False) if options.alone else (True,)
    turns: dict[bool, list[dict[str, float]]] = {way: [] for way in ways}
    for _ in range(options.turns):
        for way in ways:
            turns[way].append(asyncio.run(measure(batches, rounds, way)))
    for way in ways:
        report(turns[way], way, batches, asyncio.run(count_calls(batches, rounds, way)))
    if options.alone:
        pairs = zip(turns[True], turns[False], strict=True)
        ratios = [round(sum(a.values()) / sum(b.values()), 2) for a, b in pairs]
        print(json.dumps({"in_groups_to_alone": ratios}))


if __name__ == "__main__":
    main()
