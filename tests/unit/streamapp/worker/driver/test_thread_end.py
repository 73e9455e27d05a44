"""The end of a thread: nothing that waits in its loop keeps it, and with it the main loop."""

import asyncio

import pytest

from streamapp.worker.driver import thread_end
from streamapp.worker.driver.faust_app import PagesThread
from streamapp.worker.driver.thread import ConsumerThread
from streamapp.worker.driver.thread_end import EndingThread, cancel_within


async def loses_its_cancellation(may_end: asyncio.Event) -> None:
    while not may_end.is_set():
        try:
            await may_end.wait()
        except asyncio.CancelledError:
            continue


class Thread(EndingThread):
    """A thread whose loop has a task that does not end."""

    async def on_start(self) -> None:
        self.left = asyncio.ensure_future(loses_its_cancellation(asyncio.Event()))


def test_a_thread_ends_without_a_task_that_loses_its_cancellation(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(thread_end, "CANCELLED_S", 0.01)

    async def story() -> None:
        thread = Thread()
        await thread.start()
        await thread.stop()
        assert not thread.left.done()
        thread.left._log_destroy_pending = False  # type: ignore[attr-defined]  # it is left on purpose

    asyncio.run(story())
    assert "ending without a task that does not end when it is cancelled" in caplog.text
    assert "loses_its_cancellation" in caplog.text


@pytest.mark.parametrize("thread", [ConsumerThread, PagesThread])
def test_the_threads_of_a_worker_end_like_that(thread: type) -> None:
    assert thread._gather_remaining_tasks is EndingThread._gather_remaining_tasks  # type: ignore[attr-defined]


def test_the_failure_of_a_cancelled_task_is_no_failure_of_the_end(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")

    async def fails_at_its_end() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            message = "closed already"
            raise RuntimeError(message)

    async def story() -> None:
        task = asyncio.ensure_future(fails_at_its_end())
        await asyncio.sleep(0)
        await cancel_within([task], 10.0)
        assert task.done()

    asyncio.run(story())
    assert "closed already" in caplog.text


def test_without_tasks_there_is_nothing_to_wait_for() -> None:
    asyncio.run(cancel_within([], 10.0))
