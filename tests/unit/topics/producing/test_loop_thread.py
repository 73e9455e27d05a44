"""A loop that is closed keeps no thread waiting."""

from __future__ import annotations

import asyncio
import threading

import pytest

from topics.errors import AbortedError
from topics.producing.loop_thread import CLOSED, LoopThread


async def for_ever() -> None:
    await asyncio.Event().wait()


async def nothing() -> None:
    pass


def waiting(loop: LoopThread, errors: list[str]) -> threading.Thread:
    """Return a thread that waits for a coroutine without end."""
    begun = threading.Event()

    async def work() -> None:
        begun.set()
        await for_ever()

    def run() -> None:
        try:
            loop.run(work())
        except AbortedError as error:
            errors.append(str(error))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    begun.wait()
    return thread


@pytest.mark.parametrize("is_long", [False, True])
def test_a_close_ends_the_waits_of_other_threads(is_long: bool) -> None:
    loop, errors = LoopThread("test"), list[str]()
    thread = waiting(loop, errors)
    assert loop.close(for_ever() if is_long else nothing(), 0.05) is not is_long
    thread.join(10)
    assert errors == [CLOSED]


def test_a_closed_loop_takes_no_work() -> None:
    loop = LoopThread("test")
    loop.close(nothing(), 1.0)
    with pytest.raises(AbortedError, match=CLOSED):
        loop.run(nothing())
    with pytest.raises(AbortedError, match=CLOSED):
        loop.soon(lambda: None)


def test_work_that_comes_during_the_close_is_refused() -> None:
    loop, errors = LoopThread("test"), list[str]()

    async def last() -> None:
        def run() -> None:
            try:
                loop.run(nothing())
            except AbortedError as error:
                errors.append(str(error))

        await asyncio.to_thread(run)

    assert loop.close(last(), 10.0)
    assert errors == [CLOSED]


def test_an_error_of_the_last_work_is_raised() -> None:
    loop, errors = LoopThread("test"), list[str]()
    thread = waiting(loop, errors)

    async def fails() -> None:
        raise OSError

    with pytest.raises(OSError):
        loop.close(fails(), 1.0)
    thread.join(10)
    assert errors == [CLOSED]
