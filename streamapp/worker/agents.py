"""Agent: one for all input topics, concurrency 1, so that a worker has one total order of events."""

from __future__ import annotations

from typing import Any

from mode import CrashingSupervisor

from streamapp.processing.task_manager import TaskManager


def add_agent(app: Any, channel: Any, manager: TaskManager) -> None:
    """Give `app` the agent that hands the deliveries of `channel` to `manager`.

    An exception ends the worker: a restarted agent would go on behind the hole.
    """

    async def process(stream: Any) -> None:
        async for event in stream.events():
            await manager.process(event.value)

    app.agent(
        channel, name="streamapp.worker.agents.process", concurrency=1, supervisor_strategy=CrashingSupervisor
    )(process)
