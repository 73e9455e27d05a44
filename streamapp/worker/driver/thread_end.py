"""End of a thread with an event loop of its own: it ends within seconds, whatever waits in that loop.

The main loop stands still while it waits for the last steps of a thread. If a task of the thread waited for
the main loop then, or continued although it was cancelled, neither would ever end. aiokafka has such tasks: a
task that is cancelled while it awaits another one is cancelled only if the other one is, and aiokafka's
heartbeat returns instead.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import Any, Final

from mode.threads import ServiceThread

logger = logging.getLogger(__name__)

CANCELLED_S: Final = 5.0
"""Seconds that an end waits for cancelled tasks; they need milliseconds, on a busy machine longer."""


async def cancel_within(tasks: Iterable[asyncio.Task[Any]], seconds: float) -> None:
    """Cancel tasks of the running loop and wait for them; log those that have not ended after `seconds`."""
    cancelled = set(tasks)
    for task in cancelled:
        task.cancel()
    if not cancelled:
        return
    ended, stuck = await asyncio.wait(cancelled, timeout=seconds)
    for task in ended:
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.debug("a task has failed when it was cancelled: %r", error)
    for task in stuck:  # nothing is lost with it, and the process must end
        logger.warning("ending without a task that does not end when it is cancelled: %s", task)


class EndingThread(ServiceThread):
    """A thread of mode's that ends without the tasks that do not end when they are cancelled."""

    abstract = True

    async def _gather_remaining_tasks(self) -> None:
        await cancel_within(asyncio.all_tasks() - {asyncio.current_task()}, CANCELLED_S)
