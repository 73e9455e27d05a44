"""A run's way through the worker: decode and process (the task), then outputs, log lines and counts.

What the driver calls a run of the topic `grove.labels` is a run of the source `labels` for the task.
"""

from __future__ import annotations

import logging
import time
from typing import Final, get_args

from streamapp import runs
from streamapp.metrics import Metrics
from streamapp.outputs.outbox import Outbox
from streamapp.settings import Settings
from streamapp.task.careful import process_carefully
from streamapp.task.config import TaskConfig
from streamapp.task.effects import Effects, Notice
from streamapp.task.model_quota import ModelQuota
from streamapp.task.task import Run, Source, Task
from topics.definitions import TopicNames
from topics.partitioner import partition_of

logger = logging.getLogger(__name__)

MAX_REMEMBERED_KEYS: Final = 1 << 17  # keys whose partition was checked, per worker


class Pipeline:
    """Tasks, outbox, metrics and log of one worker, as the task manager uses them."""

    def __init__(self, settings: Settings, metrics: Metrics, *, partitions: int) -> None:
        """`partitions`: what every topic has."""
        names = TopicNames(settings.topics_prefix)
        self._sources: dict[str, Source] = {getattr(names, source): source for source in get_args(Source)}
        self._config = TaskConfig.from_settings(settings)
        self._quota = ModelQuota(self._config.models_max_count)
        self._outbox = Outbox(settings, names)
        self._metrics = metrics
        self._placement = KeyPlacement(metrics, partitions)

    def new_task(self, partition: int) -> Task:
        """Return a task with new models."""
        return Task(partition, self._config, self._quota)

    def drop_task(self, task: Task) -> None:
        """Give up a task: its partition left, or its state is not to be trusted."""
        task.close()

    def compute(self, task: Task, run: runs.Run) -> Effects:
        """Return the effects of a run."""
        started = time.perf_counter()
        source = self._sources[run.topic]
        self._placement.check(run)
        effects = process_carefully(task, Run(source, run.raw, position=run.position))
        self._metrics.computed(source, time.perf_counter() - started)
        return effects

    def send(self, run: runs.Run, effects: Effects) -> None:
        """Produce the outputs of a run; say and count what it led to."""
        self._outbox.send(run.raw.partition, run.raw, effects)
        self._metrics.sent(run.raw, effects)
        for notice in effects.notices:
            _say(run, notice)

    def flush(self) -> None:
        """Return when the broker has all outputs; raise when it cannot have them."""
        self._outbox.flush()


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
