"""How many cycles a worker keeps in memory before Python's collector frees them."""

from __future__ import annotations

import gc
import weakref

from streamapp.worker.worker import GC_THRESHOLDS


class Closed:
    """An object like asyncio's closed transports: it holds one of its own methods."""

    def __init__(self) -> None:
        self.ready = self.read
        self.buffers: list[bytes] = []

    def read(self) -> None:
        """Do nothing."""


def test_closed_connections_do_not_add_up_for_hours() -> None:
    """A scrape and two probes leave about ten objects, some twenty thousand in half an hour."""
    before = gc.get_threshold()
    gc.collect()
    gc.set_threshold(*GC_THRESHOLDS)
    try:
        alive: weakref.WeakSet[Closed] = weakref.WeakSet()
        most = 0
        for _ in range(20_000):
            alive.add(Closed())
            most = max(most, len(alive))
    finally:
        gc.set_threshold(*before)
    assert most < 10_000
