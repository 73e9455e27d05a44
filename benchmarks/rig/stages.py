"""Stages of a worker: the microseconds of a row in each, measured in sequence on the same bytes.

The stages run here, in one thread and without waiting. Beside them is a pass of the real worker over the same
backlog, which includes the cost between the stages (driver, commits, contention of threads).
"""

from __future__ import annotations

import gc
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from aiokafka import TopicPartition
from aiokafka.consumer.fetcher import READ_COMMITTED, PartitionRecords
from aiokafka.record.default_records import DefaultRecordBatchBuilder

from benchmarks.rig.backlog import load
from benchmarks.rig.encoding import ANSWER_ID, AVRO_ID, AVRO_SCHEMA, values
from benchmarks.rig.passes import Bench
from benchmarks.rig.stream import Rows
from benchmarks.rig.systems import WORKER
from core import run as kernels
from core.kernels.jit import unchecked
from streamapp.worker.compile_ahead import warm_kernels
from streamapp.worker.outputs.encoder import Encoder
from streamapp.worker.task.task import CODE, Task, TaskRun
from streamapp.worker.task.task_config import TaskConfig
from streamapp.worker.transport.fetched_columns import decode
from streamapp.worker.transport.runs import ReadAhead
from topics.clients.partitioner import partition_of
from topics.codecs.avro.output_schemas import OUTPUTS
from topics.codecs.frames.schema_ids import distinct_schema_ids
from topics.fetching.fetched_records import FetchedRecords
from topics.producing.idempotent.idempotent_producer import IdempotentProducer
from topics.registry.registered_schema import RegisteredSchema

BATCH_BYTES = 1 << 20
MAX_POLL_RECORDS = 6000  # typical for a worker under load
GC_THRESHOLDS = (100_000, 20, 20)  # as the worker sets them
CONSUMER_THREAD = "grove"


@dataclass(frozen=True)
class Stage:
    """CPU time of one stage, in microseconds per row."""

    name: str
    microseconds: float


class Stopwatch:
    """CPU seconds of this thread by stage."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)

    @contextmanager
    def measure(self, stage: str) -> Iterator[None]:
        started = time.thread_time()
        try:
            yield
        finally:
            self.seconds[stage] += time.thread_time() - started

    def around(self, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return `function` wrapped with a measurement."""

        def measured(*arguments: Any) -> Any:
            with self.measure(stage):
                return function(*arguments)

        return measured


class NestedStopwatch(Stopwatch):
    """CPU seconds of this thread by stage; a stage does not include the stages inside it."""

    def __init__(self) -> None:
        super().__init__()
        self._inside = [0.0]  # seconds of the stages inside each open stage

    @contextmanager
    def measure(self, stage: str) -> Iterator[None]:
        started = time.thread_time()
        self._inside.append(0.0)
        try:
            yield
        finally:
            all_of_it = time.thread_time() - started
            self.seconds[stage] += all_of_it - self._inside.pop()
            self._inside[-1] += all_of_it


def measure_stages(bench: Bench, rows: Rows, form: str, partitions: int) -> list[Stage]:
    """Return the stages in the order of a record's way, and the further cost of the real worker."""
    bench.backlog = load(bench.options.bootstrap, bench.names.instances, rows, form, partitions)
    cost, _ = bench.once(WORKER)
    watch = _in_process(bench, rows, form, partitions)
    n = len(rows)
    stages = [Stage(name, seconds / n * 1e6) for name, seconds in watch.seconds.items()]
    by_name = {stage.name: stage.microseconds for stage in stages}
    thread = cost.threads.get(CONSUMER_THREAD, 0.0) / cost.rows * 1e6
    stages.append(Stage("rest of the consumer's thread", max(0.0, thread - by_name[FETCH])))
    beyond = cost.cpu_per_million - sum(stage.microseconds for stage in stages)
    return [*stages, Stage("driver, commits, threads in each other's way", max(0.0, beyond))]


FETCH, GATE, DECODE = "fetch: batches to columns", "schema ids, Avro only", "decode"
KERNEL, TASK = "task: kernels", "task: the rest"
SCHEMA = RegisteredSchema(AVRO_ID, "AVRO", AVRO_SCHEMA)
OUTPUT_IDS = dict.fromkeys(OUTPUTS, ANSWER_ID)  # nobody reads these outputs
ENCODE, PRODUCE, CLIENT = "encode", "produce", "the producer's thread"


