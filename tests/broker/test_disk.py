"""A disk is full, read-only, damaged or gone: /readyz names it, nothing is lost, the worker goes on.

The disks are those of `state.dir`, of `grove web` and of the broker.
"""

import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from streamapp.embedded import EmbeddedBroker
from streamapp.web.watch.watch_reader import WatchReader
from streamapp.web.watch.watched import Watched
from tests.broker.workers import PATIENCE, Installation, WorkerProcess, wait_until
from tests.conftest import Broker
from tests.disks import fill, read_only, small_disk

pytestmark = pytest.mark.broker

FREQUENT = {"GROVE_SNAPSHOT_MAX_REPLAY_MS": "1", "GROVE_SNAPSHOT_INTERVAL_MS": "200"}


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", "32m") as place:
        yield place


def test_what_the_web_application_reads_waits_for_room(
    broker: Broker, tmp_path: Path, disk: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place = Installation(broker.bootstrap_servers, "disk.", 1, tmp_path)
    topic, producer = place.names.evaluations, place.producer()
    watched = Watched(disk / "web-watched.sqlite")
    reader = WatchReader({"bootstrap.servers": place.servers}, place.names, watched)
    reading = threading.Thread(target=reader.run)
    reading.start()

    def read_on() -> None:
        producer.produce(topic, b"{}", b"key", 0)
        assert producer.flush(PATIENCE) == 0

    try:
        read_on()
        wait_until(lambda: watched.positions(topic).get(0) == 1, PATIENCE, str)
        ballast = fill(disk)
        read_on()
        words = "cannot be stored, it is tried again: database or disk is full"
        wait_until(lambda: words in caplog.text, PATIENCE, lambda: caplog.text)
        ballast.unlink()
        wait_until(lambda: watched.positions(topic).get(0) == 2, PATIENCE, lambda: caplog.text)
    finally:
        reader.stop()
        reading.join()
        watched.close()


def test_the_disk_of_the_broker_is_full(tmp_path: Path, disk: Path) -> None:
    with EmbeddedBroker(disk / "broker", brief=True) as broker:
        place = Installation(
            broker.bootstrap_servers,
            "disk.",
            1,
            tmp_path,
            {"GROVE_STATE_DIR": str(tmp_path / "state")},
            module="streamapp worker",
        )
        worker = place.worker("w")
        story = Story(place, worker)
        with worker:
            worker.wait_until_ready()
            story.go_on()

            ballast = fill(disk)
            # What does not fit ends the broker: it has no other directory for its logs.
            producer = place.producer(**{"message.timeout.ms": 1000, "on_delivery": lambda *_: None})
            while broker.running:
                producer.produce(place.names.audit, bytes(100_000), b"user", 0)
                producer.flush(1)
            story.wait_for("[-]broker failed: the broker does not answer")
            assert (worker.page("/readyz")[0], worker.page("/livez")[0]) == (503, 200)
            ballast.unlink()
            broker.stop()
            broker.start()
            story.go_on()
            worker.wait_until_ready()
            story.check_answers()
            assert worker.terminate() == 0


class Story:
    """Instances with labels, which a worker answers."""

    def __init__(self, place: Installation, worker: WorkerProcess) -> None:
        self._place, self._worker = place, worker
        self._n = 0

    def go_on(self) -> None:
        """Send more instances; return when all are answered and committed."""
        producer = self._place.producer()
        for number in range(self._n, self._n + 20):
            value = {"id": str(number), "features": {"a": number % 7}, "label": str(number % 2)}
            producer.produce(self._place.names.instances, orjson.dumps(value), "key", 0)
        assert producer.flush(PATIENCE) == 0
        self._n += 20
        self._place.wait_for_lag_0(alive=[self._worker])

    def write_snapshot(self) -> None:
        """Go on, and return when a further snapshot is complete."""
        before = self._worker.log.count("is complete: ")
        self.go_on()
        wait_until(
            lambda: self._worker.log.count("is complete: ") > before, PATIENCE, lambda: self._worker.log
        )

    def wait_for(self, words: str) -> None:
        wait_until(
            lambda: words in self._worker.page("/readyz?verbose")[1], PATIENCE, lambda: self._worker.log
        )

    def check_answers(self) -> None:
        ids = [answer["id"] for answer in self._place.read(self._place.names.predictions)]
        assert ids == [str(number) for number in range(self._n)]


def test_a_disk_that_is_full_damaged_or_gone(broker: Broker, tmp_path: Path, disk: Path) -> None:
    place = Installation(
        broker.bootstrap_servers,
        "disk.",
        1,
        tmp_path,
        {**FREQUENT, "GROVE_STATE_DIR": str(disk / "state")},
        module="streamapp worker",
    )
    worker = place.worker("w")
    story = Story(place, worker)
    with worker:
        worker.wait_until_ready()
        story.write_snapshot()

        ballast = fill(disk)
        story.wait_for("cannot be written: No space left on device")
        assert worker.page("/readyz")[0] == 503
        assert worker.metric_of("grove_not_ready", check="state-directory") == 1
        assert worker.page("/livez")[0] == 200
        story.go_on()
        assert "live partitions go on, snapshots and restores wait for it" in worker.log
        ballast.unlink()
        worker.wait_until_ready()
        assert "state.dir can be written again" in worker.log
        story.write_snapshot()

        with read_only(disk):
            story.wait_for("cannot be written: Read-only file system")
            assert worker.page("/livez")[0] == 200
            story.go_on()
        worker.wait_until_ready()
        story.write_snapshot()

        worker.kill()
        with read_only(disk):
            worker.start()
            assert worker.wait() == 1, "a parent starts it again until there is room"
            assert "cannot be written: Read-only file system; make room there" in worker.log
        (current,) = disk.glob("state/**/CURRENT")
        current.write_bytes(b"damaged")
        worker.start()
        worker.wait_until_ready()
        assert f"the copy of the snapshot table in {current.parent} is damaged (Corruption" in worker.log
        story.write_snapshot()

        shutil.rmtree((disk / "state").rename(disk / "deleted"))
        story.wait_for("is gone; it is made again")
        assert worker.page("/livez")[0] == 200
        story.go_on()
        worker.wait_until_ready()
        story.write_snapshot()
        story.check_answers()
        assert worker.terminate() == 0
