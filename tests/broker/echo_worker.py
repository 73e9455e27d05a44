"""A worker whose task answers every record with its topic, offset and place in the order of processing.

It has no state worth the name: a restored partition counts on from the positions of its journal.

`python -m tests.broker.echo_worker`, settings from the environment. What it writes to `predictions`
(partition of the record, key of the record) is JSON: {"source", "offset", "timestamp", "n", "value"}; n
counts the records of the task.
"""

import asyncio
import json
import logging
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from confluent_kafka import KafkaError, Producer

from core.state_version import STATE_VERSION
from streamapp.settings import Settings, load_settings
from streamapp.settings.clients import librdkafka_properties
from streamapp.worker.app import add_parts, create_app, driver_of
from streamapp.worker.journal.entry import Step
from streamapp.worker.observability.health import Health
from streamapp.worker.observability.logs import configure_logs
from streamapp.worker.observability.metrics import Metrics
from streamapp.worker.outputs.record_sizes import OutputLimits
from streamapp.worker.outputs.senders import transactional_producer
from streamapp.worker.processing.results import Results
from streamapp.worker.restore.log_reader import LogReader
from streamapp.worker.restore.rebuild import Restored, RestoreRequest
from streamapp.worker.state_directory import StateDirectory, default_instance
from streamapp.worker.task.effects.effects import Effects
from streamapp.worker.task.sources import source_topics
from streamapp.worker.task.unit import Unit
from streamapp.worker.transport.runs import Run
from streamapp.worker.worker import check_topics, create_manager, run_app, snapshot_writer, with_port
from topics.definitions import TopicNames


class Echoes(Results):
    """The echoes of a run, in place of its outputs."""

    size = 0

    def __init__(self, run: Run, step: Step, echoes: list[dict[str, Any]]) -> None:
        super().__init__(run, Effects(), [], step, input_bytes=100 * len(echoes))
        self.echoes = echoes
        self.size = 200 * len(echoes)


class Nothing:
    """What there is to write down of a task that counts."""

    removed = ()
    state_version = STATE_VERSION

    def pieces(self) -> Iterator[Unit]:
        return iter(())

    def keep(self, unit: Unit) -> bool:
        raise AssertionError(unit, "is of nothing")

    def done(self) -> None:
        """Nothing counts as stored."""

    def abandon(self) -> None:
        """Nothing counts as changed again."""


class Counting:
    """A task that counts its records."""

    state_version = STATE_VERSION

    def __init__(self) -> None:
        self.n = 0

    def cut(self) -> Nothing:
        return Nothing()

    def advance(self, source: str, position: int) -> None:
        """Nothing depends on positions."""

    def close(self) -> None:
        """Nothing is held for it."""


class Echo:
    """The smallest pipeline, and its sender: counts, and echoes through an idempotent producer."""

    config = "{}"
    journal_bytes = 1 << 20

    def __init__(self, settings: Settings) -> None:
        names = TopicNames(settings.topics_prefix)
        self.sender = self
        self._topic = names.predictions
        self._sources = {topic: source for source, topic in source_topics(names).items()}
        self._lost: KafkaError | None = None
        self._producer = Producer(
            librdkafka_properties(settings, linger_ms=5, enable_idempotence=True)
            | {"on_delivery": self._delivered, "queue.buffering.max.messages": 1_000_000}
        )

    def _delivered(self, error: KafkaError | None, _message: Any) -> None:
        self._lost = self._lost or error

    def new_task(self, partition: int) -> Counting:
        return Counting()

    def adopt_task(self, task: Counting) -> None:
        """Nothing is to be done for it."""

    async def process(
        self, work: Sequence[tuple[Counting, Run]], is_ours: Callable[[int], bool], most: int
    ) -> list[Any]:
        return [self._outcome(task, run) for task, run in work]

    def _outcome(self, task: Counting, run: Run) -> Any:
        try:
            return self._echo(task, run)
        except ValueError as error:
            return error

    def _echo(self, task: Counting, run: Run) -> Any:
        raw, echoes = run.raw, []
        for value, offset, timestamp in zip(raw.values, raw.offsets, raw.timestamps, strict=True):
            task.n += 1
            source = raw.topic.rpartition(".")[2]
            text = value.decode() if value is not None else None
            echo = {"source": source, "offset": offset, "timestamp": timestamp, "n": task.n, "value": text}
            if text is not None and text.startswith("sleep "):
                logging.getLogger(__name__).warning("asleep")
                time.sleep(float(text.split()[1]))
            if text == "poison":
                message = "poisoned"
                raise ValueError(message)
            echoes.append(echo)
        step = Step(self._sources[run.topic], run.position)
        return Echoes(run, step, echoes)

    def send(self, group: Sequence[Any]) -> None:
        for results in group:
            self._send(results)

    def _send(self, results: Any) -> None:
        raw = results.run.raw
        for key, echo in zip(raw.keys, results.echoes, strict=True):
            while True:
                try:
                    self._producer.produce(self._topic, json.dumps(echo).encode(), key, raw.partition)
                    break
                except BufferError:
                    self._producer.poll(0.1)
        self._producer.poll(0)

    @property
    def is_full(self) -> bool:
        return False

    def drain(self) -> None:
        """`send` waits."""

    def flush(self) -> None:
        left = self._producer.flush(60)
        if left or self._lost is not None:
            message = f"{left} outputs not delivered: {self._lost}"
            raise RuntimeError(message)


class CommittedPositions:
    """Restores positions only."""

    def __init__(self, kafka: Mapping[str, Any], group: str, names: TopicNames) -> None:
        self._kafka, self._group = kafka, group
        self._topics = source_topics(names)

    def restore(self, request: RestoreRequest) -> Restored:
        with LogReader(self._kafka, self._group, request.abandoned) as reader:
            committed = reader.committed(self._topics.values(), request.partition)
        committed_at = {source: committed[topic] for source, topic in self._topics.items()}
        positions = {
            source: first if (at := committed_at[source]) is None else at
            for source, first in request.first.items()
        }
        return Restored(None, positions, 0)


def main() -> int:
    # It echoes through a producer of its own, which is in no transaction.
    settings = load_settings(processing_guarantee="at_least_once")
    instance = settings.group_instance_id or default_instance(0)
    configure_logs(settings.log_level, settings.log_format, worker=instance)
    with StateDirectory(settings.state_dir, instance):
        check_topics(settings)
        settings = with_port(settings)
        metrics, health = Metrics(), Health()
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        names, kafka = TopicNames(settings.topics_prefix), librdkafka_properties(settings)
        limits = OutputLimits.of_catalogue(names)
        producer = transactional_producer(settings, limits, instance, lambda: health.stopping)
        restorer = CommittedPositions(kafka, settings.application_id, names)
        pipeline: Any = Echo(settings)
        app = create_app(settings, instance)
        snapshots = snapshot_writer(settings, app, names, metrics)
        manager = create_manager(
            settings, driver_of(app), pipeline, producer, restorer.restore, snapshots, metrics, health
        )
        add_parts(app, settings, instance, manager=manager, metrics=metrics, health=health)
        return run_app(app, loop, health)


if __name__ == "__main__":
    code = main()
    sys.stderr.flush()
    os._exit(code) if "--exit-now" in sys.argv else sys.exit(code)
