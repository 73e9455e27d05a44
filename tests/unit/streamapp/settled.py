"""To assert that something does not happen: first everything else has to."""

import asyncio


async def settled() -> None:
    """Return when every task of the loop waits for something from outside: a thread, the clock, the test."""
    loop = asyncio.get_running_loop()
    while loop._ready:  # type: ignore[attr-defined] # noqa: ASYNC110 - asyncio has no event for that
        await asyncio.sleep(0)
