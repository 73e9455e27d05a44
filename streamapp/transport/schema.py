"""Delivery schema for Faust: nothing is decoded, the agent gets the object that the driver made."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import faust


class DeliverySchema(faust.Schema[Any, Any]):
    """Passes the message's value through."""

    def compile(self, app: Any, **_options: Any) -> Callable[..., Awaitable[Any]]:
        create_event = app.create_event

        async def decode(message: Any, *, propagate: bool = False) -> Any:
            return create_event(None, message.value, None, message)

        return decode
