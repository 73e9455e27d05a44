"""Faust's web server in a thread that may end before the service is stopped."""

from __future__ import annotations

from faust.web.drivers import aiohttp as driver


class PagesThread(driver.ServerThread):
    """The server's thread. A crash of the worker ends it at once; then no thread is left to be told."""

    def _stopped_set(self) -> None:
        try:
            super()._stopped_set()
        except RuntimeError:
            if not self.thread_loop.is_closed():
                raise


class Pages(driver.Web):
    """The server of the worker's pages."""

    async def on_start(self) -> None:
        """Start the thread."""
        assert self.cors
        self.init_server()
        self._thread = PagesThread(self, loop=self.loop, beacon=self.beacon)
        self.add_dependency(self._thread)
