"""Rig of the driver: a consumer without Faust, aiokafka and a broker, driven by what these do with it.

Only this module has what is attached to a consumer, and its parts that Faust or its thread would reach. A
consumer cannot be constructed without an app of Faust; `tests/broker` has it whole.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any, cast

from faust.types import TP

from streamapp.worker.transport.consumer import Consumer
from streamapp.worker.transport.runs import TimeOrder


class Reading:
    """A consumer that reads live partitions, as far as it deals with positions that a log does not have."""

    def __init__(self, manager: Any, epoch: int, orders: Iterable[TimeOrder]) -> None:
        self.logs: dict[TP, tuple[int, int]] = {}  # first offset and end
        self._consumer: Any = cast("Any", Consumer.__new__(Consumer))
        self._consumer.epoch = epoch
        self._consumer._orders = {order.partition: order for order in orders}
        self._consumer.wiring = SimpleNamespace(manager=manager)
        self._consumer._thread = SimpleNamespace(log_ranges=self._log_ranges)

    async def _log_ranges(self, partitions: Iterable[TP]) -> dict[TP, tuple[int, int]]:
        return {tp: self.logs[tp] for tp in partitions}

    async def positions_are_out_of_range(self, *partitions: TP) -> None:
        """A fetch has found that the logs of these partitions do not have the positions it asked for."""
        await self._consumer._jump(self._consumer.epoch, list(partitions))
