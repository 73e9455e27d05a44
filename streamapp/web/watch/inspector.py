"""Inspector: sends questions about an installation to a separate process (`streamapp.tools.inspection`).

That process rebuilds models, so that this one neither waits nor keeps their memory. It starts with the
first question and ends when no question has come for a while.
"""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO, Any, Final

import orjson

from streamapp.web.clock import now_ms

logger = logging.getLogger(__name__)

TIMEOUT_S: Final = 120.0
"""Timeout of an answer: the process may have to rebuild a large partition."""
IDLE_S: Final = 120.0
"""After this time without a question the process ends, and its memory is free."""
KEPT: Final = 32
"""Answers that are kept, at most."""
FRESH_MS: Final = 15_000
"""An answer of this age or less is returned again, so that reloading a page costs nothing."""


class InspectionError(Exception):
    """A question that could not be answered; the text is for people."""


@dataclass(frozen=True, slots=True)
class Found:
    """An answer, and the time of the question: the answer's state is not older."""

    at_ms: int
    answer: Any


class Inspector:
    """Sends one question at a time, from any thread."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        """environment: variables of the process, with the settings of the installation."""
        self._environment = dict(environment)
        self._turn = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._idle: threading.Timer | None = None
        self._kept: OrderedDict[bytes, tuple[int, Found]] = OrderedDict()
        self._closed = False

    def look(self, ask: str, *, fresh_ms: int = FRESH_MS, **arguments: Any) -> Found:
        """Return the answer to a question that changes nothing; InspectionError.

        An answer that is at most `fresh_ms` old is returned again.
        """
        question = _question(ask, arguments)
        with self._turn:
            kept = self._kept.get(question)
            if kept is not None and now_ms() - kept[0] < fresh_ms:
                self._kept.move_to_end(question)
                return kept[1]
            reply = Found(now_ms(), self._ask(question))
            self._kept[question] = now_ms(), reply
            self._kept.move_to_end(question)
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
            return reply

    def do(self, ask: str, **arguments: Any) -> Any:
        """Carry something out, once; after an InspectionError it may have been carried out or not."""
        with self._turn:
            self._kept.clear()
            return self._ask(_question(ask, arguments))

    def close(self) -> None:
        """End the process."""
        with self._turn:
            self._closed = True
            self._end()

    def _ask(self, question: bytes) -> Any:
        if self._closed:
            message = "the application ends"
            raise InspectionError(message)
        process = self._running()
        late = threading.Timer(TIMEOUT_S, process.kill)
        late.start()
        try:
            _of(process.stdin).write(question + b"\n")
            _of(process.stdin).flush()
            line = _of(process.stdout).readline()
        except OSError:
            line = b""
        finally:
            late.cancel()
        if not line:
            self._end()
            message = "the process that looks into the installation has ended; see its log. Try again"
            raise InspectionError(message)
        self._wait_idle()
        reply = orjson.loads(line)
        if "error" in reply:
            raise InspectionError(reply["error"])
        return reply["found"]

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self._end()
            self._process = subprocess.Popen(
                [sys.executable, "-m", "streamapp.tools.inspection"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=self._environment,
            )
        return self._process

    def _wait_idle(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
        self._idle = threading.Timer(IDLE_S, self._end_idle, [time.monotonic()])
        self._idle.daemon = True
        self._idle.start()

    def _end_idle(self, _: float) -> None:
        with self._turn:
            if self._idle is threading.current_thread():
                self._end()

    def _end(self) -> None:
        if self._idle is not None and self._idle is not threading.current_thread():
            self._idle.cancel()
        process, self._process, self._idle = self._process, None, None
        if process is not None:
            _of(process.stdout).close()
            try:
                _of(process.stdin).close()  # the process ends when its input does
                process.wait(5.0)
            except (OSError, subprocess.TimeoutExpired):
                process.kill()
                process.wait()


def _question(ask: str, arguments: Mapping[str, Any]) -> bytes:
    return orjson.dumps({"ask": ask, **arguments}, option=orjson.OPT_SORT_KEYS)


def _of(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe
