"""Delivery: an event for the agent: a run, small runs of several partitions, or a tick."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import faust

from streamapp.worker.transport.runs import Run, TimeOrder


@dataclass(frozen=True, slots=True, eq=False)
class Delivery:
    """Runs in their order; without runs, an opportunity to commit in a stream event."""

    partition: int  # of the first run; without any, a partition that has uncommitted work
    runs: tuple[Run, ...]
    epoch: int  # counts assignments; a delivery of an earlier epoch is void
    done: asyncio.Future[None]
    rest: list[Run] = field(default_factory=list)  # records that were too many for one step, not processed
    is_followed: bool = False  # the driver has other runs, which it delivers without a fetch in between

    def finish(self) -> None:
        """Let the driver continue."""
        if not self.done.done():
            self.done.set_result(None)

    def give_back(self, orders: Mapping[int, TimeOrder]) -> int:
        """Give unprocessed records back to the orders they came from; return the number of other records."""
        records: int = sum([run.raw.spans.table.shape[1] for run in self.runs])
        if not self.rest:
            return records
        processed = {run.raw.partition: len(run.raw) for run in self.runs}
        for run in self.rest:
            records -= len(run.raw)
            processed[run.raw.partition] -= len(run.raw)
            if run.raw.partition in orders:
                orders[run.raw.partition].give_back(run, processed[run.raw.partition])
        return records


class DeliverySchema(faust.Schema[Any, Any]):
    """A schema without decoding: the agent gets the object that the driver made."""

    def compile(self, app: Any, **_options: Any) -> Callable[..., Awaitable[Any]]:
        create_event = app.create_event

        async def decode(message: Any, *, propagate: bool = False) -> Any:
            return create_event(None, message.value, None, message)

        return decode
