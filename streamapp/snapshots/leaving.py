"""What a worker that ends in order leaves behind: a snapshot of each partition where it committed last.

Whoever gets the partitions then has nothing to replay. It is a courtesy: what is not written in time is
abandoned, and replayed like the tail of a worker that was killed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from streamapp.snapshots.writer import SnapshotWriter

logger = logging.getLogger(__name__)

PATIENCE_S: Final = 8.0
"""Less than what senders wait for the broker once a worker stops (`topics.sender.STOP_S`)."""


async def leave_snapshots(
    snapshots: SnapshotWriter, commit: Callable[[], Awaitable[object]], goes_on: Callable[[], bool]
) -> None:
    """Return when no partition has changed since its newest snapshot, or when that takes too long.

    `commit` commits what there is to commit, cuts what is due, and commits finished snapshots; `goes_on`:
    whether the partitions are still those of the beginning. Nothing is processed meanwhile.
    """
    snapshots.finish()
    try:
        async with asyncio.timeout(PATIENCE_S):
            while goes_on() and snapshots.unfinished():
                snapshots.changed.clear()
                await commit()
                if snapshots.unfinished():
                    await snapshots.changed.wait()
    except TimeoutError:
        logger.warning(
            "partitions %s have no snapshot of their end within %.0f s: whoever restores them replays what "
            "the newest one lacks",
            snapshots.unfinished(),
            PATIENCE_S,
        )
