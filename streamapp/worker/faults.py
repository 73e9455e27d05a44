"""Fault points: a worker that is killed at a named step. For tests only.

`GROVE_FAULT_POINT=snapshot-index` kills the worker where it comes to that step for the first time,
`snapshot-index:3` at the third time.
"""

from __future__ import annotations

import os
import signal
from typing import Final

VARIABLE: Final = "GROVE_FAULT_POINT"
POINTS: Final = (
    "commit-before",
    "commit-after",
    "snapshot-cut",
    "snapshot-chunks",
    "snapshot-index",
    "snapshot-complete",
    "snapshot-garbage",
    "restore-read",
    "restore-replay",
    "live-before",
)

_come: dict[str, int] = {}


def point(name: str) -> None:
    """Kill this process if the environment variable names this step."""
    named_step = os.environ.get(VARIABLE)
    if named_step is None:
        return
    step, _, count = named_step.partition(":")
    if step == name:
        _come[name] = _come.get(name, 0) + 1
        if _come[name] >= int(count or 1):
            os.kill(os.getpid(), signal.SIGKILL)
