"""The memory limit of a worker's cgroup: it is named before the kernel ends the worker; nothing is lost."""

import signal
import uuid
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from streamapp.worker.observability.cgroup_memory import MIB
from tests.broker.workers import PATIENCE, Installation, wait_until
from tests.conftest import Broker

pytestmark = pytest.mark.broker

FEATURES = 200  # a model of one leaf then has about 20 kB
ROOM_BYTES = 4 * MIB
LINE = "the memory limit is near: "


class MemoryCgroup:
    """A cgroup of either version, whose processes share a limit of memory."""

    def __init__(self) -> None:
        name = f"grove-test-{uuid.uuid4().hex[:8]}"
        first, second = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")
        is_first = (first / "memory.limit_in_bytes").exists()
        self.path = (first if is_first else second) / name
        self._limit, self._used = (
            ("memory.limit_in_bytes", "memory.usage_in_bytes")
            if is_first
            else ("memory.max", "memory.current")
        )
        try:
            self.path.mkdir()
            self._write(self._limit, 1 << 40)
        except OSError:
            self.close()
            pytest.skip("the cgroups of memory cannot be written here")

    def add(self, process: int) -> None:
        """Count what a process takes from now on."""
        self._write("cgroup.procs", process)

    def used(self) -> int:
        """Return the bytes that count, without pages of files."""
        lines = (self.path / "memory.stat").read_text().splitlines()
        fields = {name: int(value) for name, value in map(str.split, lines)}
        return int((self.path / self._used).read_text()) - fields["inactive_file"] - fields["active_file"]

    def limit_to(self, n: int) -> None:
        self._write(self._limit, n)

    def close(self) -> None:
        if self.path.exists():
            self.path.rmdir()

    def _write(self, name: str, value: int) -> None:
        (self.path / name).write_text(str(value))


@pytest.fixture
def cgroup() -> Iterator[MemoryCgroup]:
    made = MemoryCgroup()
    yield made
    wait_until(lambda: not (made.path / "cgroup.procs").read_text(), PATIENCE, str)
    made.close()


def test_a_worker_that_reaches_its_limit(broker: Broker, tmp_path: Path, cgroup: MemoryCgroup) -> None:
    place = Installation(broker.bootstrap_servers, "memory.", 1, tmp_path, module="streamapp worker")
    worker, sent = place.worker("w"), 0

    def send(models: int) -> None:
        """Give further models their first record."""
        nonlocal sent
        producer = place.producer()
        for number in range(sent, sent + models):
            features = {f"feature-{at}": number % 7 + at for at in range(FEATURES)}
            value = orjson.dumps({"id": str(number), "features": features, "label": str(number % 2)})
            producer.produce(place.names.instances, value, f"model-{number}", 0)
        assert producer.flush(PATIENCE) == 0
        sent += models

    with worker:
        worker.wait_until_ready()
        cgroup.add(worker.pid)
        send(200)
        place.wait_for_lag_0(alive=[worker])

        cgroup.limit_to(int(cgroup.used() / 0.93))
        wait_until(lambda: LINE in worker.page("/readyz?verbose")[1], PATIENCE, lambda: worker.log)
        assert worker.page("/readyz")[0] == 503
        assert worker.page("/livez")[0] == 200
        assert worker.log.count(LINE) == 1 and "set models.max.bytes" in worker.log
        cgroup.limit_to(4 * cgroup.used() + ROOM_BYTES)
        worker.wait_until_ready()
        assert "the memory limit is not near any more" in worker.log
        send(20)
        place.wait_for_lag_0(alive=[worker])

        cgroup.limit_to(cgroup.used() + ROOM_BYTES)
        while worker.code is None:
            send(100)
        assert worker.code == -signal.SIGKILL, worker.log[-3000:]

        worker.start()  # in no cgroup: the limit was raised
        worker.wait_until_ready()
        place.wait_for_lag_0(alive=[worker])
        ids = [answer["id"] for answer in place.read(place.names.predictions)]
        assert ids == [str(number) for number in range(sent)]
        assert worker.terminate() == 0
