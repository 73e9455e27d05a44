"""Freed memory goes back to the system: after a rebalance, and every minute.

A task that left is a cycle, with all its models. A restore frees its clients and buffers in threads, and
glibc keeps such memory for the next allocations of these threads. The backlog after an outage of the broker
and each table that RocksDB writes leave free pages between pages in use, which glibc never returns by itself:
a worker grows for hours.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
from typing import Final

from streamapp.worker.blocking_calls import run_blocking

PAUSE_S: Final = 60.0
"""Time between two calls that return free pages: 0.5 ms, and 0.7 ms for each MB that is returned, in which
other threads wait for memory.
"""


async def keep_giving_back(pause_s: float = PAUSE_S) -> None:
    """Return free pages from time to time, until cancelled.

    Cycles stay: a collection would walk all models in the event loop.
    """
    while True:
        await asyncio.sleep(pause_s)
        await run_blocking(trim)


async def give_back() -> None:
    """Free cycles, which takes milliseconds of the event loop, and then give free memory back in a thread."""
    gc.collect()
    await run_blocking(trim)


def trim() -> None:
    """Have glibc return its free pages; other C libraries have no such call."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
