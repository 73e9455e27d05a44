"""The end of a worker's event loop."""

import asyncio
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from streamapp.worker import worker
from streamapp.worker.worker import Worker


def test_a_task_that_ignores_its_cancellation_does_not_keep_the_process(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(worker, "CANCELLED_S", 0.01)
    loop = asyncio.new_event_loop()
    may_end = asyncio.Event()

    async def stubborn() -> None:
        while not may_end.is_set():
            try:
                await may_end.wait()
            except asyncio.CancelledError:
                continue

    tasks = [loop.create_task(stubborn()), loop.create_task(asyncio.Event().wait())]
    loop.run_until_complete(asyncio.sleep(0))
    ending: Any = SimpleNamespace(loop=loop)
    Worker._gather_all(ending)
    assert [task.done() for task in tasks] == [False, True]
    assert "stubborn" in caplog.text
    may_end.set()
    loop.run_until_complete(tasks[0])
    loop.close()


def test_a_worker_that_does_not_stop_ends_and_names_the_tasks() -> None:
    program = (
        "import asyncio\n"
        "from streamapp.worker.worker import end_within\n"
        "async def waits_for_a_dead_part():\n"
        "    await asyncio.Event().wait()\n"
        "async def worker():\n"
        "    asyncio.get_running_loop().call_soon(end_within, 0.0)  # when the task waits\n"
        "    await waits_for_a_dead_part()\n"
        "asyncio.run(worker())\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "has not stopped: worker (line 7) awaits waits_for_a_dead_part (line 4)" in done.stderr
