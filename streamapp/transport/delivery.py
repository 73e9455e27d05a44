"""Delivery: what the driver hands to the agent, one run of one partition or a tick."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import faust

from streamapp.transport.runs import Run


@dataclass(frozen=True, slots=True, eq=False)
class Delivery:
    """A run, or (`run` is None) an opportunity to commit inside a stream event although nothing arrived."""

    partition: int
    run: Run | None
    epoch: int  # counts assignments; a delivery of an earlier one is void
    done: asyncio.Future[None]

    def finish(self) -> None:
        """Let the driver go on."""
        if not self.done.done():
            self.done.set_result(None)


class DeliverySchema(faust.Schema[Any, Any]):
    """How Faust decodes it: not at all; the agent gets the object that the driver made."""

    def compile(self, app: Any, **_options: Any) -> Callable[..., Awaitable[Any]]:
        create_event = app.create_event

        async def decode(message: Any, *, propagate: bool = False) -> Any:
            return create_event(None, message.value, None, message)

        return decode
