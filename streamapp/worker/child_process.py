"""Child process that never outlives its starter: `_reaper.py` ends it when our end of a pipe closes."""

import contextlib
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path


class GuardedProcess:
    """A command whose output goes to a file; ended by `stop()`, or by the guard when this process has ended.

    The command runs in a separate session: a Ctrl-C in the terminal reaches only this process, which decides
    the order in which processes end.
    """

    def __init__(
        self,
        command: Sequence[str],
        log: Path | None,
        *,
        remove: Path | None = None,
        environment: Mapping[str, str] | None = None,
        descriptor: int | None = None,
    ) -> None:
        """Start the command.

        `log`: None: its output goes where the output of this process goes. `remove`: a directory that the
        guard deletes if this process dies without a word to it. `descriptor`: an open file that the command
        gets under the same number.
        """
        self._asked: set[bool] = set()  # False: to end in order, True: to be killed
        options = ["--remove", str(remove)] if remove else []
        options += [] if descriptor is None else ["--descriptor", str(descriptor)]
        guard = [sys.executable, "-I", "-S", str(Path(__file__).with_name("_reaper.py")), *options, "--"]
        with contextlib.nullcontext() if log is None else log.open("ab") as output:
            self._guard = subprocess.Popen(
                [*guard, *command],
                stdin=subprocess.PIPE,
                bufsize=0,
                stdout=output,
                stderr=output,
                env=None if environment is None else dict(environment),
                start_new_session=True,
                pass_fds=() if descriptor is None else (descriptor,),
            )

    @property
    def status(self) -> int | None:
        """The exit status (128 plus the signal's number if a signal ended it); None while it runs."""
        return self._guard.poll()

    @property
    def group(self) -> int:
        """Number of the process group of the command and its guard."""
        return self._guard.pid

    def ask_to_stop(self, kill: bool = False, *, drain: bool = False) -> None:
        """Request an orderly end (`drain`: by SIGUSR2) or an immediate one (`kill`), without waiting for it.

        A repeated request has no effect, except `kill` after another request. A command that has ended
        ignores it.
        """
        assert self._guard.stdin is not None
        if self._guard.stdin.closed or kill in self._asked or True in self._asked:
            return
        self._asked.add(kill)
        word = b"kill\n" if kill else b"drain\n" if drain else b"stop\n"
        with contextlib.suppress(BrokenPipeError):  # it has already ended
            self._guard.stdin.write(word)

    def stop(self, kill: bool = False) -> int:
        """End the command, wait for its end and return its exit status."""
        self.ask_to_stop(kill)
        return self._wait(None)  # the reaper kills a process that does not end

    def wait(self, seconds: float | None = None) -> int | None:
        """Block for at most `seconds` until the command ends; return its status (None: it still runs)."""
        try:
            return self._wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def _wait(self, seconds: float | None) -> int:
        status = self._guard.wait(seconds)
        assert self._guard.stdin is not None
        self._guard.stdin.close()
        return status
