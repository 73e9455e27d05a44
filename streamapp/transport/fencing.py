# ruff: noqa: SLF001 - what is read of aiokafka is held by tests/contract/test_transport_aiokafka.py
"""Fencing: a worker whose name another worker has taken over ends.

A static member that joins takes the place of the one of the same name. aiokafka's heartbeats and commits do
not carry the name, so the broker calls the member that was replaced unknown, as it does one that was silent
for too long; and who is unknown joins again, and replaces the other. Two workers of one name would do that
for ever. So a member that has become unknown looks first whether its name is in the group: then it is the
other's, and this worker ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

from aiokafka.errors import KafkaError
from aiokafka.protocol.admin import DescribeGroupsRequest

from streamapp.errors import SettingsError

ID_LENGTH: Final = 36  # of the UUID that a broker puts behind the name of a static member


class NameTakenError(SettingsError):
    """Another worker of the same name has joined the group."""


class Fencing:
    """Checks the group before aiokafka joins it, in the loop of the consumer's thread."""

    def __init__(self, coordinator: Any, report: Callable[[NameTakenError], None]) -> None:
        """`report` is called when another member has taken the name."""
        self._coordinator = coordinator
        self._report = report
        self._member = ""  # as whom we are, or were, in the group
        self._join = coordinator._do_rejoin_group
        coordinator._do_rejoin_group = self._check_and_join

    async def _check_and_join(self, subscription: Any) -> bool:
        coordinator = self._coordinator
        if self._member and not coordinator.member_id and coordinator._group_instance_id is not None:
            try:
                host = await self._holder(coordinator._group_instance_id)
            except KafkaError:  # the coordinator is away: aiokafka looks for it and comes back here
                await asyncio.sleep(coordinator._retry_backoff_ms / 1000)
                return False
            if host is not None:
                self._report(NameTakenError(self._told(host)))
                await asyncio.wait([coordinator._closing])
                return False
        self._member = ""  # whoever has the name from here on is us: an answer to our joining may be lost
        joined: bool = await self._join(subscription)
        self._member = coordinator.member_id
        return joined

    async def _holder(self, name: str) -> str | None:
        """Return the host of the member that has our name and is not us."""
        answer = await self._coordinator._send_req(DescribeGroupsRequest([self._coordinator.group_id]))
        for _, _, _, _, _, members, *_ in answer.groups:
            for member, _, host, *_ in members:
                if member[: -ID_LENGTH - 1] == name and member != self._member:
                    return str(host).lstrip("/")
        return None

    def _told(self, host: str) -> str:
        name, group = self._coordinator._group_instance_id, self._coordinator.group_id
        return (
            f"group.instance.id={name} must be one worker's own: another one at {host} has joined group "
            f"{group!r} under this name; give each a name of its own (--name), then start this one again"
        )