def _in_process(bench: Bench, rows: Rows, form: str, partitions: int) -> Stopwatch:
    warm_kernels()
    batches = record_batches(rows, form, partitions)
    config = TaskConfig(model_spec=bench.options.model_spec)
    tasks = [Task(partition, config) for partition in range(partitions)]
    is_avro = form == "avro"
    encoder = Encoder(bench.names, headers=bench.options.headers, schema_ids=OUTPUT_IDS if is_avro else None)
    sender = IdempotentProducer({"bootstrap.servers": bench.options.bootstrap})
    watch, kernel = Stopwatch(), kernels.run
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    others = -time.process_time() + time.thread_time()
    try:
        measured: Any = SimpleNamespace(unchecked=watch.around(KERNEL, unchecked(kernel)))  # as core calls it
        kernels.run = measured
        for partition, batch in batches:
            _one_batch(watch, bench, encoder, sender, tasks[partition], batch, is_avro)
    finally:
        kernels.run = kernel
        gc.unfreeze()
    sender.flush()
    watch.seconds[CLIENT] = others + time.process_time() - time.thread_time()
    watch.seconds[TASK] -= watch.seconds[KERNEL]
    return watch


def _one_batch(
    watch: Stopwatch,
    bench: Bench,
    encoder: Encoder,
    sender: IdempotentProducer,
    task: Task,
    batch: bytes,
    is_avro: bool,
) -> None:
    topic, partition = bench.names.instances, task.partition
    position = task.next.get("instances", 0)
    with watch.measure(FETCH):
        records = PartitionRecords(
            TopicPartition(topic, partition),
            FetchedRecords(batch),
            [],
            position,
            None,
            None,
            True,
            READ_COMMITTED,
        )
        columns = decode(records, None)
    ahead = ReadAhead(topic, partition, position)
    ahead.add(columns)
    while len(ahead):
        run = ahead.take(float("inf"), MAX_POLL_RECORDS)
        raw = run.raw
        if is_avro:
            with watch.measure(GATE):
                raw = raw.read_by(dict.fromkeys(distinct_schema_ids(raw), SCHEMA))
        with watch.measure(DECODE):
            (instances,) = CODE["instances"].decode([raw], task.config.limits)
        with watch.measure(TASK):
            effects = task.process(TaskRun("instances", raw, instances, run.position))
        with watch.measure(ENCODE):
            outgoing = encoder.encode(raw, effects)
        with watch.measure(PRODUCE):
            for sent_run in outgoing:
                sender.send_run(
                    sent_run.topic,
                    partition,
                    sent_run.values,
                    sent_run.keys,
                    sent_run.timestamps,
                    sent_run.headers,
                )


def record_batches(
    rows: Rows, form: str, partitions: int, batch_bytes: int = BATCH_BYTES
) -> list[tuple[int, bytes]]:
    """Return (partition, record batch) of all rows, as a fetch returns them."""
    keys = [key.encode() for key in rows.keys]
    places = [partition_of(key, partitions) for key in keys]
    builders: dict[int, Any] = {}
    offsets = [0] * partitions
    batches: list[tuple[int, bytes]] = []
    now = time.time_ns() // 1_000_000
    base = dict.fromkeys(range(partitions), 0)

    def close(partition: int) -> None:
        built = builders.pop(partition, None)
        if built is not None:
            batches.append((partition, _with_base_offset(bytes(built.build()), base[partition])))
            base[partition] = offsets[partition]

    for first, value in values(rows, form):
        key = rows.key[first]
        partition = places[key]
        while True:
            builder = builders.get(partition)
            if builder is None:
                builder = builders[partition] = DefaultRecordBatchBuilder(
                    2, 0, False, -1, -1, -1, batch_bytes
                )
            if builder.append(offsets[partition] - base[partition], now, keys[key], value, []) is not None:
                break
            close(partition)
        offsets[partition] += 1
    for partition in range(partitions):
        close(partition)
    return batches


def _with_base_offset(batch: bytes, offset: int) -> bytes:
    """Return the batch as a broker stores it: the first eight bytes are its offset, outside the checksum."""
    return offset.to_bytes(8, "big") + batch[8:]
