"""Live partitions: the partitions whose records are fetched and delivered, with the records read ahead."""

from __future__ import annotations

from faust.types import TP

from streamapp.worker.transport.runs import TimeOrder


class LivePartitions:
    """The runs of each live partition, in one epoch."""

    def __init__(self) -> None:
        self.epoch = 0  # counts assignments and their ends
        self.orders: dict[int, TimeOrder] = {}

    def end_epoch(self) -> None:
        """Forget the fetched records: the worker that goes live with these partitions reads them again."""
        self.epoch += 1
        self.orders.clear()

    def has_backlog(self, now: float) -> bool:
        """Whether some partition has runs that are due."""
        return any(order.has_backlog(now) for order in self.orders.values())

    @property
    def is_behind(self) -> bool:
        """Whether the last fetch of some topic left records at the broker."""
        return any(ahead.lag for order in self.orders.values() for ahead in order.topics.values())

    def log_ends(self) -> dict[TP, int]:
        """Return the end of each log that the broker has reported."""
        return {
            TP(topic, partition): ahead.log_end
            for partition, order in self.orders.items()
            for topic, ahead in order.topics.items()
            if ahead.log_end is not None
        }
