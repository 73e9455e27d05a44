"""Freed memory: what a rebalance leaves behind goes back to the system, not only to this process.

A task that left is a cycle, with all its models. A restore frees its clients and buffers in threads, and
glibc keeps such memory for the next allocations of these threads.
"""

from __future__ import annotations

import ctypes
import gc

from streamapp.worker.blocking_calls import run_blocking


async def give_back() -> None:
    """Free cycles, which takes milliseconds of the event loop, and then give free memory back in a thread."""
    gc.collect()
    await run_blocking(trim)


def trim() -> None:
    """Have glibc return its free pages; other C libraries have no such call."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
