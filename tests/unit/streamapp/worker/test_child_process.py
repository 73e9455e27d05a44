"""A child process: words that it is asked to end by, one after the other, and how its end is told."""

import signal
import sys
from pathlib import Path

import pytest

from streamapp.worker.child_process import GuardedProcess
from tests.broker.workers import wait_until

# Says that it hears, and goes on.
DEAF = """import signal
signal.signal(signal.SIGTERM, lambda *_: print("no", flush=True))
print("up", flush=True)"""


def lines(log: Path, n: int) -> list[str]:
    wait_until(lambda: len(log.read_text().splitlines()) >= n, 60, log.read_text, every=0.01)
    return log.read_text().splitlines()


def test_what_is_asked_twice_is_heard_once_and_a_kill_after_it_is_heard(tmp_path: Path) -> None:
    log = tmp_path / "log"
    process = GuardedProcess([sys.executable, "-c", DEAF + "\nwhile True: signal.pause()"], log)
    lines(log, 1)
    process.ask_to_stop()
    process.ask_to_stop(drain=True)
    assert lines(log, 2) == ["up", "no"]
    assert process.status is None
    process.ask_to_stop(kill=True)
    assert process.wait(60) == 128 + signal.SIGKILL
    process.ask_to_stop(kill=True)
    assert log.read_text() == "up\nno\n"


@pytest.mark.parametrize(("drain", "number"), [(False, signal.SIGTERM), (True, signal.SIGUSR2)])
def test_a_child_that_does_not_listen_yet_ends_by_the_signal(
    drain: bool, number: int, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    process = GuardedProcess(
        [sys.executable, "-c", "import signal; print('up', flush=True)\nwhile True: signal.pause()"], log
    )
    lines(log, 1)
    process.ask_to_stop(drain=drain)
    assert process.wait(60) == 128 + number
    process.ask_to_stop(kill=True)
