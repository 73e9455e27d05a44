"""Calls to the disk: in order, and never in the way of the event loop."""

import asyncio
import threading
from functools import partial

import pytest

from streamapp.worker.snapshots.disk_thread import DiskThread, within


def test_calls_come_one_after_another_with_their_results() -> None:
    async def story() -> None:
        disk, seen = DiskThread(), list[int]()

        def see(number: int) -> int:
            seen.append(number)
            return -number

        results = await asyncio.gather(*[disk.run(partial(see, number)) for number in range(100)])
        assert (seen, results) == ([*range(100)], [-number for number in range(100)])
        disk.end()

    asyncio.run(story())


def test_an_error_belongs_to_the_one_who_waits_and_ends_nothing() -> None:
    def fail() -> None:
        raise OSError(28, "No space left on device")

    async def story() -> None:
        disk = DiskThread()
        failing, after = disk.run(fail), disk.run(lambda: "after")
        with pytest.raises(OSError, match="No space left"):
            await failing
        assert await after == "after"
        disk.end()

    asyncio.run(story())


def test_a_call_that_does_not_return_is_seen_and_holds_up_only_later_calls() -> None:
    async def story() -> None:
        disk, hangs, answers = DiskThread(), threading.Event(), threading.Event()

        def hang() -> None:
            hangs.set()
            assert answers.wait(60)

        assert await disk.run(disk.waits_s) > 0, "the call that asks"
        hanging, behind = disk.run(hang), disk.run(lambda: "behind")
        await asyncio.to_thread(hangs.wait, 60)
        assert not await within([hanging, behind], 0.01)
        assert disk.waits_s() > 0
        behind.cancel()
        assert not await within([hanging], 0.01)
        answers.set()
        async with asyncio.timeout(60):
            assert await within([hanging, behind], 60)
            assert await disk.run(lambda: "last") == "last"
        disk.end()

    asyncio.run(story())


def test_a_call_may_return_after_the_worker_has_ended() -> None:
    answers, returned = threading.Event(), threading.Event()

    def hang() -> None:
        assert answers.wait(60)

    async def story() -> None:
        disk = DiskThread()
        disk.run(hang)
        disk.run(returned.set)
        disk.end()

    asyncio.run(story())
    answers.set()
    assert returned.wait(60)
