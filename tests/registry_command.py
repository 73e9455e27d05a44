"""The command `grove registry` as a process: the real schema registry of a session."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import tempfile
from typing import Self

PATIENCE = 120


class RegistryCommand:
    """Use as a context; `bootstrap_servers` is its address, as a shared broker has it."""

    def __enter__(self) -> Self:
        self._errors = tempfile.TemporaryFile("w+")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "streamapp", "registry", "--port", "0"],
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        ready = re.fullmatch(r"The schema registry is ready at (\S+)  \(Ctrl-C ends it\)\n", line)
        if ready is None:
            self._process.kill()
            self._process.wait()
            self._errors.seek(0)
            message = f"grove registry did not start: {line}{self._errors.read()}"
            raise RuntimeError(message)
        self.bootstrap_servers = ready[1]
        self.setting = self._process.stdout.readline().strip()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(PATIENCE)
        finally:
            self._process.kill()
            self._process.communicate()
            self._errors.close()
