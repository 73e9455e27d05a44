"""`grove worker --workers N`: names, ports, readiness of all, a dead one replaced, restarts, a good end."""

import os
import re
import signal
from pathlib import Path

import pytest

from streamapp.worker.reserved_ports import free_ports
from tests.broker.workers import PATIENCE, UNHURRIED, Installation, WorkerProcess, grove, wait_until
from tests.conftest import Broker

pytestmark = pytest.mark.broker


def pids(parent: WorkerProcess) -> dict[str, int]:
    """Process id of each worker, from the locks of their directories."""
    state = Path(parent.environment["GROVE_STATE_DIR"])
    locks = [path for path in state.glob("*/lock") if not path.parent.name.endswith("-parent")]
    texts = {path.parent.name: path.read_text() for path in locks}  # empty while one takes its lock
    return {name: int(text) for name, text in texts.items() if text}


def prepared_process(parent: WorkerProcess) -> int:
    """Process id of a parent's prepared process, without its guard; one that is a worker by now is none."""
    commands = {
        pid: Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        for pid in set(descendants(parent.pid)) - set(pids(parent).values())
    }
    (pid,) = (pid for pid, words in commands.items() if b"--prepared" in words and b"--" not in words)
    return pid


def descendants(process: int) -> list[int]:
    below = []
    for task in Path(f"/proc/{process}/task").iterdir():
        for child in map(int, (task / "children").read_text().split()):
            below += [child, *descendants(child)]
    return below


def test_two_workers_under_a_parent(broker: Broker, tmp_path: Path) -> None:
    place = Installation(
        broker.bootstrap_servers,
        "many.",
        4,
        tmp_path,
        settings=UNHURRIED,
        module="streamapp worker --workers 2",
    )
    port = free_ports(3)
    producer = place.producer()
    with place.worker("team", GROVE_WEB_PORT=str(port)) as parent:
        parent.wait_until_ready()
        assert re.findall(r"\[\+\](\S+) ok", parent.page("/readyz?verbose")[1]) == ["team-1", "team-2"]
        for n in (1, 2):
            wait_until(
                lambda n=n: parent.at(port + n).page("/readyz?verbose")[1].count(": live") == 2,  # type: ignore[misc]
                PATIENCE,
                lambda: parent.log,
            )
        before = pids(parent)
        assert set(before) == {"team-1", "team-2"}

        wait_until(lambda: "a process is prepared" in parent.log, PATIENCE, lambda: parent.log)
        prepared = prepared_process(parent)
        old = before["team-1"]
        os.kill(old, signal.SIGKILL)
        wait_until(lambda: pids(parent).get("team-1", old) != old, PATIENCE, lambda: parent.log)
        assert pids(parent)["team-1"] == prepared
        parent.wait_until_ready()
        assert parent.metric("grove_worker_restarts") == 1
        assert parent.metric("grove_worker_up") == 2
        assert pids(parent)["team-2"] == before["team-2"]

        for i in range(400):
            value = b'{"id":"%d","features":{"a":%d},"label":"x"}' % (i, i % 3)
            producer.produce(place.names.instances, value, b"key-%d" % (i % 4), i % 4)
        assert producer.flush(PATIENCE) == 0
        place.wait_for_lag_0(alive=[parent])
        answered = [
            parent.metric_of("grove_records_total", topic="instances", outcome="answered", worker=f"team-{n}")
            for n in (1, 2)
        ]
        assert sum(answered) == 400
        assert min(answered) > 0, "the parent's page shows every worker"

        replaced = pids(parent)
        wait_until(lambda: parent.log.count("a process is prepared") == 2, PATIENCE, lambda: parent.log)
        os.kill(prepared_process(parent), signal.SIGSTOP)  # one that hangs holds up no restart
        assert grove(parent, "worker", "restart") == (0, "parent team-parent has restarted its workers\n")
        assert pids(parent).keys() == replaced.keys()
        assert not set(pids(parent).values()) & set(replaced.values())
        parent.wait_until_ready()
        assert parent.log.count("a prepared process hangs: it has not read its settings") == 1
        assert parent.metric("grove_worker_restarts") == 2, "of the killed ones; a request is no death"
        assert parent.terminate() == 0
        for pid in pids(parent).values():
            with pytest.raises(ProcessLookupError):
                os.kill(pid, 0)
    assert {echo["id"] for echo in place.read(place.names.predictions)} == {str(i) for i in range(400)}


def test_a_worker_whose_directory_is_in_use_waits_for_it_while_the_other_runs(
    broker: Broker, tmp_path: Path
) -> None:
    place = Installation(
        broker.bootstrap_servers, "held.", 2, tmp_path, module="streamapp worker --workers 2"
    )
    holder = Installation(broker.bootstrap_servers, "holder.", 2, tmp_path)
    with holder.worker("held-1") as other:
        other.wait_until_ready()
        port = free_ports(3)
        with place.worker("held", GROVE_WEB_PORT=str(port)) as parent:
            wait_until(lambda: parent.at(port + 2).page("/readyz")[0] == 200, PATIENCE, lambda: parent.log)
            said = "worker held-1 ended with 78 because its settings are wrong (all others run on)"
            wait_until(lambda: said in parent.log, PATIENCE, lambda: parent.log)
            status, text = parent.page("/readyz?verbose")
            assert status == 503
            assert "[-]held-1" in text
            assert "[+]held-2 ok" in text
            assert other.terminate() == 0
            parent.wait_until_ready()
            assert parent.terminate() == 0


def test_workers_whose_settings_are_wrong_end_their_parent(broker: Broker, tmp_path: Path) -> None:
    place = Installation(
        broker.bootstrap_servers, "wrong.", 2, tmp_path, module="streamapp worker --workers 2"
    )
    for n in (1, 2):
        (tmp_path / "state" / f"wrong-{n}").parent.mkdir(exist_ok=True)
        (tmp_path / "state" / f"wrong-{n}").write_text("a file in place of a directory")
    with place.worker("wrong", GROVE_WEB_PORT=str(free_ports(3))) as parent:
        assert parent.wait() == 78
        assert "ended with 78: the settings are wrong, stopping all" in parent.log


def test_no_worker_outlives_a_parent_that_is_killed(broker: Broker, tmp_path: Path) -> None:
    place = Installation(
        broker.bootstrap_servers, "orphan.", 2, tmp_path, module="streamapp worker --workers 2"
    )
    with place.worker("orphan", GROVE_WEB_PORT=str(free_ports(3))) as parent:
        parent.wait_until_ready()
        workers = pids(parent)
        assert len(workers) == 2
        parent.kill()
        for pid in workers.values():
            wait_until(lambda pid=pid: is_gone(pid), PATIENCE, lambda: parent.log)  # type: ignore[misc]


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False
