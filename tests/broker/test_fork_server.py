"""Processes that are forked instead of started: what a test may do with one that has just ended."""

import os
import select
import signal
from pathlib import Path

import pytest

from tests.broker.fork_server import ForkedProcess

pytestmark = pytest.mark.broker  # it needs none, but the kernels that these have compiled


def forked(arguments: str, log: Path) -> ForkedProcess:
    return ForkedProcess(["streamapp", *arguments.split()], dict(os.environ), log)


def wait_for_the_end(process: ForkedProcess) -> None:
    """Until it is a zombie, whether the server has noticed or not."""
    watch = os.pidfd_open(process.pid)
    select.select([watch], [], [])
    os.close(watch)


def test_what_has_ended_can_be_signalled_and_looked_at(tmp_path: Path) -> None:
    process = forked("topics --nonsense", tmp_path / "log")
    wait_for_the_end(process)
    assert process.wait() == 64, (tmp_path / "log").read_text()
    assert Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    process.kill()
    os.kill(process.pid, signal.SIGTERM)
    assert process.poll() == 64


def test_the_code_of_what_was_killed_is_minus_the_signal(tmp_path: Path) -> None:
    process = forked("worker", tmp_path / "log")
    process.send_signal(signal.SIGSTOP)
    assert process.poll() is None
    process.kill()
    assert process.wait() == -signal.SIGKILL
