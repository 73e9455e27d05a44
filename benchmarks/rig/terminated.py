"""SIGTERM as SystemExit, so that a program ends the processes that it has started."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def unwound_by_terminate() -> Iterator[None]:
    """Leave all `with` blocks at SIGTERM; the exit code is 143. Call it in the main thread.

    SIGHUP is left alone: a long run may have been started with nohup.
    """

    def leave(number: int, _frame: FrameType | None) -> None:
        sys.exit(128 + number)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
