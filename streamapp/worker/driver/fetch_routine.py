# ruff: noqa: SLF001 - what is used of aiokafka is held by tests/contract/test_transport_aiokafka.py
"""Fetch routine: lets aiokafka's fetcher plan and send its requests, each time something has happened.

It stands in for aiokafka's own routine, which makes a set of futures, and callbacks of all of them, whenever
it waits. Here all that may change the plan calls the method that carries it out: the end of a request,
records that were taken, a new position, the end of the assignment, a time in the plan.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Coroutine
from functools import partial
from typing import Any

from aiokafka.errors import KafkaError

logger = logging.getLogger(__name__)


class FetchRoutine:
    """The routine of one fetcher, in the loop of the consumer's thread."""

    def __init__(self, fetcher: Any) -> None:
        """Take the place of the fetcher's own routine; nothing is assigned to it yet."""
        self._fetcher = fetcher
        self._loop = asyncio.get_running_loop()
        self._assignment: Any = None
        self._over: asyncio.Future[None] = self._loop.create_future()
        """The end of the assignment, or the failure of a plan or request."""
        self._timer: asyncio.TimerHandle | None = None
        self._others: list[asyncio.Future[Any]] = []  # other futures that may change the plan
        fetcher._fetch_task.cancel()
        fetcher._fetch_task = self._loop.create_task(self._run())

    async def _run(self) -> None:
        """Serve one assignment after another until the fetcher is closed, which cancels this."""
        try:
            while not self._fetcher._closed:  # a cancellation may meet that of a request, and is lost then
                assignment = await self._next_assignment()
                if assignment is not None:
                    await self._serve(assignment)
                    await self._end_requests()
        except asyncio.CancelledError:
            return
        except Exception as error:
            logger.exception("the fetches have ended")
            message = "Unexpected error during data retrieval"
            raise KafkaError(message) from error

    async def _next_assignment(self) -> Any:
        """Return the current assignment; if there is none, wait for one and return None."""
        subscriptions = self._fetcher._subscriptions
        subscription = subscriptions.subscription
        assignment = None if subscription is None else subscription.assignment
        if assignment is not None and assignment.active:
            return assignment
        with contextlib.suppress(KafkaError):  # of the group, which is reported to each poll
            await subscriptions.wait_for_assignment()
        return None

    async def _serve(self, assignment: Any) -> None:
        """Return when an assignment is over; raise the failure of a plan or request."""
        self._assignment, self._over = assignment, self._loop.create_future()
        assignment.unassign_future.add_done_callback(self._plan)
        self._plan()
        try:
            await self._over
        finally:
            self._wait_no_longer()

    def _plan(self, *_: object) -> None:
        """Carry out the plan of this moment in place of the former one."""
        if self._over.done():
            return
        self._wait_no_longer()
        if not self._assignment.active:
            self._over.set_result(None)
            return
        try:
            self._carry_out(*self._fetcher._get_actions_per_node(self._assignment))
        except Exception as error:  # noqa: BLE001 - whatever it is, it ends all fetches
            self._over.set_exception(error)

    def _carry_out(
        self,
        requests: list[tuple[int, Any]],
        resets: dict[int, Any],
        timeout_s: float,
        is_metadata_old: bool,
        others: list[asyncio.Future[Any]],
    ) -> None:
        """Start the requests of a plan of aiokafka, look up positions, and wait for the next plan."""
        fetcher = self._fetcher
        for node, request in requests:
            self._start(node, fetcher._proc_fetch_request(self._assignment, node, request))
        for node, partitions in resets.items():
            self._start(node, fetcher._update_fetch_positions(self._assignment, node, partitions))
        if is_metadata_old:
            others = [*others, fetcher._client.force_metadata_update()]
        for other in others:
            other.add_done_callback(self._plan)
        if fetcher._wait_consume_future is None or fetcher._wait_consume_future.done():
            fetcher._wait_consume_future = self._loop.create_future()
            fetcher._wait_consume_future.add_done_callback(self._plan)
        self._others = others
        self._timer = self._loop.call_later(timeout_s, self._plan)

    def _wait_no_longer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        for other in self._others:
            other.remove_done_callback(self._plan)

    def _start(self, node: int, request: Coroutine[Any, Any, bool]) -> None:
        fetcher = self._fetcher
        task = self._loop.create_task(request)
        fetcher._pending_tasks.add(task)
        fetcher._in_flight.add(node)
        task.add_done_callback(partial(self._ended, node))

    def _ended(self, node: int, task: asyncio.Task[bool]) -> None:
        """Note the end of a request; wake those who wait for records if it has brought any."""
        fetcher = self._fetcher
        fetcher._in_flight.discard(node)
        # Another set: aiokafka's `close` awaits the tasks of the former one.
        fetcher._pending_tasks = fetcher._pending_tasks - {task}
        if not task.cancelled():
            failure = task.exception()
            if failure is not None and not self._over.done():
                self._over.set_exception(failure)
            elif failure is None and task.result():
                for waiter in fetcher._fetch_waiters:
                    fetcher._notify(waiter)
        self._plan()

    async def _end_requests(self) -> None:
        """Cancel the requests of an assignment that has ended, and forget what they have brought."""
        for task in self._fetcher._pending_tasks:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        self._fetcher._records.clear()
