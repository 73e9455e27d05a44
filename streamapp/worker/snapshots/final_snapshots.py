"""Final snapshots: a worker that stops regularly snapshots each partition at its last commit.

The next owner of the partitions then has nothing to replay. This is best effort: a snapshot that is not
complete in time is abandoned, and the next owner replays the tail, as after a worker that was killed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from streamapp.worker.snapshots.snapshot_writer import SnapshotWriter

logger = logging.getLogger(__name__)

TIMEOUT_S: Final = 8.0
"""Less than the time that producers of a stopping worker wait for the broker
(`topics.clients.stop_deadline.STOP_S`).
"""


async def leave_snapshots(
    snapshots: SnapshotWriter, commit: Callable[[], Awaitable[object]], goes_on: Callable[[], bool]
) -> None:
    """Return when no partition has changed since its newest snapshot, or when that takes too long.

    `commit` commits uncommitted work, cuts due partitions, and commits finished snapshots; `goes_on`: whether
    the partitions are still the same as at the beginning. Nothing is processed during this.
    """
    snapshots.finish()
    try:
        async with asyncio.timeout(TIMEOUT_S):
            while goes_on() and snapshots.unfinished():
                snapshots.changed.clear()
                await commit()
                if snapshots.unfinished():
                    await snapshots.changed.wait()
    except TimeoutError:
        logger.warning(
            "partitions %s have no snapshot of their end within %.0f s: a restore replays the records after "
            "the newest snapshot",
            snapshots.unfinished(),
            TIMEOUT_S,
        )
