"""Faust app of the driver: the topics to read, the limits of runs, and the manager that gets them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

import faust
from faust.web.drivers import aiohttp as driver

from streamapp.worker.driver.thread_end import EndingThread
from streamapp.worker.processing.abandoned_transactions import AbandonedTransactions
from streamapp.worker.processing.assignments import Assignments
from streamapp.worker.processing.committer import Committer
from streamapp.worker.processing.read_progress import ReadProgress
from streamapp.worker.processing.task_manager import TaskManager
from topics.clients.access import Access
from topics.fetching.batches import Limit
from topics.registry.known_schemas import KnownSchemas

if TYPE_CHECKING:
    from streamapp.worker.telemetry.traces import Traces

STOP_TIMEOUT_S: Final = 15.0  # seconds a worker that stops waits for its last commit


@dataclass(frozen=True, slots=True)
class DriverOptions:
    """The settings of a driver."""

    topics: tuple[str, ...]  # the sources, in causal order (see `streamapp.worker.transport.runs`)
    skew_ms: int  # input.skew.ms
    max_idle_ms: int  # max.task.idle.ms
    max_records: int  # max.poll.records
    cpu_share: float  # fetch.max.cpu.percent, as a share of a core
    fetch: Mapping[str, Any]  # attribute of aiokafka's consumer (without its underscore) -> value
    access: Access  # identity of this worker to the broker
    limit: Limit  # fetch.decompressed.max.bytes
    frame_bytes: int  # largest size of a broker's response
    partitions: int | None = None  # of each source, when the worker started
    schemas: KnownSchemas | None = None  # of the schema registry; None: it is not in use
    check_group: Callable[[], None] = lambda: None  # raises if it has foreign members; waits for a broker


@dataclass(frozen=True, slots=True)
class Wiring:
    """The parts that a driver calls; they take the driver when they are made."""

    manager: TaskManager
    assignments: Assignments
    committer: Committer
    progress: ReadProgress
    abandoned: AbandonedTransactions
    traces: Traces | None = None


class PagesThread(EndingThread, driver.ServerThread):
    """The server's thread, which a crash of the worker ends at once: stopping it then is no error."""

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


class App(faust.App):
    """A Faust app whose sources go live when a rebalance is over."""

    logger = logging.getLogger("faust.kafkabatch")  # keeps service messages out of our log
    options: DriverOptions  # set before the driver is made
    wiring: Wiring  # set before the app starts
    leaving = False  # a worker that stops also leaves the group, which else waits for it

    async def stop(self) -> None:
        """Stop; the manager first, while everything that it uses still runs."""
        await self.wiring.manager.stopping(STOP_TIMEOUT_S)
        await super().stop()

    def _new_web(self) -> Pages:
        return Pages(self)

    def on_rebalance_end(self) -> None:
        """Faust has recovered and resumed its flow: records fetched from now on stay in the queues."""
        super().on_rebalance_end()
        cast(Any, self.consumer).go_live()
