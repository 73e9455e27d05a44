"""Names and ports of several workers."""

import errno
import math
import os
import queue
import signal
import socket
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from streamapp.errors import SettingsError, StateDirectoryError
from streamapp.settings import Settings
from streamapp.worker import control, prepared_worker
from streamapp.worker.control import (
    DRAIN,
    REQUESTED,
    RESTART,
    WORKERS,
    NotRunningError,
    RefusedError,
    begin_restart,
    end_restart,
    fulfil,
    parent_name,
    refuse,
    refuse_restart,
    restart,
    scale,
    wanted_workers,
)
from streamapp.worker.prepared_worker import PreparedWorker
from streamapp.worker.state_directory import StateDirectory
from streamapp.worker.supervisor import Child, Parent, run_workers, worker_settings
from streamapp.worker.worker import run_worker, with_port
from tests.broker.workers import wait_until
from tests.disks import fill, read_only, small_disk


def test_every_worker_has_its_name_and_port(tmp_path: Path) -> None:
    settings = Settings(group_instance_id="pod", web_port=7000, state_dir=tmp_path)
    made = [worker_settings(settings, number) for number in (1, 2, 3)]
    assert [each.group_instance_id for each in made] == ["pod-1", "pod-2", "pod-3"]
    assert [each.web_port for each in made] == [7001, 7002, 7003]


def test_port_0_is_any_free_port_and_known_before_the_worker_starts() -> None:
    made = [worker_settings(Settings(web_port=7000), number, any_port=True).web_port for number in (1, 2)]
    assert len({7000, 7001, 7002, 0, *made}) == 6


def test_a_port_that_is_taken_is_one_sentence() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(SettingsError, match=f"web.port={port} must be free at web.host=127.0.0.1"):
            with_port(Settings(web_port=port))


def test_workers_beyond_the_last_port_are_refused_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="workers=2 must be at most 0 with web.port=65535"):
        run_workers(Settings(web_port=65_535, state_dir=tmp_path), 2)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("start", [run_worker, partial(run_workers, n=2)], ids=["one", "parent"])
def test_a_misspelled_variable_is_told_at_the_start(
    start: Callable[[Settings], int],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def no_topics(_: Settings) -> int:
        message = "no topics"
        raise SettingsError(message)

    monkeypatch.setenv("GROVE_TOPIC_PREFIX", "a.")
    for module in ("worker", "supervisor"):
        monkeypatch.setattr(f"streamapp.worker.{module}.configure_logs", lambda *_, **__: None)
        monkeypatch.setattr(f"streamapp.worker.{module}.check_topics", no_topics)
    with caplog.at_level("WARNING"), pytest.raises(SettingsError, match="no topics"):
        start(Settings(state_dir=tmp_path))
    assert "GROVE_TOPIC_PREFIX is not a setting (did you mean 'GROVE_TOPICS_PREFIX'?)" in caplog.text


def test_without_a_name_the_host_gives_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "machine")
    assert worker_settings(Settings(), 2).group_instance_id == "machine-2"


class Stopped:
    """A process that ends with a status as soon as it is asked to."""

    ok = False  # whether its page tells that it is ready

    def __init__(self, status: int) -> None:
        self.asked = threading.Event()
        self._status = status

    @property
    def status(self) -> int | None:
        return self._status if self.asked.is_set() else None

    def ask_to_stop(self, kill: bool = False, *, drain: bool = False) -> None:
        self.asked.set()

    def wait(self) -> int:
        assert self.asked.wait(60)
        return self._status


