"""The thread of the pages: stopped after it has ended, it says nothing."""

import asyncio

import faust
import pytest

from streamapp.worker.driver.faust_app import Pages, PagesThread


def test_a_thread_that_has_ended_is_not_told_to_stop() -> None:
    own, other = asyncio.new_event_loop(), asyncio.new_event_loop()
    asyncio.set_event_loop(own)
    try:
        app = faust.App("pages", broker="kafka://127.0.0.1:1", loop=own)
        thread = PagesThread(Pages(app), thread_loop=other)
        thread._stopped_set()
        other.run_until_complete(asyncio.sleep(0))
        assert thread._stopped.is_set()
        other.close()
        thread._stopped_set()
    finally:
        asyncio.set_event_loop(None)
        own.close()


def test_what_else_goes_wrong_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    own, other = asyncio.new_event_loop(), asyncio.new_event_loop()
    asyncio.set_event_loop(own)
    try:
        thread = PagesThread(
            Pages(faust.App("pages", broker="kafka://127.0.0.1:1", loop=own)), thread_loop=other
        )

        def fail(_callback: object) -> None:
            message = "no such thread"
            raise RuntimeError(message)

        monkeypatch.setattr(other, "call_soon_threadsafe", fail)
        with pytest.raises(RuntimeError, match="no such thread"):
            thread._stopped_set()
    finally:
        asyncio.set_event_loop(None)
        own.close()
        other.close()
