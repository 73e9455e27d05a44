"""Requests for offsets of logs: sent on a connection without fetches.

A broker answers the requests of a connection in order, and holds a fetch that has no records. Behind one, the
range of a log would come up to `fetch.max.wait.ms` late, and a partition would go live that much later.
"""

from __future__ import annotations

from typing import Any

from aiokafka.client import ConnectionGroup
from aiokafka.protocol.offset import OffsetRequest


class OffsetRequests:
    """Sends requests for offsets on the connection to a broker that aiokafka has for the group.

    If another broker than the group's coordinator leads a log, aiokafka opens such a connection to it.
    """

    def __init__(self, client: Any) -> None:
        """`client`: aiokafka's, in the loop of the consumer's thread."""
        self._send = client.send
        client.send = self._send_apart

    async def _send_apart(self, node_id: int, request: Any, **options: Any) -> Any:
        if isinstance(request, OffsetRequest):
            options = {"group": ConnectionGroup.COORDINATION} | options
        return await self._send(node_id, request, **options)
