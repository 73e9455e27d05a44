"""The disk of `state.dir` hangs, is slow, or its folder is deleted: answers go on, and so does the worker."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from streamapp.worker.state_directory import DISK_HANGS
from tests.broker.workers import PATIENCE, Installation, WorkerProcess, wait_until
from tests.conftest import Broker
from tests.disks import freezable_disk, frozen, slow
from topics.clients.partitioner import partition_of

pytestmark = pytest.mark.broker

FREQUENT = {"GROVE_SNAPSHOT_MAX_REPLAY_MS": "1", "GROVE_SNAPSHOT_INTERVAL_MS": "200"}
PARTITIONS = 2
KEYS = [next(key for key in map(str, range(100)) if partition_of(key.encode(), 2) == n) for n in (0, 1)]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with freezable_disk(tmp_path / "disk") as place:
        yield place


class Story:
    """Instances with labels, of a model in each partition."""

    def __init__(self, place: Installation) -> None:
        self.place = place
        self.sent: list[list[str]] = [[] for _ in KEYS]

    def send(self, *partitions: int) -> None:
        producer = self.place.producer()
        for number in range(20):
            for partition in partitions:
                name = f"{partition}-{len(self.sent[partition])}"
                value = {"id": name, "features": {"a": number % 7}, "label": str(number % 2)}
                producer.produce(self.place.names.instances, orjson.dumps(value), KEYS[partition], partition)
                self.sent[partition].append(name)
        assert producer.flush(PATIENCE) == 0

    def answered(self) -> list[list[str]]:
        ids = [str(answer["id"]) for answer in self.place.read(self.place.names.predictions)]
        return [[name for name in ids if name.startswith(f"{partition}-")] for partition in range(PARTITIONS)]

    def go_on(self, *partitions: int) -> None:
        """Send instances of some partitions; return when they are answered, each once and in order."""
        self.send(*partitions)
        self.wait(*partitions)

    def wait(self, *partitions: int) -> None:
        def done() -> bool:
            answered = self.answered()
            return all(answered[partition] == self.sent[partition] for partition in partitions)

        wait_until(done, PATIENCE, lambda: str([len(names) for names in self.answered()]))


def begun(broker: Broker, folder: Path, prefix: str) -> tuple[Installation, Story]:
    """Return topics without records, for workers with frequent snapshots."""
    place = Installation(
        broker.bootstrap_servers, prefix, PARTITIONS, folder, FREQUENT, module="streamapp worker"
    )
    return place, Story(place)


def start_again(worker: WorkerProcess, story: Story) -> None:
    """Start a worker that has ended, and go on when it is ready."""
    worker.start()
    worker.wait_until_ready()
    story.go_on(0, 1)


def wait_for(worker: WorkerProcess, words: str) -> None:
    """Wait until the page of readiness has some words, and check that the worker lives."""
    wait_until(
        lambda: words in worker.page("/readyz?verbose")[1],
        PATIENCE,
        lambda: worker.page("/readyz?verbose")[1] + worker.log,
    )
    assert worker.page("/livez")[0] == 200


def test_a_disk_that_hangs_stops_no_answer_no_rebalance_and_no_end(
    broker: Broker, tmp_path: Path, disk: Path
) -> None:
    place, story = begun(broker, tmp_path, "hangs.")
    worker = place.worker("w", GROVE_STATE_DIR=str(disk / "state"))
    with worker:
        worker.wait_until_ready()
        story.go_on(0, 1)
        with frozen(disk):
            wait_for(worker, f"state-directory failed: {DISK_HANGS}")
            story.go_on(0, 1)

            with place.worker("other") as other:  # takes a partition
                other.wait_until_ready()
                story.go_on(0, 1)
                other.signal(signal.SIGUSR2)  # gives it back
                assert other.wait() == 0, other.log
            wait_for(worker, f"waits: {DISK_HANGS}")
            wait_for(worker, "ok: live")
            page = worker.page("/readyz?verbose")[1]
            (live,) = [n for n in range(PARTITIONS) if f"partition-{n} ok: live" in page]
            story.send(1 - live)
            story.go_on(live)
        worker.wait_until_ready()
        assert "joining the group again, to read what the copies in state.dir lack" in worker.log
        story.wait(0, 1)
        story.go_on(0, 1)

        with frozen(disk):
            wait_for(worker, f"state-directory failed: {DISK_HANGS}")
            story.go_on(0, 1)
            worker.signal(signal.SIGUSR2)
            wait_until(lambda: place.members() == set(), PATIENCE, lambda: worker.log)
        assert worker.wait() == 0, worker.log
        start_again(worker, story)
        assert worker.terminate() == 0
    assert story.answered() == story.sent


def test_a_slow_disk_stops_no_answer_and_snapshots_and_restores_go_on(
    broker: Broker, tmp_path: Path, disk: Path
) -> None:
    place, story = begun(broker, tmp_path, "slow.")
    with place.worker("w", GROVE_STATE_DIR=str(disk / "state")) as worker:
        worker.wait_until_ready()
        story.go_on(0, 1)
        with slow(disk):
            before = worker.metric("grove_snapshots_total")
            story.go_on(0, 1)
            wait_until(
                lambda: worker.metric("grove_snapshots_total") >= before + PARTITIONS,
                PATIENCE,
                lambda: worker.log,
            )
            assert worker.terminate() == 0, worker.log
            start_again(worker, story)
            worker.kill()
            start_again(worker, story)
        assert worker.terminate() == 0
    assert story.answered() == story.sent
    assert "cannot be used" not in worker.log, "all parts of the snapshots were there"


def test_a_folder_that_is_deleted_is_made_again(broker: Broker, tmp_path: Path) -> None:
    state = tmp_path / "state"
    place, story = begun(broker, tmp_path, "gone.")

    def snapshots() -> float:
        return worker.metric("grove_snapshots_total")

    with place.worker("w") as worker:
        worker.wait_until_ready()
        story.go_on(0, 1)
        wait_until(lambda: snapshots() >= PARTITIONS, PATIENCE, lambda: worker.log)
        shutil.rmtree(state.rename(tmp_path / "deleted"))  # the worker cannot make it again meanwhile
        wait_for(worker, "state-directory failed")
        worker.wait_until_ready()
        assert f"{state / 'w'} is gone; it is made again" in worker.log
        assert "state.dir can be written again" in worker.log
        before = snapshots()
        story.go_on(0, 1)
        wait_until(lambda: snapshots() >= before + PARTITIONS, PATIENCE, lambda: worker.log)
        assert len([*state.rglob("CURRENT")]) == PARTITIONS
        ages = [worker.metric_of("grove_snapshot_age_seconds", partition=str(n)) for n in range(PARTITIONS)]
        assert all(age >= 0 for age in ages)

        worker.kill()
        start_again(worker, story)
        assert worker.terminate() == 0
    assert story.answered() == story.sent
    assert "cannot be used" not in worker.log, "all parts of the snapshots were there"
