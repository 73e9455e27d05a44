# ruff: noqa: SLF001 - what is used of aiokafka is held by tests/contract/test_transport_aiokafka.py
"""Fetch routine: lets aiokafka's fetcher plan and send its requests, each time something has happened.

It stands in for aiokafka's own routine, which makes a set of futures, and callbacks of all of them, whenever
it waits. Here everything that may change the plan ends one future: the end of a request, records that were
taken, a new position, the end of the assignment, a time in the plan.
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
        self._failure: BaseException | None = None
        fetcher._fetch_task.cancel()
        fetcher._fetch_task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        """Serve one assignment after another until the fetcher is closed, which cancels this."""
        try:
            while True:
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
        """Carry out one plan after another while the assignment is active."""
        fetcher, loop = self._fetcher, asyncio.get_running_loop()
        assignment.unassign_future.add_done_callback(self._wake)
        while assignment.active:
            wake_up = fetcher._wait_consume_future = loop.create_future()
            requests, resets, timeout_s, is_metadata_old, others = fetcher._get_actions_per_node(assignment)
            for node, request in requests:
                self._start(node, fetcher._proc_fetch_request(assignment, node, request))
            for node, partitions in resets.items():
                self._start(node, fetcher._update_fetch_positions(assignment, node, partitions))
            if is_metadata_old:
                others = [*others, fetcher._client.force_metadata_update()]
            for other in others:
                other.add_done_callback(self._wake)
            timer = loop.call_later(timeout_s, self._wake)
            try:
                await wake_up
            finally:
                timer.cancel()
                for other in others:
                    other.remove_done_callback(self._wake)
            if self._failure is not None:
                raise self._failure

    def _wake(self, *_: object) -> None:
        """Let the routine plan again."""
        self._fetcher._notify(self._fetcher._wait_consume_future)

    def _start(self, node: int, request: Coroutine[Any, Any, bool]) -> None:
        fetcher = self._fetcher
        task = asyncio.get_running_loop().create_task(request)
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
            self._failure = self._failure or task.exception()
            if self._failure is None and task.result():
                for waiter in fetcher._fetch_waiters:
                    fetcher._notify(waiter)
        self._wake()

    async def _end_requests(self) -> None:
        """Cancel the requests of an assignment that has ended, and forget what they have brought."""
        for task in self._fetcher._pending_tasks:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        self._fetcher._records.clear()
