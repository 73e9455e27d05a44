"""What a pass over a backlog counts: rows and their last quarter, a process with its children, and others."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.peers.java_peers import STREAMS
from benchmarks.peers.job import COMMIT_MS
from benchmarks.rig.measure import Cost, watch
from benchmarks.rig.process import Child, cpu_of_machine, cpu_of_tree, python
from streamapp.embedded.lock import read_lock
from streamapp.settings.settings_model import Settings

BURN = "import time\nwhile time.process_time() < 0.3: pass\n"
WAIT = "import sys; print(flush=True); sys.stdin.read()"


class Seen:
    """Progress as a broker would tell it, look by look."""

    def __init__(self, *counts: int) -> None:
        self._counts = iter(counts)

    def visible(self) -> int:
        return next(self._counts)


@pytest.fixture
def child(tmp_path: Path) -> Iterator[Child]:
    with Child(python("-c", "import time; time.sleep(600)"), tmp_path / "log") as running:
        yield running


def test_the_first_look_is_not_counted_and_the_last_quarter_is_by_itself(child: Child) -> None:
    found = watch(child, Seen(0, 0, 1000, 5000, 7499, 7600, 9000, 10_000), 10_000, 2)
    assert found.rows == 2 * 9000
    assert found.last_quarter is not None
    assert found.last_quarter.rows == 2 * 2400
    assert 0 < found.last_quarter.seconds < found.seconds
    assert found.last_quarter.cpu_seconds <= found.cpu_seconds
    assert found.others_cores >= 0


def test_without_a_look_in_between_there_is_no_last_quarter(child: Child) -> None:
    assert watch(child, Seen(1000, 10_000, 10_000), 10_000, 1).last_quarter is None
    assert watch(child, Seen(8000, 8000, 10_000), 10_000, 1).last_quarter is None


def test_all_at_the_first_look_is_too_few(child: Child) -> None:
    with pytest.raises(ValueError, match="raise --records"):
        watch(child, Seen(10_000, 10_000, 10_000), 10_000, 1)


def test_a_cost_is_by_second_and_by_million() -> None:
    cost = Cost(rows=500_000, seconds=4.0, cpu_seconds=2.0)
    assert (cost.rows_per_second, cost.cpu_per_million) == (125_000, 4.0)


def test_a_process_has_the_time_of_its_children_too() -> None:
    """Of one that has ended and of one that is still there."""
    script = f"import subprocess, sys\nrun = [sys.executable, '-c', {BURN!r}]\nsubprocess.run(run)\n"
    script += f"subprocess.run([sys.executable, '-c', {BURN + WAIT!r}])\n"
    mine = cpu_of_tree(os.getpid())
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()  # the second one has worked
        spent = cpu_of_tree(process.pid)
        assert 0.5 <= spent < 5, "0.3 by each, but for ticks of the clock that counts"
        assert cpu_of_tree(os.getpid()) - mine >= spent - 0.1
        process.stdin.close()
    assert cpu_of_machine() > cpu_of_tree(os.getpid()) - mine


def test_java_peers_have_the_clients_of_the_broker_and_commit_as_often_as_our_worker() -> None:
    (clients,) = [jar for jar in read_lock() if jar.artifact == "kafka-clients"]
    assert STREAMS[2] == clients.version
    assert Settings.model_fields["commit_interval_ms"].default == COMMIT_MS
