"""Memory of tasks and restores that ended goes back to the system."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import threading
import weakref
from pathlib import Path

import pytest

from streamapp.worker.freed_memory import give_back
from tests.topology.partition import ALWAYS, Partition, config

MIB = 1 << 20


def resident() -> int:
    """Return the bytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * 4096


def test_models_of_a_task_that_left_are_freed() -> None:
    partition = Partition(config(ALWAYS))
    partition.instances({"features": {"x": 1}})
    models = weakref.ref(partition.task.models)
    gc.disable()
    try:
        del partition
        asyncio.run(give_back())
        assert models() is None
    finally:
        gc.enable()


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="malloc_trim is glibc's")
def test_memory_that_a_thread_has_freed_leaves_the_process() -> None:
    """The last block is in use, so glibc cannot shorten the arena by itself."""
    kept: list[bytes] = []

    def restore() -> None:
        blocks = [bytes([1]) * 65_000 for _ in range(1000)]
        kept.append(blocks[-1])

    thread = threading.Thread(target=restore)
    thread.start()
    thread.join()
    before = resident()
    asyncio.run(give_back())
    assert before - resident() > 30 * MIB
