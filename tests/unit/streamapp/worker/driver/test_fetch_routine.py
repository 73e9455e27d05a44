"""Fetch routine: all that may change the plan of aiokafka's fetcher leads to another plan, without a poll."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.consumer.fetcher import Fetcher
from aiokafka.consumer.subscription_state import SubscriptionState
from aiokafka.errors import KafkaError

from streamapp.worker.driver.fetch_routine import FetchRoutine

HERE = TopicPartition("topic", 0)
NODE = 1
LONG_S = 1000.0
Plan = tuple[list[Any], dict[int, Any], float, bool, list[Any]]
NOTHING: Plan = ([], {}, LONG_S, False, [])
FETCH: Plan = ([(NODE, "request")], {}, LONG_S, False, [])


class Story:
    """aiokafka's fetcher whose plans and answers a test gives; made in an event loop."""

    def __init__(self) -> None:
        self.plans: list[Plan] = []  # those to come; the last one stays
        self.planned: asyncio.Queue[set[int]] = asyncio.Queue()  # the nodes in flight at each plan
        self.answer: Callable[[], Awaitable[bool]] = self.never
        self.cancelled = 0
        self.metadata: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        client = SimpleNamespace(
            _loop=asyncio.get_running_loop(),
            _metadata_max_age_ms=1000,
            force_metadata_update=lambda: self.metadata,
        )
        self.subscriptions = SubscriptionState()
        self.subscriptions.subscribe({"topic"})
        self.fetcher: Any = Fetcher(client, self.subscriptions)
        self.fetcher._get_actions_per_node = self._plan
        self.fetcher._proc_fetch_request = self._request
        self.fetcher._update_fetch_positions = self._request
        FetchRoutine(self.fetcher)

    def assign(self) -> None:
        self.subscriptions.assign_from_subscribed({HERE})

    def _plan(self, assignment: Any) -> Plan:
        assert assignment.active
        self.planned.put_nowait(set(self.fetcher._in_flight))
        return self.plans.pop(0) if len(self.plans) > 1 else self.plans[0]

    async def _request(self, _assignment: Any, _node: int, _request: Any) -> bool:
        try:
            return await self.answer()
        except asyncio.CancelledError:
            self.cancelled += 1
            return False

    async def never(self) -> bool:
        await asyncio.get_running_loop().create_future()
        return True

    async def close(self) -> None:
        await self.fetcher.close()


def tell(story: Callable[[Story], Awaitable[None]]) -> None:
    async def whole() -> None:
        it = Story()
        try:
            await asyncio.wait_for(story(it), 30)
        finally:
            await it.close()
            assert not it.fetcher._in_flight

    asyncio.run(whole())


@pytest.mark.parametrize("has_records", [True, False])
def test_the_end_of_a_request_is_planned_with_and_its_records_wake_readers(has_records: bool) -> None:
    async def story(it: Story) -> None:
        waiter = it.fetcher._create_fetch_waiter()

        async def answer() -> bool:
            return has_records

        it.plans, it.answer = [FETCH, NOTHING], answer
        it.assign()
        assert [await it.planned.get(), await it.planned.get()] == [set(), set()]
        assert waiter.done() == has_records
        assert not it.fetcher._pending_tasks
        waiter.cancel()

    tell(story)


@pytest.mark.parametrize("event", ["records taken", "metadata", "a partition goes on", "the time is over"])
def test_it_plans_again_after(event: str) -> None:
    async def story(it: Story) -> None:
        resumed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        first: Plan = ([(NODE, "request")], {}, LONG_S, event == "metadata", [resumed])
        if event == "the time is over":
            first = ([(NODE, "request")], {}, 0.001, False, [])
        it.plans = [first, NOTHING]
        it.assign()
        assert await it.planned.get() == set()
        if event == "records taken":
            it.fetcher._notify(it.fetcher._wait_consume_future)
        elif event == "metadata":
            it.metadata.set_result(None)
        elif event == "a partition goes on":
            resumed.set_result(None)
        assert await it.planned.get() == {NODE}, "the request is still at the broker"

    tell(story)


def test_positions_are_looked_up() -> None:
    async def story(it: Story) -> None:
        it.plans = [([], {NODE: [HERE]}, LONG_S, False, []), NOTHING]
        it.assign()
        await it.planned.get()
        it.fetcher._notify(it.fetcher._wait_consume_future)
        assert await it.planned.get() == {NODE}

    tell(story)


def test_the_next_assignment_begins_without_requests_and_records_of_the_former() -> None:
    async def story(it: Story) -> None:
        it.plans = [FETCH, NOTHING]
        it.assign()
        await it.planned.get()
        await asyncio.sleep(0)  # the request is sent
        it.fetcher._records[HERE] = "records"
        it.assign()
        assert await it.planned.get() == set()
        assert (it.cancelled, it.fetcher._records, it.fetcher._pending_tasks) == (1, {}, set())

    tell(story)


def test_it_survives_an_error_of_the_group() -> None:
    """The coordinator reports the error to each poll, and may join the group again."""

    async def story(it: Story) -> None:
        it.plans = [NOTHING]
        await asyncio.sleep(0)  # it waits for an assignment
        it.subscriptions.abort_waiters(KafkaError("of the group"))
        await asyncio.sleep(0)
        it.assign()
        assert await it.planned.get() == set()

    tell(story)


def test_an_error_that_no_request_has_ends_the_fetches() -> None:
    async def story(it: Story) -> None:
        async def answer() -> bool:
            raise RuntimeError("a bug")

        it.plans, it.answer = [FETCH, NOTHING], answer
        it.assign()
        with pytest.raises(KafkaError, match="Unexpected error during data retrieval"):
            await it.fetcher.error_future
        it.fetcher._fetch_task = asyncio.get_running_loop().create_task(it.never())  # which is closed

    tell(story)


def test_a_fetcher_that_is_closed_ends_its_requests() -> None:
    async def story(it: Story) -> None:
        it.plans = [([(NODE, "request"), (NODE + 1, "request")], {}, LONG_S, False, [])]
        it.assign()
        await it.planned.get()
        await asyncio.sleep(0)  # the requests are sent
        await it.close()
        assert it.cancelled == 2

    tell(story)


@pytest.mark.parametrize("turns", range(8))
def test_it_ends_if_it_is_closed_while_an_assignment_ends(turns: int) -> None:
    async def story(it: Story) -> None:
        async def some(turns_of_the_loop: int) -> None:
            for _ in range(turns_of_the_loop):
                await asyncio.sleep(0)

        it.plans = [FETCH]
        it.assign()
        await it.planned.get()
        await some(1)  # the request begins
        it.assign()
        await some(turns)  # the former request is cancelled in one of them
        closing = asyncio.create_task(it.close())
        await some(50)
        assert closing.done()

    tell(story)
