"""A worker that another one of its name has replaced ends instead of throwing the other out."""

from __future__ import annotations

import asyncio
import uuid
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment
from aiokafka.errors import GroupCoordinatorNotAvailableError

from streamapp.worker.transport import fencing
from streamapp.worker.transport.fencing import Fencing, ForeignAssignment, MembershipError, NameTakenError


class Coordinator:
    """aiokafka's coordinator of a static member, and the group as the broker has it."""

    def __init__(self, name: str | None = "w") -> None:
        self.group_id, self._group_instance_id = "group", name
        self.member_id = ""
        self._retry_backoff_ms = 0
        self._closing: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.members: list[str] = []
        self.away = False
        self.joined = 0
        self.answer_is_lost = False
        self.reports: list[NameTakenError] = []
        self.fencing = Fencing(self, self._report)

    def _report(self, error: NameTakenError) -> None:
        self.reports.append(error)
        self._closing.set_result(None)

    async def _do_rejoin_group(self, subscription: Any) -> bool:
        self.joined += 1
        name = self._group_instance_id or "client"
        self.members = [m for m in self.members if not m.startswith(name)] + [f"{name}-{uuid.uuid4()}"]
        if self.answer_is_lost:
            return False
        self.member_id = self.members[-1]
        return True

    async def _send_req(self, request: Any) -> Any:
        if self.away:
            raise GroupCoordinatorNotAvailableError
        members = [(member, "client", "/10.0.0.7", b"", b"") for member in self.members]
        return SimpleNamespace(groups=[(0, "group", "Stable", "consumer", "range", members)])

    async def join(self) -> bool:
        return bool(await self._do_rejoin_group(None))

    def become_unknown(self) -> None:
        self.member_id = ""


def test_a_member_whose_name_is_in_the_group_as_another_ends() -> None:
    async def story() -> None:
        w = Coordinator()
        assert await w.join()
        w.members = [f"w-{uuid.uuid4()}", f"other-{uuid.uuid4()}"]
        w.become_unknown()
        assert not await w.join()
        assert w.joined == 1
        assert "group.instance.id=w must be one worker's own: another worker at 10.0.0.7" in str(w.reports[0])
        assert w.reports[0].exit_code == 78

    asyncio.run(story())


def test_a_member_that_was_silent_for_too_long_joins_again() -> None:
    async def story() -> None:
        w = Coordinator()
        await w.join()
        w.members = [f"w-2-{uuid.uuid4()}"]  # of another name
        w.become_unknown()
        assert await w.join()
        assert (w.joined, w.reports) == (2, [])

    asyncio.run(story())


def test_its_own_membership_and_one_whose_answer_was_lost_are_not_anothers() -> None:
    async def story() -> None:
        w = Coordinator()
        await w.join()
        w.become_unknown()  # its generation was over; the group still has it
        w.answer_is_lost = True
        assert not await w.join()
        w.answer_is_lost = False
        assert await w.join()
        assert (w.joined, w.reports) == (3, [])

    asyncio.run(story())


def test_nobody_joins_while_it_is_not_known_who_has_the_name() -> None:
    async def story() -> None:
        w = Coordinator()
        await w.join()
        w.members, w.away = [], True
        w.become_unknown()
        assert not await w.join()
        assert w.joined == 1
        w.away = False
        assert await w.join()

    asyncio.run(story())


def test_a_member_without_a_name_joins() -> None:
    async def story() -> None:
        w = Coordinator(None)
        await w.join()
        w.become_unknown()
        assert await w.join()

    asyncio.run(story())


class Joining:
    """aiokafka's coordinator of a worker that reads `b.instances`, and what the group gives it."""

    group_id, _group_instance_id = "one", "w1"

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self._subscription = SimpleNamespace(subscription=SimpleNamespace(topics={"b.instances"}))
        self._closing: asyncio.Future[None] = loop.create_future()
        self._coordination_task: asyncio.Future[None] = loop.create_future()
        self.completed = 0
        self.rejoined = 0
        self.reports: list[MembershipError] = []
        ForeignAssignment(self, self._report)

    def _report(self, error: MembershipError) -> None:
        self.reports.append(error)
        if not self._closing.done():
            self._closing.set_result(None)

    async def _on_join_complete(self, generation: int, member: str, protocol: str, assigned: bytes) -> None:
        self.completed += 1

    def request_rejoin(self) -> None:
        self.rejoined += 1

    async def given(self, *topics: str) -> None:
        assignment = ConsumerProtocolMemberAssignment(0, [(topic, [0, 1]) for topic in topics], b"")
        await self._on_join_complete(1, "w1-id", "faust", assignment.encode())


def test_an_assignment_of_other_topics_is_not_let_in_and_the_group_is_joined_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(fencing, "FOREIGN_PAUSE_S", 0.0)

    async def story() -> None:
        w = Joining()
        await w.given("a.instances", "a.labels")
        await w.given("a.instances", "b.instances")
        assert (w.completed, w.rejoined) == (0, 2)
        assert "application.id=one, group.instance.id=w1: the group has given" in caplog.text
        await w.given("b.instances")
        await w.given()  # more workers than partitions
        assert (w.completed, w.rejoined, w.reports) == (2, 2, [])

    asyncio.run(story())


def test_a_worker_that_goes_on_being_given_other_topics_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fencing, "FOREIGN_S", -1.0)

    async def story() -> None:
        w = Joining()
        await w.given("a.instances")
        await w.given("a.instances")
        assert (w.completed, w.rejoined) == (0, 1)
        assert "application.id must be one installation's own" in str(w.reports[0])

    asyncio.run(story())


def test_coordination_that_ends_with_an_error_ends_the_worker() -> None:
    async def story() -> None:
        w = Joining()
        w._coordination_task.set_exception(AssertionError("what nobody thought of"))
        await asyncio.sleep(0)
        assert "application.id=one, group.instance.id=w1: this worker is in its group no longer" in str(
            w.reports[0]
        )
        closed = Joining()
        closed._coordination_task.cancel()
        await asyncio.sleep(0)
        assert closed.reports == []

    asyncio.run(story())
