"""Topics that are deleted or grow under running workers: one clear error and an end, instead of spinning."""

import threading
import time
from pathlib import Path

import pytest

from tests.broker.workers import PATIENCE, Installation, WorkerProcess, wait_until
from tests.conftest import Broker

pytestmark = pytest.mark.broker

GROVE = "streamapp worker"  # the real one


@pytest.mark.parametrize("source", ["instances", "labels", "controls"])
def test_a_deleted_source_topic_ends_the_worker_with_its_name(
    broker: Broker, tmp_path: Path, source: str
) -> None:
    place = Installation(broker.bootstrap_servers, "deleted.", 2, tmp_path, module=GROVE)
    topic = getattr(place.names, source)
    with place.worker("w") as worker:
        worker.wait_until_ready()
        place.delete(topic)
        assert worker.wait() == 1, worker.log
    assert f"grove: topic '{topic}' was deleted" in worker.log
    assert "grove topics create" in worker.log
    assert "Traceback" not in worker.log


def test_all_source_topics_deleted_under_load_end_both_workers_without_spinning(
    broker: Broker, tmp_path: Path
) -> None:
    place = Installation(broker.bootstrap_servers, "gone.", 2, tmp_path)
    producer, done = place.producer(), threading.Event()

    def produce() -> None:
        while not done.wait(0.001):
            producer.produce(place.names.instances, b"x", b"key", 0)
            producer.poll(0)

    with place.worker("w-1") as first, place.worker("w-2") as second:
        workers = (first, second)
        for worker in workers:
            worker.wait_until_ready()
        load = threading.Thread(target=produce)
        load.start()
        try:
            wait_until(
                lambda: sum(w.metric("grove_commit_seconds_count") for w in workers) > 1,
                PATIENCE,
                lambda: first.log + second.log,
            )
            place.delete(place.names.instances, place.names.labels, place.names.controls)
            wait_until(
                lambda: "not found in cluster metadata" in first.log + second.log,
                PATIENCE,
                lambda: first.log + second.log,
            )
        finally:
            done.set()
            load.join()
        since = time.monotonic()
        began = [worker.cpu_seconds for worker in workers]
        spent = dict(zip(workers, began, strict=True))
        wait_until(
            lambda: all(has_ended(worker, spent) for worker in workers),
            PATIENCE,
            lambda: first.log + second.log,
            every=0.01,
        )
        waited = time.monotonic() - since
        assert [worker.code for worker in workers] == [1, 1]
    for worker, before in zip(workers, began, strict=True):
        assert f"topic '{place.names.instances}' was deleted" in worker.log
        # Who spins computes all the time; on a busy machine both take longer.
        assert spent[worker] - before < max(2.0, waited / 2), "waiting for the topics costs next to nothing"


def has_ended(worker: WorkerProcess, spent: dict[WorkerProcess, float]) -> bool:
    """Note what a worker has computed while it runs."""
    if worker.code is None:
        spent[worker] = worker.cpu_seconds
        return False
    return True


def test_a_source_topic_that_grows_ends_the_worker(broker: Broker, tmp_path: Path) -> None:
    place = Installation(broker.bootstrap_servers, "grown.", 2, tmp_path, module=GROVE)
    settings = {"GROVE_KAFKA_METADATA_MAX_AGE_MS": "1000"}
    with place.worker("w", fresh=False, **settings) as worker:
        worker.wait_until_ready()
        place.grow(place.names.instances, 4)
        assert worker.wait() == 1, worker.log
    assert f"grove: topic '{place.names.instances}' has 4 partitions, it had 2" in worker.log


@pytest.mark.parametrize("lost_in", ["_stop_heartbeat_task", "_stop_commit_offsets_refresh_task"])
def test_a_worker_that_fails_in_a_rebalance_stops_though_a_cancellation_is_lost(
    broker: Broker, tmp_path: Path, lost_in: str
) -> None:
    """The metadata that end a worker also let aiokafka join the group again."""
    place = Installation(broker.bootstrap_servers, "lost.", 2, tmp_path)
    place.module = f"tests.broker.lost_cancellation_worker {lost_in}"
    with place.worker("w", GROVE_KAFKA_METADATA_MAX_AGE_MS="1000") as worker:
        worker.wait_until_ready()
        place.grow(place.names.instances, 4)
        assert worker.wait() == 1, worker.log
    assert "has not stopped" not in worker.log


def test_a_deleted_output_topic_ends_the_worker_with_its_name(broker: Broker, tmp_path: Path) -> None:
    place = Installation(broker.bootstrap_servers, "mute.", 2, tmp_path, module=GROVE)
    producer = place.producer()
    with place.worker("w") as worker:
        worker.wait_until_ready()
        place.delete(place.names.predictions)
        for i in range(10):
            producer.produce(place.names.instances, b'{"features":{"a":1}}', b"key-%d" % i, i % 2)
        assert producer.flush(PATIENCE) == 0
        assert worker.wait() == 1, worker.log
    assert place.names.predictions in worker.log
    assert place.lag() == 10, "nothing is committed past what could not be answered"
