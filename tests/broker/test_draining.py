"""Leaving the group: a drained worker is not waited for, one that got SIGTERM is; a parent grows, shrinks."""

import signal
import socket
from pathlib import Path

import pytest

from streamapp.worker.reserved_ports import free_ports
from tests.broker.test_workers import pids
from tests.broker.workers import PATIENCE, Installation, WorkerProcess, grove, wait_until
from tests.conftest import Broker

pytestmark = pytest.mark.broker

# A member that stays is waited for longer than a test waits.
LONG = {"GROVE_KAFKA_SESSION_TIMEOUT_MS": str((PATIENCE + 60) * 1000)}


def lives(worker: WorkerProcess, partitions: int) -> bool:
    return worker.page("/readyz?verbose")[1].count(": live") == partitions


def test_a_drained_worker_commits_leaves_and_another_takes_its_partitions(
    broker: Broker, tmp_path: Path
) -> None:
    place = Installation(
        broker.bootstrap_servers, "drain.", 4, tmp_path, settings=LONG, module="streamapp worker"
    )
    producer = place.producer()
    with place.worker("w-1") as first, place.worker("w-2") as second:
        for worker in (first, second):
            worker.wait_until_ready()
            wait_until(lambda w=worker: lives(w, 2), PATIENCE, lambda w=worker: w.log)  # type: ignore[misc]
        for i in range(400):
            producer.produce(place.names.instances, b'{"features":{"a":1}}', b"key-%d" % (i % 4), i % 4)
        assert producer.flush(PATIENCE) == 0
        assert grove(first, "worker", "drain") == (0, "worker w-1 has left the group\n")
        assert first.wait() == 0
        assert place.members() == {"w-2"}
        wait_until(lambda: lives(second, 4), PATIENCE, lambda: second.log)
        place.wait_for_lag_0(alive=[second])

        assert second.terminate() == 0
        assert place.members() == {"w-2"}, "a restart is expected"
        status, output = grove(second, "worker", "drain")
        assert status == 1
        assert "no worker 'w-2' and no parent of workers 'w-2'" in output
    assert len(place.read(place.names.predictions)) >= 400


def test_a_parent_grows_and_shrinks_and_is_drained(broker: Broker, tmp_path: Path) -> None:
    place = Installation(
        broker.bootstrap_servers,
        "scale.",
        4,
        tmp_path,
        settings=LONG,
        module="streamapp worker --workers 2",
    )
    port = free_ports(3)
    with place.worker("team", GROVE_WEB_PORT=str(port)) as parent:
        parent.wait_until_ready()
        wait_until(lambda: place.members() == {"team-1", "team-2"}, PATIENCE, lambda: parent.log)
        before = pids(parent)

        assert grove(parent, "worker", "scale", "1") == (0, "parent team-parent has 1 workers\n")
        assert place.members() == {"team-1"}
        wait_until(lambda: lives(parent.at(port + 1), 4), PATIENCE, lambda: parent.log)
        assert pids(parent)["team-1"] == before["team-1"], "all others go on"

        with socket.socket() as taken:
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            taken.bind(("127.0.0.1", port + 2))
            taken.listen()
            status, output = grove(parent, "worker", "scale", "2")
            assert status == 1
            assert f"web.port={port + 2} must be free" in output
        assert place.members() == {"team-1"}

        assert grove(parent, "worker", "scale", "2")[0] == 0
        wait_until(lambda: place.members() == {"team-1", "team-2"}, PATIENCE, lambda: parent.log)
        wait_until(lambda: lives(parent.at(port + 2), 2), PATIENCE, lambda: parent.log)
        assert parent.metric("grove_worker_up") == 2

        assert grove(parent, "worker", "drain") == (0, "parent team-parent has left the group\n")
        assert parent.wait() == 0
        assert place.members() == set()


def test_a_second_parent_of_the_same_name_ends_with_78_and_the_signal_alone_drains_the_first(
    broker: Broker, tmp_path: Path
) -> None:
    place = Installation(
        broker.bootstrap_servers,
        "double.",
        2,
        tmp_path,
        settings=LONG,
        module="streamapp worker --workers 2",
    )
    with place.worker("team", GROVE_WEB_PORT=str(free_ports(3))) as parent:
        parent.wait_until_ready()
        status, output = grove(parent, "worker", "--workers", "2", "--web-port", str(free_ports()))
        assert status == 78
        assert f"process {parent.pid} holds" in " ".join(output.split())
        parent.signal(signal.SIGUSR2)
        assert parent.wait() == 0
        assert place.members() == set()
