"""Memory that a worker has freed goes back to the system while the worker runs."""

import asyncio
import contextlib
import platform
from pathlib import Path

import pytest

from streamapp.worker import freed_memory
from streamapp.worker.freed_memory import keep_giving_back

BLOCKS, BLOCK_BYTES, KEPT = 4_000, 16_384, 8


def resident() -> int:
    """Return the resident memory of this process in bytes."""
    status = Path("/proc/self/status").read_text()
    return 1024 * next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:"))


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="malloc_trim is glibc's")
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
