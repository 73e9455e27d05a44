"""Driver: the consumer of `streamapp/worker/transport/consumer.py`, as far as processing uses it."""

from __future__ import annotations

from typing import Protocol

from streamapp.worker.transport.thread import Membership


class Driver(Protocol):
    """Fetches records, and hands them out in deliveries; belongs to the event loop."""

    epoch: int  # counts assignments and their ends
    membership: Membership | None  # None: between two assignments

    @property
    def broker_reachable(self) -> bool:
        """Whether the group's coordinator is known and has answered its latest request."""

    def wake(self) -> None:
        """End the current poll: its conditions have changed."""

    def abandon(self) -> None:
        """Forget the fetched records: the worker that goes live with these partitions reads them again."""

    def drop(self, partition: int) -> None:
        """Stop fetching one partition."""

    async def rejoin(self) -> None:
        """Join the group again: every partition is then restored."""

    async def crash(self, reason: BaseException) -> None:
        """End the worker, once: later failures are consequences."""
