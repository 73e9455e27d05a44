"""Faust app of the driver: the topics to read, the limits of runs, and the manager that gets them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol, cast

import faust
from faust.types import TP
from faust.web.drivers import aiohttp as driver

from topics.clients.access import Access
from topics.fetching.batches import Limit

STOP_TIMEOUT_S: Final = 15.0  # seconds a worker that stops waits for its last commit


class Manager(Protocol):
    """Processes deliveries of the driver (streamapp/worker/processing/task_manager.py)."""

    async def stopping(self, timeout_s: float) -> None:
        """Commit, and release everything that needs the app; called before any part of the app stops.

        `timeout_s`: seconds that a commit may take.
        """

    def moved(self, partition: int, topic: str, position: int) -> None:
        """Note that no record before `position` is left."""

    def out_of_range(self, tp: TP, position: int, first: int, end: int) -> int | None:
        """Return where to continue in a log from `first` to `end` that lacks `position`; None: nowhere."""


class Assignments(Protocol):
    """Restores the tasks of partitions (streamapp/worker/processing/assignments.py)."""

    async def assigned(self, partitions: Iterable[int]) -> set[int]:
        """Forget every other partition; none is live. Return the partitions whose state is here."""

    async def restore(self, partition: int, first: Mapping[str, int]) -> Mapping[str, int] | None:
        """Give a partition a task at its committed offsets; return these, by topic.

        `first`: where a partition that was never processed begins. None: this partition is stopped, other
        partitions continue. Raises NotYetError if the restore has to be tried again later.
        """

    def waits(self, partition: int, reason: str) -> None:
        """Note why a partition cannot be restored yet."""

    def revoked(self) -> None:
        """Note that the group takes the partitions away."""

    def live(self, partition: int) -> None:
        """Note that the records of a partition are being fetched."""


class Committer(Protocol):
    """Commits processed records (streamapp/worker/processing/committer.py)."""

    def tick_due(self, now: float) -> int | None:
        """Return a partition that needs a tick, if one does."""

    def seconds_to_tick(self, now: float) -> float:
        """Return how long a poll may wait."""

    def seconds_to_last_round(self, now: float, round_s: float) -> float:
        """Return how long the last round of runs before a commit, of `round_s` seconds, may wait."""

    async def commit(self, why: str, timeout_s: float | None = None) -> None:
        """Commit processed records, after the current run; give up after `timeout_s`."""


class ReadProgress(Protocol):
    """Records how far reading is (streamapp/worker/processing/read_progress.py)."""

    def lag(self, log_ends: Mapping[TP, int], unserved: Mapping[TP, str]) -> None:
        """Note where the logs of the live partitions end, and which partitions the broker does not serve."""

    def read_changelog(self, records: int, size: int, *, standby: bool, left: int) -> None:
        """Note that parts of snapshots were read: by a standby, or for a partition that is to go live.

        `size`: bytes; `left`: offsets that the partition going live still lacks.
        """

    def sought_back(self, partitions: Iterable[TP]) -> None:
        """Count partitions whose fetch position was not the driver's."""


class AbandonedTransactions(Protocol):
    """Aborts transactions of workers that have left the group (processing/abandoned_transactions.py)."""

    def check(self, *, abort: bool) -> None:
        """Look for workers that have left since the last call; `abort`: whether we got their partitions."""


@dataclass(frozen=True, slots=True)
class DriverOptions:
    """The settings of a driver."""

    topics: tuple[str, ...]  # the sources, in causal order (see `streamapp.worker.transport.runs`)
    skew_ms: int  # input.skew.ms
    max_idle_ms: int  # max.task.idle.ms
    max_records: int  # max.poll.records
    fetch: Mapping[str, Any]  # attribute of aiokafka's consumer (without its underscore) -> value
    access: Access  # identity of this worker to the broker
    limit: Limit  # fetch.decompressed.max.bytes
    frame_bytes: int  # largest size of a broker's response
    partitions: int | None = None  # of each source, when the worker started
    check_group: Callable[[], None] = lambda: None  # raises if it has foreign members; waits for a broker


@dataclass(frozen=True, slots=True)
class Wiring:
    """The parts that a driver calls; they take the driver when they are made."""

    manager: Manager
    assignments: Assignments
    committer: Committer
    progress: ReadProgress
    abandoned: AbandonedTransactions


class PagesThread(driver.ServerThread):
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
