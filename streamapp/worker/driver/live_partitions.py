"""Live partitions: the partitions whose records are fetched and delivered, with the records read ahead."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

from faust.types import TP

from streamapp.worker.transport.runs import ReadAhead, TimeOrder, wanted_of


class LivePartitions:
    """The runs of each live partition, in one epoch."""

    def __init__(self) -> None:
        self.epoch = 0  # counts assignments and their ends
        self.orders: dict[int, TimeOrder] = {}
        self._noted: Mapping[TP, int] = {}  # reported last
        self._log_ends: Mapping[TP, int] | None = None  # of all topics; None: an end has changed
        self._topics: list[ReadAhead] = []
        self._topics_of: tuple[TimeOrder, ...] = ()

    def end_epoch(self) -> None:
        """Forget the fetched records: the worker that goes live with these partitions reads them again."""
        self.epoch += 1
        self.orders.clear()
        self._noted, self._log_ends = {}, None
        self._topics, self._topics_of = [], ()

    def has_backlog(self, now: float, holds: Callable[[int], bool] = lambda _: False) -> bool:
        """Whether some partition has runs that are due; `holds`: whether a partition waits for schemas."""
        if self.is_at_rest:
            return False
        return any(order.has_backlog(now) for partition, order in self.orders.items() if not holds(partition))

    @property
    def topics(self) -> list[ReadAhead]:
        """The topics of all live partitions; the same list until a partition comes or goes."""
        orders = (*self.orders.values(),)
        if orders != self._topics_of:
            self._topics_of, self._log_ends = orders, None
            self._topics = [ahead for order in orders for ahead in order.topics.values()]
        return self._topics

    @property
    def is_at_rest(self) -> bool:
        """Whether no record waits here, and none was given back."""
        # A list, in which nothing is called: each turn looks at each topic of each partition.
        return not [ahead for ahead in self.topics if ahead.n or ahead.released]

    def wanted(self, most_inflated: int, now: float) -> list[ReadAhead]:
        """Return the topics to fetch at `now` (`wanted_of` in streamapp/worker/transport/runs.py)."""
        return self.topics if self.is_at_rest else wanted_of((*self.orders.values(),), most_inflated, now)

    @property
    def is_behind(self) -> bool:
        """Whether the last fetch of some topic left records at the broker."""
        return bool([at for at in self.topics if at.log_end is not None and at.log_end > at.position])

    def note_log_ends(self, log_ends: Mapping[TP, int]) -> None:
        """Note where the logs of live partitions end; most turns of an idle worker report no change."""
        if log_ends == self._noted:
            return
        self._noted, self._log_ends = log_ends, None
        for tp, log_end in log_ends.items():
            if tp.partition in self.orders:
                self.orders[tp.partition].topics[tp.topic].log_end = log_end

    def log_ends(self) -> Mapping[TP, int]:
        """Return the end of each log that the broker has reported; the same mapping until one changes."""
        topics = self.topics
        if self._log_ends is None:
            ends = {ahead.place: ahead.log_end for ahead in topics if ahead.log_end is not None}
            self._log_ends = cast("Mapping[TP, int]", ends)
        return self._log_ends
