"""The topic of snapshots made anew, trimmed, or written to by a stranger, behind a worker's copy of it."""

import shutil
import signal
import time
from pathlib import Path

import orjson
import pytest
from confluent_kafka.admin import AdminClient

from benchmarks.chaos.raw_client import RawClient
from benchmarks.chaos.wire import Record
from tests.broker.workers import PATIENCE, Installation, WorkerProcess, wait_until
from tests.conftest import Broker
from topics.clients import admin

pytestmark = pytest.mark.broker


@pytest.fixture
def place(broker: Broker, tmp_path: Path) -> Installation:
    return Installation(broker.bootstrap_servers, "changelog.", 1, tmp_path, module="streamapp worker")


def load(place: Installation, first: int, n: int) -> None:
    producer = place.producer()
    for number in range(first, first + n):
        document = {"id": str(number), "features": {"a": number % 7}, "label": "xy"[number % 2]}
        producer.produce(place.names.instances, orjson.dumps(document), b"model", 0)
    assert producer.flush(PATIENCE) == 0


def process(place: Installation, worker: WorkerProcess, first: int, n: int) -> None:
    """Let a worker process records, and end with a snapshot of them."""
    load(place, first, n)
    worker.wait_until_ready()
    place.wait_for_lag_0(alive=[worker])
    worker.signal(signal.SIGUSR2)
    assert worker.wait() == 0, worker.log


def versions(place: Installation) -> list[int]:
    return [answer["version"] for answer in place.read(place.names.predictions)]


def test_one_made_anew_ends_the_worker_with_what_to_do_and_that_helps(place: Installation) -> None:
    snapshots, client = place.names.snapshots, AdminClient({"bootstrap.servers": place.servers})
    with place.worker("w") as worker:
        process(place, worker, 0, 20)
        place.delete(snapshots)
        wait_until(lambda: snapshots not in client.list_topics().topics, PATIENCE, str)
        admin.create({"bootstrap.servers": place.servers}, place.names, place.partitions, 1, PATIENCE)
        worker.start()
        assert worker.wait() == 1, worker.log
        copy = place.directory / "state" / "w"
        assert snapshots in worker.log
        assert f"stop the worker, delete {copy}" in worker.log
        assert "Traceback" not in worker.log.split("created again, or truncated")[-1]
        shutil.rmtree(copy)
        worker.start()
        process(place, worker, 20, 5)
    assert versions(place) == [*range(25)], "the journal has all that is needed"


def test_one_that_was_trimmed_is_read_on_and_a_strangers_record_in_it_does_no_harm(
    place: Installation,
) -> None:
    snapshots = place.names.snapshots
    with place.worker("w") as worker:
        process(place, worker, 0, 20)
        with RawClient(place.servers, snapshots, 0) as stranger:
            stranger.write([Record(b"\xff", b"not ours", [(b"\xff\xfe", b"x")], int(time.time() * 1000))])
        place.configure(snapshots, {"cleanup.policy": "compact,delete"})
        place.delete_before(snapshots, 0, 1)
        shutil.rmtree(place.directory / "state")
        worker.start()
        process(place, worker, 20, 5)
    assert versions(place) == [*range(25)]
