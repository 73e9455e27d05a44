"""Going live: each assigned partition is restored, and then its records are fetched.

A partition goes live alone: a partition that waits for a broker or for a long restore holds up no other.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from typing import Final, cast

from faust.transport.drivers import aiokafka as driver
from faust.types import TP

from streamapp.errors import NotYetError
from streamapp.worker.blocking_calls import run_blocking
from streamapp.worker.driver.faust_app import App
from streamapp.worker.driver.live_partitions import LivePartitions
from streamapp.worker.driver.thread import ConsumerThread
from streamapp.worker.freed_memory import give_back
from streamapp.worker.restore.errors import AwaitedSchemasError
from streamapp.worker.transport.runs import TimeOrder, is_in_log
from streamapp.worker.transport.schema_gate import SchemaGate

logger = logging.getLogger(__name__)

PENDING_PAUSE: Final = 0.2  # seconds between checks whether another worker's transaction has ended
LANES: Final = 2  # partitions restored at the same time: one that waits for a broker holds up one lane
LACKING_S: Final = 60.0  # seconds that a topic may be missing from the assignment: workers start one by one
LACKING_PAUSE: Final = 1.0


class GoingLive:
    """Brings the assigned partitions of a consumer to life."""

    def __init__(
        self, consumer: driver.Consumer, thread: ConsumerThread, live: LivePartitions, gate: SchemaGate
    ) -> None:
        self._consumer, self._thread, self._live, self._gate = consumer, thread, live, gate
        self._lacks_since: float | None = None  # time since when the assignment lacks topics
        self.running: asyncio.Task[None] | None = None

    @property
    def _app(self) -> App:
        return cast(App, self._consumer.app)

    def start(self, *, again: bool) -> None:
        """Bring the partitions to life from now on; `again`: commit first, as some were live before."""
        self.running = asyncio.ensure_future(self._run(self._live.epoch, again))

    def stop(self) -> None:
        """Leave the partitions that are not live yet."""
        going, self.running = self.running, None
        if going is not None and going is not asyncio.current_task():  # it may find a commit aborted
            going.cancel()

    async def _run(self, epoch: int, again: bool) -> None:
        try:
            if again:
                await self._app.wiring.committer.commit("going live again")
            if epoch != self._live.epoch:
                return  # that commit was aborted
            await self._bring_to_life(epoch)
            await give_back()
        except asyncio.CancelledError:
            raise
        except Exception as error:
            if epoch == self._live.epoch and not (self._consumer.should_stop or self._app.should_stop):
                self._consumer.log.exception("Going live failed: %r", error)
                await self._consumer.crash(error)

    async def _bring_to_life(self, epoch: int) -> None:
        topics = self._app.options.topics
        partitions = sorted({tp.partition for tp in self._consumer.assignment() if tp.topic in topics})
        here = await self._app.wiring.assignments.assigned(partitions)
        if epoch != self._live.epoch:
            return
        self._app.wiring.abandoned.check(abort=not here >= set(partitions))
        sources = [TP(topic, partition) for partition in partitions for topic in topics]
        missing = set(sources) - self._consumer.assignment()
        if missing and self._thread.sources.suspects:
            return  # deleted at the broker: the watch ends the worker, or a rebalance brings them back
        if missing:  # the assignor moves topics of equal partition counts together
            await self._ask_for_all_topics(missing)
            return
        self._lacks_since = None
        if not sources:
            await run_blocking(self._app.options.check_group)
            return
        logs = await self._all_ranges(sources)
        lanes = asyncio.Semaphore(LANES)  # in the order of arrival
        # Partitions whose task is here take a moment; a restore may take long.
        order = sorted(partitions, key=lambda partition: partition not in here)
        coming = [asyncio.ensure_future(self._bring(epoch, partition, lanes, logs)) for partition in order]
        try:
            await asyncio.gather(*coming)
        finally:
            for restore in coming:
                restore.cancel()

    async def _ask_for_all_topics(self, missing: set[TP]) -> None:
        """Join the group once more, for an assignment of all topics; RuntimeError if none comes in time.

        A static member that returns within its session gets its previous partitions, without topics created
        since. When members join once more, the broker lets only the leader assign again. So all members join
        repeatedly until the leader, too, has been restarted.
        """
        now = time.monotonic()
        if self._lacks_since is None:
            self._lacks_since = now
            logger.warning(
                "%s are not assigned with the other topics: joining the group once more", sorted(missing)
            )
        elif now - self._lacks_since > LACKING_S:
            message = (
                f"topics are not co-partitioned: {sorted(missing)} went to another worker, or the group's "
                f"leader has no metadata of the topic; have all workers leave the group (grove worker "
                f"drain), then start them"
            )
            raise RuntimeError(message)
        else:
            await asyncio.sleep(LACKING_PAUSE)
        await self._thread.rejoin()

    async def _all_ranges(self, sources: list[TP]) -> dict[TP, tuple[int, int]]:
        """Return where the logs begin and end; nothing if one of them is unknown."""
        try:
            return await self._thread.log_ranges(sources)
        except NotYetError:
            return {}  # each range is then requested separately

    async def _bring(
        self, epoch: int, partition: int, lanes: asyncio.Semaphore, logs: dict[TP, tuple[int, int]]
    ) -> None:
        """Bring one partition to life, however long it waits for other partitions; these do not wait."""
        while epoch == self._live.epoch and not self._app.should_stop:  # tables stop before we do
            try:
                async with lanes:
                    if epoch == self._live.epoch and not self._app.should_stop:
                        await self._bring_one_to_life(epoch, partition, logs)
                return
            except AwaitedSchemasError as reason:
                if epoch == self._live.epoch:
                    self._app.wiring.assignments.waits(partition, str(reason))
                    await self._gate.until_known(partition, reason.ids)
            except NotYetError as reason:
                if epoch == self._live.epoch:
                    self._app.wiring.assignments.waits(partition, str(reason))
                await asyncio.sleep(PENDING_PAUSE)

    async def _bring_one_to_life(self, epoch: int, partition: int, ranges: dict[TP, tuple[int, int]]) -> None:
        sources = [TP(topic, partition) for topic in self._app.options.topics]
        logs = {tp: ranges.pop(tp) for tp in sources if tp in ranges}  # the next attempt requests them again
        if not logs:
            logs = await self._thread.log_ranges(sources)
        first = {tp.topic: self._first(log) for tp, log in logs.items()}
        positions = await self._app.wiring.assignments.restore(partition, first)
        if positions is None or epoch != self._live.epoch:
            return
        if not all(is_in_log(positions[tp.topic], logs[tp]) for tp in sources):
            logs = await self._thread.log_ranges(sources)  # the logs have grown during the restore
        if epoch == self._live.epoch:
            await self._begin(epoch, partition, positions, logs)

    async def _begin(
        self, epoch: int, partition: int, positions: Mapping[str, int], logs: Mapping[TP, tuple[int, int]]
    ) -> None:
        """Make a restored partition live: fetch its records from its positions on."""
        starts = dict[str, int]()
        for topic, at in positions.items():
            tp = TP(topic, partition)
            start: int | None = at
            if not is_in_log(at, logs[tp]):
                start = self._app.wiring.manager.out_of_range(tp, at, *logs[tp])
            if start is None:
                return  # stopped
            starts[topic] = start
        await self._thread.seek_all({TP(topic, partition): at for topic, at in starts.items()})
        if epoch == self._live.epoch:
            self._live.orders[partition] = self._new_order(partition, starts)
            self._app.wiring.assignments.live(partition)
            self._thread.interrupt()

    def _new_order(self, partition: int, starts: Mapping[str, int]) -> TimeOrder:
        return TimeOrder(
            partition,
            starts.items(),
            skew_ms=self._app.options.skew_ms,
            max_idle_ms=self._app.options.max_idle_ms,
            max_records=self._app.options.max_records,
        )

    def _first(self, log: tuple[int, int]) -> int:
        """Return where a partition that was never processed begins."""
        return log[0 if self._app.conf.consumer_auto_offset_reset == "earliest" else 1]