@pytest.mark.parametrize(("status", "code"), [(0, 0), (143, 0), (1, 1), (137, 1)])
def test_a_signal_while_workers_are_started_ends_all_of_them(
    status: int, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parent = Parent(Settings(group_instance_id="p", state_dir=tmp_path), 3, True, tmp_path)
    started = []

    def start(child: Child, _: object = None) -> Stopped:
        started.append(child.name)
        child.process = Stopped(status)  # type: ignore[assignment]
        if child.name == "p-1":
            parent.stop()  # as the handler of the signal does
        return child.process  # type: ignore[return-value]

    class AtOnce(threading.Thread):
        """A thread that has done its work when `start` returns: the signal comes before the second worker."""

        def start(self) -> None:
            super().start()
            self.join(60)

    monkeypatch.setattr(Child, "start", start)
    monkeypatch.setattr(threading, "Thread", AtOnce)
    parent.scale(3)
    assert not any(thread.is_alive() for _, thread in parent._running.values())
    assert started == ["p-1"]
    assert parent.code == code


def test_a_restart_needs_a_parent_and_is_requested_once(tmp_path: Path) -> None:
    settings = Settings(group_instance_id="pod", state_dir=tmp_path)
    with pytest.raises(NotRunningError, match="no parent of workers 'pod'"):
        restart(settings, 1.0)
    with StateDirectory(tmp_path, parent_name(settings)) as directory:
        (directory.path / RESTART).write_text("begun")
        with pytest.raises(RefusedError, match="pod-parent. is restarting its workers already"):
            restart(settings, 1.0)


def test_a_requested_restart_begins_once_and_is_over_when_its_file_is_gone(tmp_path: Path) -> None:
    assert not begin_restart(tmp_path)
    (tmp_path / RESTART).write_text(REQUESTED)
    assert begin_restart(tmp_path)
    assert not begin_restart(tmp_path), "a signal for another request must not begin it again"
    end_restart(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_two_commands_at_once_send_two_requests(tmp_path: Path) -> None:
    """A parent that finds no number of workers after a signal lets all of them leave."""
    settings = Settings(group_instance_id="team", state_dir=tmp_path)
    signals: queue.SimpleQueue[int] = queue.SimpleQueue()
    before = signal.signal(DRAIN, lambda *_: signals.put(wanted_workers(directory.path)))
    try:
        with StateDirectory(tmp_path, parent_name(settings)) as directory:
            commands = [threading.Thread(target=scale, args=(settings, n, 60.0)) for n in (2, 3)]
            for command in commands:
                command.start()
            requested = []
            for _ in commands:
                requested.append(signals.get(timeout=60))
                assert signals.empty(), "the second command waits for the first"
                fulfil(directory.path)
            for command in commands:
                command.join()
    finally:
        signal.signal(DRAIN, before)
    assert sorted(requested) == [2, 3]


def test_requests_to_a_parent_whose_disk_takes_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A parent that ended because of its disk would take all of its workers with it."""
    settings = Settings(group_instance_id="pod", state_dir=tmp_path / "disk")
    with (
        small_disk(settings.state_dir, "64k") as place,
        StateDirectory(place, parent_name(settings)) as directory,
    ):
        ballast = fill(place)
        for command in (restart, partial(scale, n=5)):
            with pytest.raises(StateDirectoryError, match="No space left on device; make room"):
                command(settings, seconds=1.0)
        ballast.unlink()
        assert not begin_restart(directory.path), "an empty file would be a restart that never ends"
        assert {path.name for path in directory.path.iterdir()} <= {"lock", "request"}

        (directory.path / RESTART).write_text(REQUESTED)
        (directory.path / WORKERS).write_text("3")
        with read_only(place):
            assert begin_restart(directory.path)
            refuse(directory.path, SettingsError("a port is in use"))
            fulfil(directory.path)
            assert not end_restart(directory.path)
        assert caplog.text.count("Read-only file system; make room") == 4
        assert end_restart(directory.path)


def test_a_worker_that_cannot_be_started_now_is_started_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("streamapp.worker.supervisor.FIRST_PAUSE", 0.0)
    parent = Parent(Settings(group_instance_id="p", state_dir=tmp_path), 1, True, tmp_path)
    attempts = []

    def start(child: Child, _: object = None) -> Stopped:
        attempts.append(child.name)
        if len(attempts) < 3:
            raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")
        child.process = Stopped(0)  # type: ignore[assignment]
        parent.stop()
        return child.process  # type: ignore[return-value]

    monkeypatch.setattr(Child, "start", start)
    parent.scale(1)
    for _, thread in list(parent._running.values()):
        thread.join(60)
    assert attempts == ["p-1"] * 3
    assert caplog.text.count("worker p-1 cannot be started (Resource temporarily unavailable)") == 2
    assert parent.code == 0


def test_a_prepared_process_that_has_ended_becomes_no_worker() -> None:
    """It cannot be prepared, because its settings are wrong; the parent then starts a worker afresh."""
    prepared = PreparedWorker({**os.environ, "GROVE_WEB_PORT": "none"})
    assert not prepared.wait_until_prepared()
    assert prepared.process.wait() == 78
    assert not prepared.become({})
    prepared.close()


def child_of(prepared: PreparedWorker) -> int:
    """Process id of a prepared process, which its guard has started, and which runs its own command."""
    guard = prepared.process.group
    children = Path(f"/proc/{guard}/task/{guard}/children")

    def is_there() -> bool:
        words = children.read_text().split()
        return bool(words) and b"--" not in Path(f"/proc/{words[0]}/cmdline").read_bytes().split(b"\0")

    wait_until(is_there, 60, str, every=0.001)
    return int(children.read_text())


def test_a_process_that_hangs_before_it_is_prepared_is_killed(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(prepared_worker, "PREPARING_S", 0.5)
    prepared = PreparedWorker(os.environ)
    os.kill(child_of(prepared), signal.SIGSTOP)
    assert not prepared.wait_until_prepared()
    assert prepared.process.wait() == 128 + signal.SIGKILL
    assert "a prepared process hangs: it is not prepared after 0.5 s, and is killed" in caplog.text
    prepared.close()


@pytest.mark.parametrize("is_prepared", [True, False])
def test_a_process_that_hangs_before_it_reads_its_settings_is_killed(
    is_prepared: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(prepared_worker, "READ_S", 0.5)
    prepared = PreparedWorker(os.environ)
    child = child_of(prepared)
    if is_prepared:
        assert prepared.wait_until_prepared()
    else:
        monkeypatch.setattr(prepared_worker, "PREPARING_S", 0.5)
    os.kill(child, signal.SIGSTOP)
    assert prepared.become({"GROVE_WEB_PORT": "7000"}), "its end is not known yet"
    prepared.wait_until_read()
    assert prepared.process.wait() == 128 + signal.SIGKILL
    assert caplog.text.count("a prepared process hangs") == 1
    prepared.close()


def test_a_restart_for_which_no_process_can_be_prepared_leaves_the_workers_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A release that cannot start is no reason to end workers of the release before."""
    monkeypatch.setattr("streamapp.worker.supervisor.environment_of", lambda _: {"GROVE_WEB_PORT": "none"})
    settings = Settings(group_instance_id="pod", state_dir=tmp_path)
    with StateDirectory(tmp_path, parent_name(settings)) as directory:
        (directory.path / RESTART).write_text(REQUESTED)
        assert begin_restart(directory.path)
        parent = Parent(settings, 1, True, directory.path)
        worker = Stopped(0)
        parent.children = [Child(settings, worker, started=-math.inf)]  # type: ignore[arg-type]
        preparing = threading.Thread(target=parent._keep_prepared)
        preparing.start()
        parent._restart_all()
        assert not worker.asked.is_set()
        parent._stopping.set()
        preparing.join()
        with pytest.raises(RefusedError, match="pod and the workers after it are not restarted and run on"):
            await_restart(settings, directory.path)
        assert not (directory.path / RESTART).exists()


def await_restart(settings: Settings, directory: Path) -> None:
    """Wait as `grove worker restart` does, which has requested the restart."""
    name = parent_name(settings)
    control._wait_for_parent(settings.state_dir, name, os.getpid(), directory / RESTART, 60.0)


def test_a_refusal_that_no_command_has_read_hinders_no_restart(tmp_path: Path) -> None:
    settings = Settings(group_instance_id="pod", state_dir=tmp_path)
    begun = threading.Event()

    def on_signal(*_: object) -> None:
        assert begin_restart(directory.path)
        begun.set()
        assert end_restart(directory.path)

    before = signal.signal(DRAIN, on_signal)
    try:
        with StateDirectory(tmp_path, parent_name(settings)) as directory:
            assert refuse_restart(directory.path, RefusedError("no process could be prepared"))
            assert restart(settings, 60.0) == "parent pod-parent"
            assert begun.is_set()
    finally:
        signal.signal(DRAIN, before)


class Ends:
    """Processes of workers, which end with given statuses, one after another, or run until they are asked."""

    def __init__(self, statuses: dict[str, list[int]], monkeypatch: pytest.MonkeyPatch) -> None:
        self.started: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._statuses = statuses
        monkeypatch.setattr("streamapp.worker.supervisor.FIRST_PAUSE", 0.0)
        monkeypatch.setattr("streamapp.worker.supervisor.ready", lambda child: child.process)
        monkeypatch.setattr(Child, "start", lambda child, _: self._start(child))

    def _start(self, child: Child) -> Stopped:
        left = self._statuses[child.name]
        child.process = process = Stopped(left.pop(0) if left else 0)  # type: ignore[assignment]
        process.ok = not left  # the last one runs
        if left:
            process.asked.set()
        self.started.put(child.name)
        return process


def test_wrong_settings_of_one_worker_end_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """For example, its directory cannot be written, or another program has its port."""
    parent = Parent(Settings(group_instance_id="p", state_dir=tmp_path), 2, True, tmp_path)
    ends = Ends({"p-1": [0], "p-2": [78, 78, 78, 0]}, monkeypatch)
    parent.scale(2)
    assert sorted(ends.started.get(timeout=60) for _ in range(5)) == ["p-1"] + ["p-2"] * 4
    assert not parent._stopping.is_set()
    assert not parent.children[0].process.asked.is_set()  # type: ignore[union-attr]
    text = "worker p-2 ended with 78 because its settings are wrong (all others run on), starting it again"
    assert caplog.text.count(text) == 3
    parent.stop()
    for _, thread in list(parent._running.values()):
        thread.join(60)
    assert parent.code == 0


@pytest.mark.parametrize("status", [64, 78])
def test_wrong_settings_of_all_workers_end_the_parent(
    status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    parent = Parent(Settings(group_instance_id="p", state_dir=tmp_path), 3, True, tmp_path)
    Ends({f"p-{n}": [status] * 1_000_000 for n in (1, 2, 3)}, monkeypatch)
    parent.scale(3)
    for _, thread in list(parent._running.values()):
        thread.join(60)
    assert parent.code == status
    assert f"ended with {status}: the settings are wrong, stopping all" in caplog.text


def test_a_process_that_is_killed_before_it_reads_its_settings_is_prepared_no_more() -> None:
    """The settings are unread when it ends, so that the connection is reset."""
    prepared = PreparedWorker(os.environ)
    assert prepared.become({"GROVE_WEB_PORT": "7000"})
    os.killpg(prepared.process.group, signal.SIGKILL)
    assert prepared.process.wait() == -signal.SIGKILL
    assert not prepared.wait_until_prepared()
    prepared.close()
