"""Driver: the consumer of `streamapp/worker/driver/consumer.py`, as far as processing uses it.

The consumer is above the processing, which it calls, so that its class cannot be imported here.
"""

from __future__ import annotations

from typing import Protocol

from streamapp.worker.transport.membership import Membership


class Driver(Protocol):
    """Fetches records, and hands them out in deliveries; belongs to the event loop."""

    membership: Membership | None  # None: between two assignments

    @property
    def epoch(self) -> int:
        """The number of assignments and of their ends up to now."""

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
