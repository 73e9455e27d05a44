"""A process that has imported the worker and loaded its kernels, and forks one for each that is wanted.

A worker of its own spends two seconds of a core before it asks Kafka anything, and a run of the tests starts
more than a hundred. What is forked shares nothing that lives: no client, no loop and no thread exists yet,
which is looked at before each fork. How a worker starts by itself is shown by those that are started afresh
(`Installation.worker(…, fresh=True)`, `make demo`, everything that starts workers as its children).

`python -m tests.broker.fork_server FD`: a request on the socket FD is (module and its arguments, environment,
log); answers are (pid, None) of what was forked and (pid, exit code) of what has ended. That stays a zombie
until the server ends.
"""

import fcntl
import functools
import gc
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from multiprocessing.connection import Connection
from pathlib import Path

Request = tuple[list[str], dict[str, str], str]

ALONE = {"OPENBLAS_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false"}
"""Environment in which neither numpy nor pyarrow starts a thread when it is imported."""


class ForkServer:
    """The client's end: forks processes and knows how they ended."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.broker.fork_server", str(theirs.fileno())],
                env={**os.environ, **ALONE},
                pass_fds=[theirs.fileno()],
            )
        self._connection = Connection(ours.detach())
        self._codes: dict[int, int | None] = {}
        self._lock = threading.Lock()  # tests look at workers from several threads

    def fork(self, words: list[str], environment: dict[str, str], log: Path) -> int:
        """Start a process, its output into `log`; return its id."""
        with self._lock:
            self._connection.send((words, environment, str(log)))
            while True:
                pid, code = self._connection.recv()
                self._codes[pid] = code
                if code is None:
                    return int(pid)

    def code(self, pid: int, *, ended: bool = False) -> int | None:
        """Return the exit code, minus the number of the signal that ended it, or None while it runs.

        `ended`: it has, and its code is waited for.
        """
        with self._lock:
            while self._connection.poll() or (ended and self._codes[pid] is None):
                one, code = self._connection.recv()
                self._codes[one] = code
            return self._codes[pid]

    def close(self) -> None:
        """End the server, and with it what it has forked."""
        self._connection.close()
        self._process.wait()


@functools.cache
def fork_server() -> ForkServer:
    """Return the server of this process, which ends it (`tests/conftest.py`)."""
    return ForkServer()


class ForkedProcess:
    """As much of `subprocess.Popen` as the tests use."""

    def __init__(self, words: list[str], environment: dict[str, str], log: Path) -> None:
        self._server = fork_server()
        self.pid = self._server.fork(words, environment, log)

    def poll(self) -> int | None:
        return self._server.code(self.pid)

    def wait(self, seconds: float | None = None) -> int:
        try:
            watch = os.pidfd_open(self.pid)
        except ProcessLookupError:
            pass  # it has ended
        else:
            try:
                if not select.select([watch], [], [], seconds)[0]:
                    raise subprocess.TimeoutExpired(f"process {self.pid}", seconds or 0.0)
            finally:
                os.close(watch)
        code = self._server.code(self.pid, ended=True)
        assert code is not None
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def serve(connection: Connection) -> Request:
    """Fork until the client closes its end; returns in each child, with what it is to be."""
    waking, woken = os.pipe2(os.O_NONBLOCK)
    signal.set_wakeup_fd(woken)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal: who asked for the children ends them
    children: set[int] = set()
    while True:
        both: list[Connection | int] = [connection, waking]
        ready, _, _ = select.select(both, [], [])
        if waking in ready:
            os.read(waking, 4096)
            for pid in sorted(children):
                # Not reaped: the number of a zombie is its own. A test that signals it or reads what it has
                # computed, after its end and before this message, meets neither nothing nor a stranger.
                ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
                if ended is not None:
                    children.remove(pid)
                    exited = ended.si_code == os.CLD_EXITED
                    connection.send((pid, ended.si_status if exited else -ended.si_status))
        if connection in ready:
            try:
                request: Request = connection.recv()
            except EOFError:
                for pid in children:
                    os.kill(pid, signal.SIGKILL)
                sys.exit()
            threads = len(list(Path("/proc/self/task").iterdir()))
            assert threads == 1, f"{threads} threads: a fork would copy one of them, and all of their locks"
            pid = os.fork()
            if not pid:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                signal.signal(signal.SIGINT, signal.default_int_handler)
                connection.close()
                os.close(waking)
                os.close(woken)
                return request
            children.add(pid)
            connection.send((pid, None))


def become(request: Request) -> None:
    """Be `python -m module arguments`, with an environment and a log of its own."""
    words, environment, log = request
    with open(log, "ab") as output, open(os.devnull, "rb") as nothing:  # noqa: PTH123 - descriptors are wanted
        os.dup2(nothing.fileno(), 0)
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = words
    runpy.run_module(words[0], run_name="__main__", alter_sys=True)


def prepare() -> None:
    """Import what a worker imports, and load the kernels."""
    import streamapp.cli.running.worker
    import streamapp.worker.processing.pipeline
    import streamapp.worker.restore.restorer
    import streamapp.worker.worker  # noqa: F401
    from streamapp.worker.compile_ahead import warm_kernels

    with open(Path(tempfile.gettempdir()) / "grove-tests-warm.lock", "w") as lock:  # noqa: PTH123
        fcntl.flock(lock, fcntl.LOCK_EX)  # what one has compiled the others load
        warm_kernels()
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    prepare()
    become(serve(Connection(int(sys.argv[1]))))
