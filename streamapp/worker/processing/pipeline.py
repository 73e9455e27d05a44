"""Pipeline: a group of runs through the worker, in one call: load models, decode, process (tasks), encode.

Another call, `send`, sends the outputs of the group, at once or when a commit that is under way is over. The
driver names a run by its topic (`grove.labels`), the task by its source (`labels`). A stage that fails for
the whole group is repeated for each run alone; if a run fails alone, its task processes it record by record.

Most groups take a few milliseconds, and are computed where they arrive, in the event loop. A large run (a
block of ten thousand rows, a schema of thousands of values) may take seconds: a thread computes it, so that
heartbeats, fetches, commits and pages continue. Code that touches a task from outside
must hold `tasks_lock`, which is held as long as the thread computes.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeVar, cast

from streamapp.settings import Settings
from streamapp.worker.blocking_calls import run_blocking
from streamapp.worker.journal.ledger import check_controls, room_for_steps, step_of
from streamapp.worker.observability.metrics import Metrics
from streamapp.worker.outputs.encoder import Encoder
from streamapp.worker.outputs.outgoing import OutputRecords
from streamapp.worker.outputs.record_sizes import OutputLimits
from streamapp.worker.outputs.schema_registration import SchemaIds
from streamapp.worker.processing.model_loading import reload
from streamapp.worker.processing.results import (
    PartOfResults,
    Results,
    ResultsTogether,
    with_whole_rounds,
)
from streamapp.worker.processing.run_groups import is_large
from streamapp.worker.task.effects.effects import Effects, Notice
from streamapp.worker.task.error_isolation import process_isolated
from streamapp.worker.task.instances.leading_records import STEP
from streamapp.worker.task.models.eviction.model_memory import ModelMemory
from streamapp.worker.task.models.families import FamilyRegister
from streamapp.worker.task.models.quota import ModelQuota
from streamapp.worker.task.rounds.family_round import FamilyRounds
from streamapp.worker.task.sources import SOURCES, SourceName, source_topics
from streamapp.worker.task.task import CODE, Task, TaskRun
from streamapp.worker.task.task_config import TaskConfig
from streamapp.worker.transport.runs import Run
from topics.clients.partitioner import partition_of_new
from topics.codecs.compiled.keys import coded
from topics.columns.records import Ints64, RawRecords
from topics.columns.spans import TIMESTAMP
from topics.definitions import TopicNames
from topics.producing.batch_producer import BatchProducer

logger = logging.getLogger(__name__)

MAX_REMEMBERED_KEYS: Final = 1 << 17  # keys whose partition was checked, per worker

T = TypeVar("T")

TaskAndRun = tuple[Task, Run]


class Pipeline:
    """Makes tasks, and processes their runs into results, for one worker."""

    def __init__(
        self,
        settings: Settings,
        sender: BatchProducer,
        metrics: Metrics,
        *,
        partitions: int,
        limits: OutputLimits,
        memory: ModelMemory | None = None,
        tasks_lock: asyncio.Lock | None = None,
        features: bool = True,
        schema_ids: SchemaIds | None = None,
    ) -> None:
        """`sender`: the producer of the outputs; `partitions`: of every topic; `limits`: largest records.

        `memory`: of the models of all tasks (None: no limit); `tasks_lock`: held while a task changes in a
        thread; `features`: the topics of feature acquisition exist; `schema_ids`: for outputs in Avro.
        """
        names = TopicNames(settings.topics_prefix, features)
        self._sources = {topic: source for source, topic in source_topics(names).items()}
        self._instances = names.instances
        self._config = TaskConfig.from_settings(settings, features=features)
        self.journal_bytes = limits.of(names.journal)
        self._room = room_for_steps(self.config, self.journal_bytes)
        self._quota = ModelQuota(self._config.models_max_count)
        self._families = FamilyRegister()
        self._rounds = FamilyRounds()
        self._memory = memory or ModelMemory()
        self._encoder = Encoder.from_settings(settings, names, limits, self._check, schema_ids)
        self.sender = sender
        self._tasks_lock = tasks_lock or asyncio.Lock()
        self._metrics = metrics
        self._placement = KeyPlacement(metrics, partitions)

    @property
    def config(self) -> str:
        """The configuration of tasks, as JSON for the journal."""
        return self._config.to_json()

    def new_task(self, partition: int) -> Task:
        """Return a task with new models."""
        task = Task(partition, self._config, self._quota, self._memory)
        task.models.traits.families.join(self._families)
        return task

    def adopt_task(self, task: Task) -> None:
        """Give a restored task this worker's configuration and its share of memory for models."""
        task.configure(self._config)
        task.join(self._quota, self._memory)
        task.models.traits.families.join(self._families)

    async def process(
        self, work: Sequence[TaskAndRun], is_ours: Callable[[int], bool], most: int = STEP
    ) -> list[Results | Exception | None]:
        """Return the results of each run of a group (`run_groups.py`), all of different tasks.

        An exception in place of results stops the partition, or ends the worker if models are lost
        (SwapFileError). None: `is_ours` returned False for the partition once the models were in memory.
        `most`: the most work of each run (`Task.leading`); if a run has more, the results are those of its
        first records, and `rest` has the others. Between the last run that is computed and the return, no
        other coroutine runs.
        """
        failures = [
            await self._load_models(task, run) if task.models.cache.n_evicted else None for task, run in work
        ]
        is_slow = len(work) == 1 and is_large(work[0][1])  # a large run is alone in its group
        async with self._tasks_lock if is_slow else contextlib.nullcontext():
            ours = [is_ours(run.raw.partition) for _, run in work]
            ready = [number for number, own in enumerate(ours) if own and failures[number] is None]
            compute = partial(self._compute, [work[number] for number in ready], most)
            computed = await _to_the_end(compute) if is_slow and ready else compute()
            outcomes: list[Results | Exception | None] = [
                failure if own else None for own, failure in zip(ours, failures, strict=True)
            ]
            for number, outcome in zip(ready, computed, strict=True):
                outcomes[number] = outcome
            return outcomes

    async def _load_models(self, task: Task, run: Run) -> Exception | None:
        """Load the models that a run names into memory; return the exception if one cannot be loaded."""
        started = time.perf_counter()
        try:
            if await reload(task.models, run.raw):
                self._metrics.model_reload_seconds.observe(time.perf_counter() - started)
        except Exception as error:  # noqa: BLE001 - without consequence if the task was dropped meanwhile
            return error
        return None

    def _compute(self, work: Sequence[TaskAndRun], most: int) -> list[Results | Exception]:
        """Return the results of each run, or the exception that concerns this run only."""
        if not work:
            return []
        started = time.perf_counter()
        outcomes: list[Results | Exception | None] = [None] * len(work)
        ended, together = self._together(work)
        if together is not None:
            for at, run in enumerate(together.runs):
                outcomes[run] = PartOfResults(together, at, work[run][1])
        remaining = [number for number, outcome in enumerate(outcomes) if outcome is None]
        if remaining:
            self._compute_each(work, remaining, ended, most, started, outcomes)
        if together is not None:
            seconds = (time.perf_counter() - started) / len(work)
            self._metrics.computed("instances", seconds, len(together.runs))
        return cast("list[Results | Exception]", outcomes)

    def _together(
        self, work: Sequence[TaskAndRun]
    ) -> tuple[dict[int, Effects | Exception], ResultsTogether | None]:
        """Process the runs that can be answered together.

        Return effects or exceptions of those that lead to more than answers, and the results of the others.
        """
        numbers = [
            number
            for number, (_, run) in enumerate(work)
            if run.topic == self._instances and not (run.skipped or run.refused or run.unknown)
        ]
        if len(numbers) < 2:
            return {}, None
        outcome = self._rounds.process(
            [(work[number][0], work[number][1].raw, work[number][1].position) for number in numbers],
            self._config,
        )
        self._placement.check_keys(self._instances, outcome.keys)
        ended = {numbers[at]: effects for at, effects in outcome.done.items()}
        answers = outcome.answers
        if answers is None:
            return ended, None
        runs = [numbers[run] for run in answers.runs]
        try:
            outputs = self._encoder.encode_round(answers)
        except Exception:  # encoding each run alone, in isolation, shows which record it is
            logger.exception("answers of %d partitions could not be encoded together", len(runs))
            outputs = None
        if outputs is not None:
            return ended, ResultsTogether(runs, answers, outputs)
        return ended | {run: answers.effects(at) for at, run in enumerate(runs)}, None

    def _compute_each(
        self,
        work: Sequence[TaskAndRun],
        numbers: Sequence[int],
        ended: Mapping[int, Effects | Exception],
        most: int,
        started: float,
        outcomes: list[Results | Exception | None],
    ) -> None:
        """Add the outcomes of runs (`numbers`, of `work`), each of which its task processes.

        ended: effects and exceptions of runs that were processed already.
        """
        steps: list[tuple[int, Run, Run | None]] = []  # number of a run, its first records, the rest
        of_tasks: list[tuple[Task, TaskRun]] = []
        ended_of_tasks: dict[int, Effects | Exception] = {}
        new = [number for number in numbers if number not in ended]
        batches = dict(zip(new, self._decoded([work[number] for number in new]), strict=True))
        for number in numbers:
            task, run = work[number]
            try:
                if number in ended:
                    leading, first, rest = TaskRun("instances", run.raw, None, run.position), run, None
                    ended_of_tasks[len(of_tasks)] = ended[number]
                else:
                    leading, first, rest = self._leading(task, run, batches[number], most)
            except Exception as error:  # noqa: BLE001 - of one run: the others go on
                outcomes[number] = error
                continue
            steps.append((number, first, rest))
            of_tasks.append((task, leading))
        isolated = process_isolated(of_tasks, self._encoder.encode_runs, ended_of_tasks)
        seconds = (time.perf_counter() - started) / len(work)
        for (number, run, rest), outcome in zip(steps, isolated, strict=True):
            try:
                outcomes[number] = (
                    outcome if isinstance(outcome, Exception) else self._results(run, rest, *outcome, seconds)
                )
            except Exception as error:  # noqa: BLE001 - of one run: its task is given up, the others go on
                outcomes[number] = error

    def _leading(self, task: Task, run: Run, batch: Any, most: int) -> tuple[TaskRun, Run, Run | None]:
        """Return the first records of a run, as its task takes them and as a run, and the rest."""
        self._placement.check(run)  # decoding has found the distinct keys
        source = self._sources[run.topic]
        whole = TaskRun(source, run.raw, batch, run.position, run.skipped, run.refused, run.unknown)
        leading = task.leading(whole, most)
        n = len(leading.raw)
        first, rest = run.cut(n) if n < len(run.raw) else (run, None)
        return leading, first, rest

    def _decoded(self, work: Sequence[TaskAndRun]) -> list[Any]:
        """Return the batch of each run; None: the task decodes the run."""
        batches: list[Any] = [None] * len(work)
        numbers: dict[SourceName, list[int]] = {}
        for number, (_, run) in enumerate(work):
            if not (run.skipped or run.refused or run.unknown):  # such records are not read
                numbers.setdefault(self._sources[run.topic], []).append(number)
        for source, of_source in numbers.items():
            runs = [work[number][1].raw for number in of_source]
            try:
                decoded = CODE[source].decode(runs, self._config.limits)
            except Exception:  # the task decodes each run again, in isolation, and names the record
                logger.exception("%s of %d partitions could not be decoded in one go", source, len(runs))
                continue
            for number, batch in zip(of_source, decoded, strict=True):
                batches[number] = batch
        return batches

    def _results(
        self, run: Run, rest: Run | None, effects: Effects, records: list[OutputRecords], seconds: float
    ) -> Results:
        source = self._sources[run.topic]
        self._metrics.computed(source, seconds)
        step = step_of(source, run.raw, run.position, effects, run.refused)
        return Results(run, effects, records, step, run.raw.spans.value_bytes, rest)

    def _check(self, raw: RawRecords, effects: Effects) -> None:
        """Raise if the journal could not take the records of a run."""
        if SOURCES[self._sources[raw.topic]].journalled:
            check_controls(raw, effects, self._room)

    def send(self, group: Sequence[Results]) -> None:
        """Hand the outputs of runs to the producer, in order and without waiting; log and count the effects.

        Outputs have the order and the partition of their inputs.
        """
        in_order = with_whole_rounds(group)
        with self.sender.gathering():
            for results in in_order:
                if isinstance(results, ResultsTogether):
                    self._offer(results.outputs.records, results.outputs.partitions)
                    continue
                for outputs in results.records:
                    self._offer(outputs, results.run.raw.partition)
        self.sender.hand_over()
        for results in in_order:
            try:
                self._count(results)
            except Exception:
                # The outputs are sent: to repeat or to drop the run would lose more than its counts.
                if isinstance(results, ResultsTogether):
                    logger.exception("%d runs were not counted", results.n_runs)
                    continue
                raw = results.run.raw
                logger.exception("topic=%s partition=%d: a run was not counted", raw.topic, raw.partition)

    def _count(self, results: Results | ResultsTogether) -> None:
        """Count and log what runs have led to."""
        if isinstance(results, ResultsTogether):
            newest = results.answers.spans.table[TIMESTAMP, results.answers.ends[1:] - 1]
            self._metrics.sent_answers(results.answered, results.labelled, newest)
            return
        self._metrics.sent(results.run.raw, results.effects)
        for notice in results.effects.notices:
            _log(results.run, notice)

    def _offer(self, outputs: OutputRecords, partition: int | Ints64) -> None:
        columns = outputs.values, outputs.keys, outputs.timestamps, outputs.headers
        self.sender.offer_run(outputs.topic, partition, *columns)


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

    def check(self, run: Run) -> None:
        """Count the keys of a run that belong to another partition; warn once for each topic."""
        here = run.raw.partition
        self.check_keys(run.topic, [(here, key) for key in coded(run.raw.keys).distinct])

    def check_keys(self, topic: str, keys: Sequence[tuple[int, bytes | None]]) -> None:
        """Count the keys that are in another partition than theirs; `keys`: each with its partition."""
        if self._seen.issuperset(keys):
            return
        new = set(keys) - self._seen
        if len(self._seen) + len(new) > MAX_REMEMBERED_KEYS:
            self._seen.clear()
        self._seen |= new
        wrong = [
            (here, key)
            for here, key in new
            if key is not None and partition_of_new(key, self._partitions) != here
        ]
        if not wrong:
            return
        self._metrics.misplaced_keys.labels(topic).inc(len(wrong))
        if topic not in self._warned:
            self._warned.add(topic)
            here, first = min(wrong)
            logger.warning(
                "topic %s partition %d: key %r belongs to partition %d for Java's clients (murmur2); records "
                "of one model may be spread over several. Set partitioner=murmur2_random in librdkafka's "
                "producers",
                topic,
                here,
                first,
                partition_of_new(first, self._partitions),
            )


def _log(run: Run, notice: Notice) -> None:
    fields = {
        "topic": run.topic,
        "partition": run.raw.partition,
        "offset": notice.offset,
        "model": notice.model,
    }
    known = {name: value for name, value in fields.items() if value is not None}
    logger.log(logging.getLevelName(notice.level.upper()), "%s", notice.text, extra=known)
