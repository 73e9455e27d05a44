"""Freed memory goes back to the system: after a rebalance, and every minute; threads share two arenas.

A task that left is a cycle, with all its models. A restore frees its clients and buffers in threads, and
glibc keeps such memory for the next allocations of these threads. The backlog after an outage of the broker
and each table that RocksDB writes leave free pages between pages in use, which glibc never returns by itself:
a worker grows for hours.

A page that is in use in part cannot be returned. Such pages add up with the number of arenas, because an
arena's free room is only for its own threads: a restored model is in the arena of the thread that restored
it, and leaves holes in another arena when the next restore replaces it.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import os
from typing import Final

from streamapp.worker.blocking_calls import run_blocking

PAUSE_S: Final = 60.0
"""Time between two calls that return free pages: 0.5 ms, and 0.7 ms for each MB that is returned, in which
other threads wait for memory.
"""

ARENAS: Final = 2
"""The main one and one more; glibc gives each thread one of them."""

M_ARENA_MAX: Final = -8
"""The number of this limit in glibc's `malloc.h`."""


def limit_arenas() -> None:
    """Limit the arenas of this process to `ARENAS`, before it starts threads; arenas that exist stay.

    Without a limit, glibc makes up to eight arenas for each core. A limit of the environment stays
    (`MALLOC_ARENA_MAX`, or `glibc.malloc.arena_max` in `GLIBC_TUNABLES`). Other C libraries have no arenas.
    """
    by_operator = "MALLOC_ARENA_MAX" in os.environ or "arena_max" in os.environ.get("GLIBC_TUNABLES", "")
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is not None and not by_operator:
        set_option(M_ARENA_MAX, ARENAS)


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
