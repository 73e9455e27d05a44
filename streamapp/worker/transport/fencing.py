# ruff: noqa: SLF001 - what is read of aiokafka is held by tests/contract/test_transport_aiokafka.py
"""Fencing: a worker ends when another takes over its name; the new worker of a name gets a new assignment.

A static member that joins takes the place of the member of the same name. aiokafka's heartbeats and commits
do not carry the name, so the broker calls the replaced member unknown, as it does a member that was silent
for too long. An unknown member joins again, and replaces the new member: two workers of one name would
alternate for ever. So a member that has become unknown first checks whether its name is in the group: if so,
another worker has the name, and this worker ends.

The new worker gets the assignment of its predecessor, and the broker does not check that both read the same
topics. aiokafka's coordination ends with an assignment of other topics, without a report. So such an
assignment is not passed to aiokafka: the worker joins once more, upon which the leader of the group, usually
this worker, assigns again.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any, Final

from aiokafka.coordinator.protocol import ConsumerProtocol
from aiokafka.errors import KafkaError
from aiokafka.protocol.admin import DescribeGroupsRequest

from streamapp.errors import SettingsError, StreamappError

logger = logging.getLogger(__name__)

FOREIGN_S: Final = 60.0
"""Seconds that a worker joins repeatedly while it is given other topics: workers are started one by one."""

FOREIGN_PAUSE_S: Final = 1.0

ID_LENGTH: Final = 36  # of the UUID that a broker appends to the name of a static member


class NameTakenError(SettingsError):
    """Another worker of the same name has joined the group."""


class MembershipError(StreamappError):
    """This worker cannot be a member of its group any more, or not yet."""


def _member_of(coordinator: Any) -> str:
    return f"application.id={coordinator.group_id}, group.instance.id={coordinator._group_instance_id}"


class ForeignAssignment:
    """Keeps assignments of other topics than ours from aiokafka, in the loop of the consumer's thread."""

    def __init__(self, coordinator: Any, report: Callable[[MembershipError], None]) -> None:
        """`report` is called when joining again does not help, or when coordination has ended."""
        self._coordinator = coordinator
        self._report = report
        self._since: float | None = None  # since when the assignment has other topics
        self._complete = coordinator._on_join_complete
        coordinator._on_join_complete = self._check_and_complete
        coordinator._coordination_task.add_done_callback(self._ended)

    async def _check_and_complete(
        self, generation: int, member_id: str, protocol: str, assigned: bytes
    ) -> None:
        coordinator = self._coordinator
        topics = {tp.topic for tp in ConsumerProtocol.ASSIGNMENT.decode(assigned).partitions()}
        foreign = topics - set(coordinator._subscription.subscription.topics)
        if not foreign:
            self._since = None
            await self._complete(generation, member_id, protocol, assigned)
            return
        now = time.monotonic()
        if self._since is None:
            self._since = now
            logger.warning(
                "%s: the group has given this worker partitions of %s, which it does not read: a worker of "
                "other topics had its name; joining the group once more",
                *(_member_of(coordinator), ", ".join(sorted(foreign))),
            )
        elif now - self._since > FOREIGN_S:
            self._report(MembershipError(self._told(sorted(foreign))))
            await asyncio.wait([coordinator._closing])
            return
        else:
            await asyncio.sleep(FOREIGN_PAUSE_S)
        coordinator.request_rejoin()

    def _told(self, foreign: list[str]) -> str:
        return (
            f"{_member_of(self._coordinator)}: the group goes on giving this worker partitions of "
            f"{', '.join(foreign)}, which it does not read; application.id must be one installation's own: "
            "give this worker another name (--set application.id=NAME), or have the workers of those topics "
            "leave the group (grove worker drain), then start it again"
        )

    def _ended(self, coordination: asyncio.Task[None]) -> None:
        """Report an error that has ended the coordination; aiokafka only logs it."""
        if not coordination.cancelled() and (error := coordination.exception()) is not None:
            message = f"{_member_of(self._coordinator)}: this worker is in its group no longer: {error}"
            self._report(MembershipError(message))


class Fencing:
    """Checks the group before aiokafka joins it, in the loop of the consumer's thread."""

    def __init__(self, coordinator: Any, report: Callable[[NameTakenError], None]) -> None:
        """`report` is called when another member has taken the name."""
        self._coordinator = coordinator
        self._report = report
        self._member = ""  # our member id in the group, now or before
        self._join = coordinator._do_rejoin_group
        coordinator._do_rejoin_group = self._check_and_join

    async def _check_and_join(self, subscription: Any) -> bool:
        coordinator = self._coordinator
        if self._member and not coordinator.member_id and coordinator._group_instance_id is not None:
            try:
                host = await self._holder(coordinator._group_instance_id)
            except KafkaError:  # the coordinator is away: aiokafka looks for it and then calls this again
                await asyncio.sleep(coordinator._retry_backoff_ms / 1000)
                return False
            if host is not None:
                self._report(NameTakenError(self._told(host)))
                await asyncio.wait([coordinator._closing])
                return False
        self._member = ""  # from here on the name's holder is us, even if the answer to our joining is lost
        joined: bool = await self._join(subscription)
        self._member = coordinator.member_id
        return joined

    async def _holder(self, name: str) -> str | None:
        """Return the host of another member that has our name."""
        answer = await self._coordinator._send_req(DescribeGroupsRequest([self._coordinator.group_id]))
        for _, _, _, _, _, members, *_ in answer.groups:
            for member, _, host, *_ in members:
                if member[: -ID_LENGTH - 1] == name and member != self._member:
                    return str(host).lstrip("/")
        return None

    def _told(self, host: str) -> str:
        name, group = self._coordinator._group_instance_id, self._coordinator.group_id
        return (
            f"group.instance.id={name} must be one worker's own: another worker at {host} has joined group "
            f"{group!r} under this name; give each worker another name (--name), then start this worker again"
        )
