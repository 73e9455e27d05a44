"""Pipeline: a run through the worker: decode, process, encode (the task), then outputs, logs and counts.

What the driver calls a run of the topic `grove.labels` is a run of the source `labels` for the task.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from typing import Final

from streamapp.journal.entry import Step
from streamapp.journal.ledger import check_controls, room_for_steps, step_of
from streamapp.observability.metrics import Metrics
from streamapp.outputs.encoder import Encoder
from streamapp.outputs.limits import OutputLimits
from streamapp.outputs.outbox import Outbox
from streamapp.outputs.outgoing import OutputRecords
from streamapp.processing.model_loading import reload
from streamapp.settings import Settings
from streamapp.snapshots.writer import TaskCut
from streamapp.task.config import TaskConfig
from streamapp.task.effects.effects import Effects, Notice
from streamapp.task.error_isolation import process_isolated
from streamapp.task.models.memory import ModelMemory
from streamapp.task.models.quota import ModelQuota
from streamapp.task.sources import SOURCES, source_topics
from streamapp.task.task import Task, TaskRun
from streamapp.transport import runs
from topics.definitions import TopicNames
from topics.partitioner import partition_of
from topics.records import RawRecords
from topics.sender import Sender

logger = logging.getLogger(__name__)

MAX_REMEMBERED_KEYS: Final = 1 << 17  # keys whose partition was checked, per worker


@dataclass(frozen=True, slots=True, eq=False)
class Results:
    """What a run led to, and the records that say so, ready to be sent."""

    effects: Effects
    records: list[OutputRecords]


class Pipeline:
    """Tasks, outbox, metrics and log of one worker, as the task manager uses them."""

    def __init__(
        self,
        settings: Settings,
        sender: Sender,
        metrics: Metrics,
        *,
        partitions: int,
        limits: OutputLimits,
        memory: ModelMemory | None = None,
    ) -> None:
        """`sender`: the producer of the outputs; `partitions`: what every topic has; `limits`: how large its
        records may be; `memory`: of the models of all tasks (None: no limit)."""
        names = TopicNames(settings.topics_prefix)
        self._sources = {topic: source for source, topic in source_topics(names).items()}
        self._config = TaskConfig.from_settings(settings)
        self.journal_bytes = limits.of(names.journal)
        self._room = room_for_steps(self.config, self.journal_bytes)
        self._quota = ModelQuota(self._config.models_max_count)
        self._memory = memory or ModelMemory()
        self._encoder = Encoder.from_settings(settings, names, limits)
        self._outbox = Outbox(sender)
        self._metrics = metrics
        self._placement = KeyPlacement(metrics, partitions)

    @property
    def config(self) -> str:
        """The configuration of tasks, as the journal has it."""
        return self._config.to_json()

    def new_task(self, partition: int) -> Task:
        """Return a task with new models."""
        return Task(partition, self._config, self._quota, self._memory)

    def adopt_task(self, task: Task) -> None:
        """Make a restored task one of this worker's: its configuration, its share of models."""
        task.configure(self._config)
        task.join(self._quota, self._memory)

    def cut_task(self, task: Task) -> TaskCut:
        """Return a task as it is now, for a snapshot."""
        return task.cut()

    def advance(self, task: Task, topic: str, position: int) -> None:
        """Tell a task that a topic has no record left before a position."""
        task.advance(self._sources[topic], position)

    def drop_task(self, task: Task) -> None:
        """Give up a task: its partition left, or its state is not to be trusted."""
        task.close()

    async def ready(self, task: Task, run: runs.Run) -> None:
        """Return when the models that a run names are in memory; SwapFileError."""
        started = time.perf_counter()
        if await reload(task.models, run.raw):
            self._metrics.model_reload_seconds.observe(time.perf_counter() - started)

    def compute(self, task: Task, run: runs.Run) -> Results:
        """Return what a run leads to; ProcessingError, with the record, if our own code fails."""
        started = time.perf_counter()
        source = self._sources[run.topic]
        self._placement.check(run)
        of_task = TaskRun(source, run.raw, position=run.position)
        effects, records = process_isolated(task, of_task, self._encode, run.skipped)
        self._metrics.computed(source, time.perf_counter() - started)
        return Results(effects, records)

    def _encode(self, raw: RawRecords, effects: Effects) -> list[OutputRecords]:
        """Return the outputs of a run; raise if the journal could not take its records."""
        if SOURCES[self._sources[raw.topic]].journalled:
            check_controls(raw, effects, self._room)
        return self._encoder.encode(raw, effects)

    def step(self, run: runs.Run, results: Results) -> Step:
        """Return what the journal has to say of a run."""
        return step_of(self._sources[run.topic], run.raw, run.position, results.effects)

    def send(self, run: runs.Run, results: Results) -> None:
        """Produce the outputs of a run; say and count what it led to."""
        self._outbox.send(run.raw.partition, results.records)
        self._metrics.sent(run.raw, results.effects)
        for notice in results.effects.notices:
            _say(run, notice)

    def bytes_of(self, results: Results) -> int:
        """Return what results take in memory, roughly: the records to be sent."""
        return sum(len(value) for each in results.records for value in each.values if value)

    @property
    def is_full(self) -> bool:
        """Whether the producer has no room for more outputs."""
        return self._outbox.is_full

    def drain(self) -> None:
        """Return when the producer has room again."""
        self._outbox.drain()

    def flush(self) -> None:
        """Return when the broker has all outputs; raise when it cannot have them."""
        self._outbox.flush()

    def close(self) -> None:
        """Give up outputs that are not delivered."""
        self._outbox.close()


class KeyPlacement:
    """Finds keys whose producer does not partition as Java's clients do: their records are spread over
    tasks."""

    def __init__(self, metrics: Metrics, partitions: int) -> None:
        self._metrics = metrics
        self._partitions = partitions
        self._seen: set[tuple[int, bytes | None]] = set()
        self._warned: set[str] = set()

    def check(self, run: runs.Run) -> None:
        """Count the keys of a run that belong to another partition; warn once a topic."""
        here = run.raw.partition
        new = {(here, key) for key in set(run.raw.keys)} - self._seen
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
