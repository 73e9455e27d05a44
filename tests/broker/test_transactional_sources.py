"""Sources that transactional producers write: what is visible has one outcome, live and in a replay.

Records singly and in blocks, transactions that are aborted, two at once, markers at the end of the logs.
"""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from confluent_kafka import Producer

from core.model.model import Model
from streamapp.worker.observability.pages.snapshot_page import fetch_model
from streamapp.worker.task.task import Task, TaskRun
from streamapp.worker.task.task_config import TaskConfig
from tests.broker.workers import PATIENCE, UNHURRIED, Installation, WorkerProcess
from tests.conftest import Broker
from topics.codecs import decode_predictions, encode_instances
from topics.columns.records import Features, Format, RawRecords

pytestmark = pytest.mark.broker

KEY = b"model"
SPEC = '{"learner": {"name": "h-tree", "grace_period": 50, "tau": 0.3}}'
BLOCK = 40  # rows
OF_PROCESSING = ("grove_records_total", "grove_tree_splits_total", "grove_models_created_total")


class Writers:
    """Two producers whose transactions are open at the same time."""

    def __init__(self, place: Installation) -> None:
        self._place = place
        self._producers = [self._producer(place, number) for number in range(2)]
        self._random = random.Random(3)
        self._rows = 0
        self.visible: list[str] = []  # ids of rows, in no order

    @staticmethod
    def _producer(place: Installation, number: int) -> Producer:
        name = f"{place.prefix}{number}"
        producer = place.producer(**{"transactional.id": name, "transaction.timeout.ms": 120_000})
        producer.init_transactions(PATIENCE)
        return producer

    def write(self, rounds: int) -> None:
        """Write transactions of which every other pair is aborted, the last one too."""
        for round_ in range(rounds):
            for producer in self._producers:
                producer.begin_transaction()
            for turn in range(6):
                for number, producer in enumerate(self._producers):
                    ids = self._send(producer, blocks=turn % 3 == 2)
                    self.visible += ids if self._commits(round_, number) else []
            for number, producer in enumerate(self._producers):
                producer.produce(self._place.names.labels, b'{"id":"none","label":"yes"}', KEY, 0)
                assert producer.flush(PATIENCE) == 0
                producer.commit_transaction(PATIENCE) if self._commits(round_, number) else (
                    producer.abort_transaction(PATIENCE)
                )

    @staticmethod
    def _commits(round_: int, number: int) -> bool:
        return (round_ + number) % 2 == 1

    def _send(self, producer: Producer, *, blocks: bool) -> list[str]:
        n = BLOCK if blocks else self._random.randrange(1, 9)
        numbers = np.arange(self._rows, self._rows + n)
        self._rows += n
        x = np.column_stack([numbers * 37 % 101 / 10, numbers * 53 % 89 / 10])
        labels = ["yes" if a + b > 9 else "no" for a, b in x]
        ids = [str(number) for number in numbers]
        features = Features.of(("a", "b"), x)
        form: Format = "arrow" if blocks else "json"
        for value in encode_instances(features, format=form, ids=ids, labels=labels):
            producer.produce(self._place.names.instances, value, KEY, 0)
        return ids


def undisturbed(place: Installation) -> Model:
    """Return the model that one task makes of what is visible."""
    task = Task(0, TaskConfig(model_spec=SPEC))
    messages = [m for m in place.raw(place.names.instances) if m.partition() == 0]
    places: tuple[list[Any], list[int]] = [m.offset() for m in messages], [m.timestamp()[1] for m in messages]
    rest: tuple[list[Any], list[Any], list[Any]] = (
        [m.key() for m in messages],
        [m.value() for m in messages],
        [m.headers() or () for m in messages],
    )
    task.process(TaskRun("instances", RawRecords(place.names.instances, 0, *places, *rest)))
    return task.models.cache.model(task.models.keys.slot(KEY.decode()))


def check(place: Installation, worker: WorkerProcess, writers: Writers) -> None:
    place.wait_for_lag_0(alive=[worker])
    answered = decode_predictions([message.value() for message in place.raw(place.names.predictions)])
    ids = sorted(map(str, answered.ids))
    assert ids == sorted(writers.visible), "each visible row is answered once, no other is"
    assert answered.version.tolist() == list(range(len(writers.visible)))
    kept = fetch_model(worker.web.removeprefix("http://"), KEY.decode())
    assert kept == undisturbed(place).snapshot()


@pytest.mark.parametrize("guarantee", ["exactly_once", "at_least_once"])
def test_what_is_visible_has_one_outcome_and_a_replay_makes_the_same_models(
    broker: Broker, tmp_path: Path, guarantee: str
) -> None:
    settings = UNHURRIED | {
        "GROVE_MODEL_SPEC": SPEC,
        "GROVE_PROCESSING_GUARANTEE": guarantee,
        "GROVE_SNAPSHOT_MAX_REPLAY_MS": "600000",  # no snapshot: all is replayed
        "GROVE_SNAPSHOT_INTERVAL_MS": "600000",
    }
    place = Installation(
        broker.bootstrap_servers, "transactional.", 1, tmp_path, settings, module="streamapp worker"
    )
    writers = Writers(place)
    writers.write(4)  # there before the worker is
    with place.worker("w") as worker:
        worker.wait_until_ready()
        writers.write(4)
        check(place, worker, writers)
        assert all(worker.metric(name) > 0 for name in OF_PROCESSING)
        worker.kill()
        worker.start()
        worker.wait_until_ready()
        seen = sum(1 for _ in place.raw(place.names.instances)) + sum(
            1 for _ in place.raw(place.names.labels)
        )
        assert worker.metric("grove_replayed_records_total") == seen
        assert [worker.metric(name) for name in OF_PROCESSING] == [0, 0, 0], "a replay counts nothing else"
        check(place, worker, writers)
        writers.write(2)
        check(place, worker, writers)
        assert worker.metric("grove_sought_back_total") == 0
        assert worker.metric("grove_records_lost_total") == 0
        assert worker.terminate() == 0, worker.log
