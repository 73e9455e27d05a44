"""Snapshots on a real broker: workers that die at named steps, and on disks that are wiped.

What is compared is everything a user can see: each answer once, in order, and the bytes of every model, which
are those of one task that went through the same records undisturbed.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, ClassVar

import orjson
import pytest
from confluent_kafka import Consumer, TopicPartition

from core.model.model import Model
from streamapp.cli.main import main
from streamapp.worker.observability.pages.snapshot_page import fetch_model
from streamapp.worker.task.effects.effects import Effects
from streamapp.worker.task.task import Task, TaskRun
from streamapp.worker.task.task_config import TaskConfig
from tests.broker.workers import PATIENCE, Installation, WorkerProcess, wait_until
from topics.clients.partitioner import partition_of
from topics.columns.records import RawRecords

pytestmark = pytest.mark.broker

PARTITIONS = 2
KEYS = [f"m{number}" for number in range(5)]
SPEC = {"learner": {"name": "h-tree", "grace_period": 50, "leaf_model": "nba"}}
FOREST = {"learner": {"name": "arf", "members": 3}}
BOOSTED = {"learner": {"name": "sgbt", "members": 5, "bins": 8}}
FREQUENT = {
    "GROVE_MODEL_SPEC": json.dumps(SPEC),
    "GROVE_KAFKA_MAX_POLL_RECORDS": "100",
    "GROVE_PROCESSING_GUARANTEE": "exactly_once",
    "GROVE_SNAPSHOT_MAX_REPLAY_MS": "10",
    "GROVE_SNAPSHOT_INTERVAL_MS": "200",
}
SELDOM = {"GROVE_SNAPSHOT_MAX_REPLAY_MS": "600000", "GROVE_SNAPSHOT_INTERVAL_MS": "600000"}
SECONDS = 180


class Stream:
    """Labelled instances of a few models, by number."""

    spec: ClassVar[dict[str, Any]] = SPEC

    def __init__(self, place: Installation, spec: dict[str, Any] | None = None) -> None:
        """Take the installation, and the spec of its models if it is not that of the class."""
        self.place = place
        self.n = 0
        self.own = self.spec if spec is None else spec

    def grow(self, n: int) -> None:
        producer = self.place.producer()
        for number in range(self.n, self.n + n):
            key = self.key(number).encode()
            partition = partition_of(key, PARTITIONS)
            producer.produce(self.place.names.instances, self.value(number), key, partition)
        assert producer.flush(PATIENCE) == 0
        self.n += n

    @staticmethod
    def key(number: int) -> str:
        return KEYS[number % len(KEYS)]

    @staticmethod
    def value(number: int) -> bytes:
        a, b = number * 37 % 101 / 10, number * 53 % 89 / 10
        label = "yes" if a + b > 9 else "no"
        return orjson.dumps({"id": str(number), "features": {"a": a, "b": b}, "label": label})

    def undisturbed(self) -> dict[str, bytes]:
        """Return the models that one task makes of the records."""
        return self.played()[0]

    def played(self) -> tuple[dict[str, bytes], Effects]:
        """Return the models that one task makes of the records, and what it leads to."""
        task = Task(0, TaskConfig(model_spec=json.dumps(self.own)))
        numbers = range(self.n)
        keys: list[bytes | None] = [self.key(number).encode() for number in numbers]
        values: list[bytes | None] = [self.value(number) for number in numbers]
        times = [1_700_000_000_000] * self.n
        raw = RawRecords("t", 0, list(numbers), times, keys, values, [()] * self.n)
        effects = task.process(TaskRun("instances", raw))
        return {key: task.models.cache.model(task.models.keys.slot(key)).snapshot() for key in KEYS}, effects

    def check(self, worker: WorkerProcess) -> None:
        """Compare answers and models with what they must be."""
        self.place.wait_for_lag_0(SECONDS, [worker])
        versions_of_key: dict[str, list[tuple[str, int]]] = {key: [] for key in KEYS}
        for record in self.place.read(self.place.names.predictions):
            versions_of_key[record["key"].decode()].append((record["id"], record["version"]))
        for key, answers in versions_of_key.items():
            numbers = [str(number) for number in range(self.n) if self.key(number) == key]
            assert answers == list(zip(numbers, range(len(numbers)), strict=True)), key
        web = worker.web.removeprefix("http://")
        for key, expected in self.undisturbed().items():
            found_model = fetch_model(web, key)
            assert Model.restore(found_model).summary().labels == len(versions_of_key[key])
            assert found_model == expected, f"model {key} is not the one of an undisturbed task"


@pytest.fixture
def place(broker: Any, tmp_path: Path) -> Installation:
    module = "streamapp worker"
    return Installation(broker.bootstrap_servers, "snap.", PARTITIONS, tmp_path, dict(FREQUENT), module)


def journal_starts(place: Installation) -> list[int]:
    consumer = Consumer({"bootstrap.servers": place.servers, "group.id": "look"})
    topics = [TopicPartition(place.names.journal, number) for number in range(PARTITIONS)]
    starts = [int(consumer.get_watermark_offsets(topic, timeout=PATIENCE)[0]) for topic in topics]
    consumer.close()
    return starts


def grow_until_journals_are_trimmed(stream: Stream, place: Installation, worker: WorkerProcess) -> None:
    while min(journal_starts(place)) == 0:
        assert worker.code is None, worker.log
        stream.grow(500)
        place.wait_for_lag_0(SECONDS, [worker])


@pytest.mark.parametrize("spec", [SPEC, FOREST, BOOSTED], ids=["tree", "forest", "boosted"])
def test_a_worker_goes_on_from_snapshots_on_an_empty_disk_and_from_the_one_it_left_when_it_was_stopped(
    place: Installation, spec: dict[str, Any]
) -> None:
    """And with memory for none of its models: they are evicted after each run, and read for the next."""
    stream = Stream(place, spec)
    place.settings["GROVE_MODEL_SPEC"] = json.dumps(spec)
    with place.worker("w0", GROVE_MODELS_MAX_BYTES="1") as worker:
        worker.wait_until_ready()
        grow_until_journals_are_trimmed(stream, place, worker)
        assert worker.metric("grove_model_misses_total") > 0
        worker.kill()
        shutil.rmtree(place.directory / "state")
        worker.environment |= SELDOM
        worker.start()
        worker.wait_until_ready()
        assert "snapshot cannot be used" not in worker.log
        assert worker.metric("grove_replayed_records_total") < stream.n, "how much less is a matter of time"
        stream.grow(500)
        stream.check(worker)
        assert worker.metric("grove_models_resident") == 0
        assert worker.metric("grove_model_evictions_total") > 0
        assert worker.terminate() == 0, worker.log
        worker.start()
        worker.wait_until_ready()
        assert worker.metric("grove_restore_seconds_count") == PARTITIONS
        assert worker.metric("grove_replayed_records_total") == 0
        stream.check(worker)
        assert worker.terminate() == 0, worker.log


def changelog_end(place: Installation, partition: int) -> int:
    consumer = Consumer({"bootstrap.servers": place.servers, "group.id": "look"})
    log = TopicPartition(place.names.snapshots, partition)
    end = consumer.get_watermark_offsets(log, timeout=PATIENCE)[1]
    consumer.close()
    return int(end)


@pytest.mark.parametrize("replicas", [1, 0], ids=["standby", "no-standby"])
def test_a_standby_takes_over_without_reading_the_snapshots_from_their_beginning(
    place: Installation, replicas: int
) -> None:
    stream = Stream(place)
    place.settings |= {"GROVE_NUM_STANDBY_REPLICAS": str(replicas), "GROVE_KAFKA_SESSION_TIMEOUT_MS": "6000"}
    with place.worker("w0") as owner, place.worker("w1") as other:

        def shared() -> bool:
            for worker in (owner, other):
                assert worker.code is None, worker.log
            pages = [worker.page("/readyz?verbose") for worker in (owner, other)]
            return all(status == 200 and text.count("partition-") == 1 for status, text in pages)

        wait_until(shared, SECONDS, lambda: owner.log + other.log)
        lost = 0 if "partition-0" in owner.page("/readyz?verbose")[1] else 1
        while changelog_end(place, lost) < 50:
            stream.grow(500)
            place.wait_for_lag_0(SECONDS, [owner, other])
        read, written = "grove_changelog_records_total", changelog_end(place, lost)

        def caught_up() -> bool:
            return other.metric_of(read, role="standby") >= written

        if replicas:
            wait_until(caught_up, SECONDS, lambda: other.log)
        before = other.metric_of(read, role="active")
        owner.kill()
        wait_until(
            lambda: other.page("/readyz?verbose")[1].count("partition-") == PARTITIONS,
            SECONDS,
            lambda: other.log,
        )
        other.wait_until_ready()
        parts = other.metric_of(read, role="active") - before
        if replicas:  # Faust begins with the last one that is there, at each rebalance
            assert parts < written / 2, other.log
        else:
            assert parts >= written, other.log
        assert "snapshot cannot be used" not in other.log
        stream.grow(200)
        stream.check(other)
        assert other.terminate() == 0, other.log


@pytest.mark.parametrize(
    "points",
    [
        ["snapshot-chunks:2", "snapshot-index:2", "snapshot-cut:2", "snapshot-complete:2"],
        ["commit-before:5", "commit-after:5", "restore-read", "restore-replay", "live-before:2"],
    ],
    ids=["snapshot", "commit-and-restore"],
)
def test_a_worker_that_dies_at_a_named_step_is_continued_by_the_next_one(
    place: Installation, points: list[str]
) -> None:
    stream = Stream(place)
    for point in points:
        with place.worker("w0", GROVE_FAULT_POINT=point) as worker:

            def died(worker: WorkerProcess = worker) -> bool:
                if worker.code is None:
                    stream.grow(200)
                return worker.code is not None

            wait_until(died, SECONDS, lambda worker=worker: worker.log, every=0.3)  # type: ignore[misc]
            assert worker.code == -9, worker.log
    with place.worker("w0") as worker:
        worker.wait_until_ready()
        stream.grow(500)
        stream.check(worker)
        assert worker.terminate() == 0, worker.log


def test_a_partition_whose_snapshots_are_gone_is_stopped_until_it_is_reset(
    place: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    stream = Stream(place)
    with place.worker("w0") as worker:
        worker.wait_until_ready()
        grow_until_journals_are_trimmed(stream, place, worker)
        assert worker.terminate() == 0, worker.log
        lost = partition_of(KEYS[0].encode(), PARTITIONS)
        consumer = Consumer({"bootstrap.servers": place.servers, "group.id": "look"})
        end = consumer.get_watermark_offsets(TopicPartition(place.names.instances, lost), timeout=PATIENCE)[1]
        consumer.close()
        place.delete_before(place.names.instances, lost, int(end))
        stream.grow(50)
        shutil.rmtree(place.directory / "state")
        tombstones(place, lost)
        worker.start()
        wait_until(lambda: "cannot be restored" in worker.log, SECONDS, lambda: worker.log)
        status, text = worker.page("/readyz?verbose")
        assert status == 503
        assert f"grove models reset --partition {lost}" in text
        assert worker.terminate() == 0, worker.log
    options = ["-b", place.servers, "--topics-prefix", place.prefix, "--set", f"application.id={place.group}"]
    reset = ["models", "reset", "--partition", str(lost), "--yes", *options]
    wait_until(lambda: main(reset) == 0, SECONDS, lambda: capsys.readouterr().err, every=1.0)
    with place.worker("w0") as worker:
        worker.wait_until_ready()
        place.wait_for_lag_0(SECONDS, [worker])
        assert worker.terminate() == 0, worker.log


def tombstones(place: Installation, partition: int) -> None:
    """Remove all chunks of a partition from the changelog."""
    producer = place.producer()
    for message in place.raw(place.names.snapshots):
        if message.partition() == partition and message.value() is not None:
            producer.produce(place.names.snapshots, None, message.key(), partition)
    assert producer.flush(PATIENCE) == 0
