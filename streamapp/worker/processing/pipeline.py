"""Pipeline: a run through the worker, in one call: load models, decode, process (the task), encode.

Another call, `send`, sends its outputs, at once or when a commit that is under way is over. A run of the
topic `grove.labels` in the driver is a run of the source `labels` in the task.

Most runs take a few milliseconds, and are computed where they arrive, in the event loop. One with a large
record (a block of ten thousand rows, a schema of thousands of values) may take seconds: a thread computes it,
so that heartbeats, fetches, commits and pages continue. During this time no other code may touch a task: to
do so it has to hold `tasks_lock`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from streamapp.settings import Settings
from streamapp.worker.blocking_calls import run_blocking
from streamapp.worker.journal.entry import Step
from streamapp.worker.journal.ledger import check_controls, room_for_steps, step_of
from streamapp.worker.observability.metrics import Metrics
from streamapp.worker.outputs.encoder import Encoder
from streamapp.worker.outputs.limits import OutputLimits
from streamapp.worker.outputs.outgoing import OutputRecords
from streamapp.worker.processing.model_loading import reload
from streamapp.worker.task.effects.effects import Effects, Notice
from streamapp.worker.task.error_isolation import process_isolated, process_together
from streamapp.worker.task.instances.growth import STEP
from streamapp.worker.task.models.eviction.model_memory import ModelMemory
from streamapp.worker.task.models.quota import ModelQuota
from streamapp.worker.task.sources import SOURCES, source_topics
from streamapp.worker.task.task import CODE, Task, TaskRun
from streamapp.worker.task.task_config import TaskConfig
from streamapp.worker.transport import runs
from topics.clients.partitioner import partition_of
from topics.clients.sender import Sender
from topics.codecs.compiled.keys import coded
from topics.columns.records import Headers, Instances, RawRecords
from topics.columns.spans import any_headers, header_counts
from topics.definitions import TopicNames

logger = logging.getLogger(__name__)

MAX_REMEMBERED_KEYS: Final = 1 << 17  # keys whose partition was checked, per worker

LARGE_RECORD: Final = 64 << 10
"""Bytes from which a record may take longer than other runs can wait: blocks take up to 1.4 µs a byte."""

MANY_HEADERS: Final = 1024
"""Headers from which a record is large; each of its answers may repeat them."""

MANY_IN_ALL: Final = 16 << 10
"""Headers of a run from which it may take that long; one takes some 2 µs to read and to pass on."""

LARGE_RUN: Final = 4 << 20
"""Bytes from which a run may take that long, even if its records are small."""

SMALL_RUN: Final = 200
"""Most records of a run that is read together with other runs."""

READ_TOGETHER: Final = 256 << 10
"""Most bytes of runs that are read together, including all data fetched with them, because they are copied.
It also limits runs whose outputs are handed over together.
"""

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class Results:
    """The results of a run: output records, ready to be sent, and the run's journal step."""

    run: runs.Run
    effects: Effects
    records: list[OutputRecords]
    step: Step
    input_bytes: int  # of the records of the run
    rest: runs.Run | None = None  # the records that were too many for one step, not processed

    @property
    def size(self) -> int:
        """Approximate memory in bytes of the run's records and of its outputs."""
        return self.input_bytes + sum(each.values.total for each in self.records)


