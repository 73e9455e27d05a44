"""Memory that a worker has freed goes back to the system while the worker runs."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import platform
import subprocess
import sys
import threading
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from streamapp.worker import freed_memory
from streamapp.worker.freed_memory import give_back, keep_giving_back
from tests.topology.partition import ALWAYS, Partition, config

of_glibc = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="malloc_trim is glibc's")

BLOCKS, BLOCK_BYTES, KEPT = 4_000, 16_384, 8


def resident() -> int:
    """Return the resident memory of this process in bytes."""
    status = Path("/proc/self/status").read_text()
    return 1024 * next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:"))


@of_glibc
def test_free_pages_between_pages_in_use_are_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    """glibc returns only the end of its heap by itself, and each eighth block here is in use."""
    blocks = [bytearray(BLOCK_BYTES) for _ in range(BLOCKS)]
    in_use = blocks[::KEPT]
    blocks.clear()
    before = resident()

    async def until_trimmed() -> None:
        trimmed = asyncio.Event()
        loop, trim = asyncio.get_running_loop(), freed_memory.trim

        def and_tell() -> None:
            trim()
            loop.call_soon_threadsafe(trimmed.set)

        monkeypatch.setattr(freed_memory, "trim", and_tell)
        giving_back = asyncio.create_task(keep_giving_back(0.0))
        await trimmed.wait()
        giving_back.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await giving_back

    asyncio.run(until_trimmed())
    assert resident() < before - BLOCKS * BLOCK_BYTES // 2
    assert len(in_use) == BLOCKS // KEPT


ARENAS_OF_A_WORKER: Final = """
import ctypes, re, threading
from streamapp.errors import StreamappError
from streamapp.settings import Settings
from streamapp.worker.worker import run_worker

try:
    run_worker(Settings(state_dir="/dev/null"))
except StreamappError as error:
    assert "state.dir" in str(error), error
barrier, kept = threading.Barrier(21), []

def allocate():
    kept.append(bytes(5_000))
    barrier.wait()

for _ in range(20):
    threading.Thread(target=allocate).start()
barrier.wait()
libc, text, size = ctypes.CDLL(None), ctypes.c_char_p(), ctypes.c_size_t()
libc.open_memstream.restype, libc.malloc_info.argtypes = ctypes.c_void_p, (ctypes.c_int, ctypes.c_void_p)
stream = ctypes.c_void_p(libc.open_memstream(ctypes.byref(text), ctypes.byref(size)))
libc.malloc_info(0, stream)
libc.fclose(stream)
print(text.value.count(b"<heap nr="))
"""


def arenas_of_a_worker(more: Mapping[str, str]) -> int:
    """Return how many arenas 20 threads use in the process of a worker that cannot start."""
    glibc = ("MALLOC_ARENA_MAX", "GLIBC_TUNABLES")
    environment = {name: value for name, value in os.environ.items() if name not in glibc}
    command = [sys.executable, "-c", ARENAS_OF_A_WORKER]
    ran = subprocess.run(
        command, env={**environment, **more}, capture_output=True, text=True, timeout=120, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return int(ran.stdout.split()[-1])


@of_glibc
def test_threads_of_a_worker_share_two_arenas() -> None:
    """Each arena keeps pages that are in use in part: restores in thread after thread would add up."""
    assert arenas_of_a_worker({}) == 2


@of_glibc
@pytest.mark.parametrize(
    ("name", "value"), [("MALLOC_ARENA_MAX", "5"), ("GLIBC_TUNABLES", "glibc.malloc.arena_max=5")]
)
def test_a_limit_of_the_environment_stays(name: str, value: str) -> None:
    assert arenas_of_a_worker({name: value}) == 5


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


@of_glibc
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
    assert before - resident() > 30 * (1 << 20)