class Pipeline:
    """Makes tasks, and processes their runs into results, for one worker."""

    def __init__(
        self,
        settings: Settings,
        sender: Sender,
        metrics: Metrics,
        *,
        partitions: int,
        limits: OutputLimits,
        memory: ModelMemory | None = None,
        tasks_lock: asyncio.Lock | None = None,
        features: bool = True,
    ) -> None:
        """`sender`: the producer of the outputs; `partitions`: of every topic; `limits`: largest records.

        `memory`: of the models of all tasks (None: no limit); `tasks_lock`: held while a task changes in a
        thread; `features`: the topics of feature acquisition exist.
        """
        names = TopicNames(settings.topics_prefix, features)
        self._sources = {topic: source for source, topic in source_topics(names).items()}
        self._config = TaskConfig.from_settings(settings, features=features)
        self.journal_bytes = limits.of(names.journal)
        self._room = room_for_steps(self.config, self.journal_bytes)
        self._quota = ModelQuota(self._config.models_max_count)
        self._memory = memory or ModelMemory()
        self._encoder = Encoder.from_settings(settings, names, limits)
        self.sender = sender
        self._tasks_lock = tasks_lock or asyncio.Lock()
        self._metrics = metrics
        self._read_together = CODE["instances"].together
        self._placement = KeyPlacement(metrics, partitions)

    @property
    def config(self) -> str:
        """The configuration of tasks, as JSON for the journal."""
        return self._config.to_json()

    def new_task(self, partition: int) -> Task:
        """Return a task with new models."""
        return Task(partition, self._config, self._quota, self._memory)

    def adopt_task(self, task: Task) -> None:
        """Give a restored task this worker's configuration and its share of memory for models."""
        task.configure(self._config)
        task.join(self._quota, self._memory)

    def read_together(self, some: Sequence[runs.Run]) -> list[Instances | None]:
        """Return the instances of each run if these are many small runs; None: the run's task reads it.

        The cost of reading a run does not depend on how small it is.
        """
        found: list[Instances | None] = [None] * len(some)
        small = [
            number
            for number, run in enumerate(some)
            if self._sources[run.topic] == "instances"
            and 0 < len(run.raw) <= SMALL_RUN
            and not _has_many_headers(run.raw.headers)
        ]
        raws = [some[number].raw for number in small]
        if len(raws) < 2 or sum(len(raw.spans.buffer) for raw in raws) > READ_TOGETHER:
            return found
        try:
            read = self._read_together(raws, self._config.limits)
        except Exception:  # reading each run alone, in isolation, shows which record it is
            logger.exception("small runs of %d partitions could not be read together", len(raws))
            return found
        for number, instances in zip(small, read, strict=True):
            found[number] = instances
        return found

    def process_together(
        self, some: Sequence[tuple[Task, runs.Run, Instances | None]]
    ) -> list[Results | Exception | None]:
        """Return the results of runs of several partitions, or the exception that `process` would raise.

        None: the run has to be processed alone. `some`: small runs with the results of `read_together`; if
        they are ready, their answers are encoded in one call. The event loop runs nothing else during this.
        """
        found: list[Results | Exception | None] = [None] * len(some)
        share = STEP // max(1, len(some))
        ready = [number for number, each in enumerate(some) if _is_ready(*each, share)]
        if len(ready) < 2:
            return found
        started = time.perf_counter()
        of_tasks = []
        for number in ready:
            task, run, instances = some[number]
            self._placement.check(run)
            of_tasks.append((task, TaskRun("instances", run.raw, instances, run.position)))
        done = process_together(of_tasks, self._encode, self._encode_together)
        seconds = (time.perf_counter() - started) / len(ready)
        for number, (_, of_task), outcome in zip(ready, of_tasks, done, strict=True):
            if isinstance(outcome, Exception):
                found[number] = outcome
                continue
            effects, records = outcome
            self._metrics.computed("instances", seconds)
            step = step_of("instances", of_task.raw, some[number][1].position, effects)
            found[number] = Results(some[number][1], effects, records, step, of_task.raw.spans.value_bytes)
        return found

    def are_small(self, some: Sequence[runs.Run]) -> bool:
        """Return whether runs together take a few milliseconds, so that outputs may wait for the last run."""
        spans = [run.raw.spans for run in some]
        in_all = sum(each.value_bytes for each in spans)
        return in_all <= READ_TOGETHER and all(each.values.longest < LARGE_RECORD for each in spans)

    async def process(
        self,
        task: Task,
        run: runs.Run,
        is_ours: Callable[[], bool],
        instances: Instances | None = None,
        *,
        runs_of_step: int = 1,
    ) -> Results | None:
        """Return the results of a run; None if `is_ours` returns False once its models are in memory.

        `instances`: of the run, if they are read already; `runs_of_step`: runs that share the work of a step
        (Task.leading): the results may be those of the first records of the run, and have the rest.

        Raise ProcessingError, with the record, if our own code fails; SwapFileError if models are lost.
        """
        try:
            await self._load_models(task, run)
        except Exception:
            if is_ours():
                raise
            return None  # the task was dropped: its failure has no consequence
        if not is_ours():
            return None
        self._placement.check(run)
        spans = run.raw.spans
        size = spans.value_bytes
        is_large = size >= LARGE_RUN or spans.values.longest >= LARGE_RECORD
        if not is_large and not _has_many_headers(run.raw.headers):
            return self._compute(task, run, size, instances, runs_of_step)
        async with self._tasks_lock:
            if not is_ours():
                return None
            return await _to_the_end(lambda: self._compute(task, run, size, None, runs_of_step))

    def _compute(
        self, task: Task, run: runs.Run, size: int, instances: Instances | None, runs_of_step: int
    ) -> Results:
        started = time.perf_counter()
        source = self._sources[run.topic]
        whole = TaskRun(source, run.raw, instances, run.position)
        of_task, rest = task.leading(whole, STEP // runs_of_step), None
        if len(of_task.raw) < len(run.raw):
            run, rest = run.cut(len(of_task.raw))
            size = run.raw.spans.value_bytes
        effects, records = process_isolated(task, of_task, self._encode, run.skipped, run.refused)
        self._metrics.computed(source, time.perf_counter() - started)
        step = step_of(source, run.raw, run.position, effects, run.refused)
        return Results(run, effects, records, step, size, rest)

    async def _load_models(self, task: Task, run: runs.Run) -> None:
        """Load the models that a run names into memory."""
        started = time.perf_counter()
        if await reload(task.models, run.raw):
            self._metrics.model_reload_seconds.observe(time.perf_counter() - started)

    def _encode(self, raw: RawRecords, effects: Effects) -> list[OutputRecords]:
        """Return the outputs of a run; raise if the journal could not take its records."""
        if SOURCES[self._sources[raw.topic]].journalled:
            check_controls(raw, effects, self._room)
        return self._encoder.encode(raw, effects)

    def _encode_together(
        self, some: Sequence[tuple[RawRecords, Effects]]
    ) -> list[list[OutputRecords] | None]:
        """Return the outputs of runs of instances; None: the run has to be encoded alone."""
        try:
            return self._encoder.encode_together(some)
        except Exception:  # encoding each run alone, in isolation, shows which record it is
            logger.exception("answers of %d partitions could not be encoded together", len(some))
            return [None] * len(some)

    def send(self, results: Results) -> None:
        """Hand the outputs of a run to the producer, in order and without waiting; log and count its effects.

        Outputs have the order and the partition of their inputs.
        """
        raw = results.run.raw
        for each in results.records:
            columns = each.values, each.keys, each.timestamps, each.headers
            self.sender.offer_run(each.topic, raw.partition, *columns)
        self._metrics.sent(raw, results.effects)
        for notice in results.effects.notices:
            _say(results.run, notice)


def _is_ready(task: Task, run: runs.Run, instances: Instances | None, most: int) -> bool:
    """Return whether a run was read together with other runs, needs no models loaded, and is one step.

    `most`: work of a step (Task.leading).
    """
    is_read = instances is not None and not any_headers(run.raw.headers)
    if not is_read or run.skipped or run.refused or task.models.cache.n_evicted:
        return False
    return len(task.leading(TaskRun("instances", run.raw, instances), most).raw) == len(run.raw)


def _has_many_headers(headers: Sequence[Headers]) -> bool:
    """Return whether headers may take long, without reading them: they are millions if somebody wants it."""
    if not any_headers(headers):
        return False
    counts = header_counts(headers)
    return bool(counts.max() >= MANY_HEADERS or counts.sum() >= MANY_IN_ALL)


async def _to_the_end(compute: Callable[[], T]) -> T:
    """Compute in a thread; return only when it has ended, even if the waiting task was cancelled."""
    computing = asyncio.ensure_future(run_blocking(compute))
    try:
        return await asyncio.shield(computing)
    except asyncio.CancelledError:
        while not computing.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([computing])
        raise


class KeyPlacement:
    """Finds keys that a producer partitions unlike Java's clients: their records are spread over tasks."""

    def __init__(self, metrics: Metrics, partitions: int) -> None:
        self._metrics = metrics
        self._partitions = partitions
        self._seen: set[tuple[int, bytes | None]] = set()
        self._warned: set[str] = set()

    def check(self, run: runs.Run) -> None:
        """Count the keys of a run that belong to another partition; warn once for each topic."""
        here = run.raw.partition
        new = {(here, key) for key in coded(run.raw.keys).distinct} - self._seen
        if not new:
            return
        if len(self._seen) + len(new) > MAX_REMEMBERED_KEYS:
            self._seen.clear()
        self._seen |= new
        wrong = [key for _, key in new if key is not None and partition_of(key, self._partitions) != here]
        if not wrong:
            return
        self._metrics.misplaced_keys.labels(run.topic).inc(len(wrong))
        if run.topic not in self._warned:
            self._warned.add(run.topic)
            logger.warning(
                "topic %s partition %d: key %r belongs to partition %d for Java's clients (murmur2); records "
                "of one model may be spread over several. Set partitioner=murmur2_random in librdkafka's "
                "producers",
                run.topic,
                here,
                wrong[0],
                partition_of(wrong[0], self._partitions),
            )


def _say(run: runs.Run, notice: Notice) -> None:
    fields = {
        "topic": run.topic,
        "partition": run.raw.partition,
        "offset": notice.offset,
        "model": notice.model,
    }
    known = {name: value for name, value in fields.items() if value is not None}
    logger.log(logging.getLevelName(notice.level.upper()), "%s", notice.text, extra=known)
