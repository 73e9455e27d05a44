"""Consumer of the `kafkabatch://` driver: one Faust event per run, or for several small runs.

Group membership, assignor, recovery and agents stay Faust's. The differences:

- `_drain_messages` hands out runs (runs.py), and waits until they are processed. An event holds one run, or
  the runs of several partitions if together they are within the limits of one run.
- A partition *goes live* alone, after recovery is over and Faust resumed its flow: Faust empties all queues
  when it resumes, so records fetched earlier would be lost.
- The committer commits offsets, in transactions, as the member that processed the run; Faust's acks are off.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any, cast

from aiokafka.errors import ConsumerStoppedError
from faust.tables.manager import TableManager
from faust.tables.recovery import Recovery
from faust.transport.drivers import aiokafka as driver
from faust.types import TP, ConsumerMessage

from streamapp.errors import ChangelogError, NotYetError
from streamapp.worker.blocking_calls import run_blocking
from streamapp.worker.transport import pace
from streamapp.worker.transport.application import STOP_TIMEOUT_S, App, Wiring
from streamapp.worker.transport.delivery import Delivery
from streamapp.worker.transport.rounds import together
from streamapp.worker.transport.run_size import RunSize
from streamapp.worker.transport.runs import Run, TimeOrder, is_in_log, wanted_of
from streamapp.worker.transport.thread import ConsumerThread, Fetched, Membership

logger = logging.getLogger(__name__)

PENDING_PAUSE = 0.2  # seconds between checks whether another worker's transaction has ended
LANES = 2  # partitions that are restored at the same time: one waiting for a broker holds up one lane
LACKING_S = 60.0  # seconds that a topic may be missing from the assignment: workers are started one by one
LACKING_PAUSE = 1.0
IDLE_POLL = 0.5  # seconds a poll waits when there are no records


class Consumer(driver.Consumer):
    """Faust's consumer, delivering runs."""

    logger = logging.getLogger("faust.kafkabatch")  # keeps service messages out of our log
    _thread: ConsumerThread

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.options = cast(App, self.app).options
        self.membership: Membership | None = None
        self.epoch = 0  # counts assignments and their ends
        self._standbys_read = False  # fetched records of standbys stay in Faust's queue
        self._orders: dict[int, TimeOrder] = {}  # of the partitions that are live
        self._size = RunSize(self.options.max_records)
        self._round_s = 0.0  # CPU seconds of a round, smoothed
        self._round_lasts = 0.0  # seconds by the clock, smoothed
        self._delivery: Delivery | None = None
        self._going_live: asyncio.Task[None] | None = None
        self._lacks_since: float | None = None  # time since when the assignment lacks topics

    @property
    def wiring(self) -> Wiring:
        """The parts that process deliveries; they are made after the driver."""
        return cast(App, self.app).wiring

    def _new_consumer_thread(self) -> ConsumerThread:
        return ConsumerThread(self, loop=self.loop, beacon=self.beacon)

    # -- the loop -------------------------------------------------------------------------------------------

    async def _drain_messages(self, fetcher: Any) -> None:
        try:
            while not (self.should_stop or fetcher.should_stop):
                if self.flow_active:
                    await self._turn()
                else:
                    await self.can_resume_flow.wait()  # Faust cancels us when it stops
        except (asyncio.CancelledError, ConsumerStoppedError):
            if not self.app.should_stop:
                raise

    async def _turn(self) -> None:
        """Fetch, and deliver the runs that are due."""
        epoch = self.epoch
        if any(order.has_backlog(time.monotonic()) for order in self._orders.values()):
            # There is work for a while: records fetched during it are for the next turn.
            fetching = asyncio.ensure_future(self._take(0.0))
            await self._deliver_round(epoch)
            await self._feed(epoch, await fetching)
        else:
            await self._feed(epoch, await self._take(IDLE_POLL))
            while await self._deliver_round(epoch):
                pass
            tick = self.wiring.committer.tick_due(time.monotonic())
            if tick is not None:
                await self._deliver(epoch, tick, ())

    async def _take(self, timeout_s: float) -> Fetched:
        now = time.monotonic()
        topics = wanted_of(tuple(self._orders.values()), self.options.limit.most_bytes, now)
        positions = {TP(ahead.topic, ahead.partition): ahead.position for ahead in topics}
        back = {TP(ahead.topic, ahead.partition): ahead.request_again() for ahead in topics if ahead.released}
        await self._thread.seek_all(back)
        waits = [timeout_s, self.wiring.committer.seconds_to_tick(now)]
        waits += [order.seconds_to_idle(now) for order in self._orders.values()]
        changelogs = self._changelogs()
        between = min(pace.PACE_SHARE * self._round_s, pace.PACE_MAX_S) if timeout_s else 0.0
        # No table and no run waits for the fetch, and the broker had no more than that.
        is_calm = timeout_s > 0 and changelogs <= self._recovery.standby_tps and not self._is_behind
        round_s = pace.FETCH_S + pace.ROUND_ROOM * self._round_lasts if is_calm else 0.0
        pause = min(pace.PAUSE_MAX_S, self.wiring.committer.seconds_to_last_round(now, round_s))
        pauses = is_calm and pause > 0
        # Records fetched while the round is processed would be a separate small round before the pause.
        return await self._thread.take(
            positions, min(waits), changelogs, between, now + pause if pauses else 0.0, ahead=not pauses
        )

    @property
    def _is_behind(self) -> bool:
        """Whether the last fetch of some topic left records at the broker."""
        return any(ahead.lag for order in self._orders.values() for ahead in order.topics.values())

    def _changelogs(self) -> set[TP]:
        """Return the partitions of tables that Faust wants to read: those in recovery, and standbys.

        Faust resumes standbys during a rebalance, and then empties its queues once more: records given to
        them until then would be missing for ever.
        """
        changelogs = self.app.tables.changelog_topics
        unread = {tp for tp in self._get_active_partitions() if tp.topic in changelogs}
        return unread if self._standbys_read else unread - self._recovery.standby_tps

    @property
    def _recovery(self) -> Recovery:
        """Faust's reader of changelogs."""
        return cast(TableManager, self.app.tables).recovery

    async def _deliver_round(self, epoch: int) -> bool:
        """Deliver at most one run of each live partition; return whether there was one."""
        now, most = time.monotonic(), self._size.limit
        runs = [run for order in self._orders.values() if (run := order.next_run(now, most))]
        if not runs:
            return False
        spent, started = 0.0, now
        for group in together(runs, most):
            began = time.thread_time()
            records = await self._deliver(epoch, group[0].raw.partition, group)
            self._size.note(records, seconds := time.thread_time() - began)
            spent += seconds
        self._round_s += pace.ROUND_WEIGHT * (spent - self._round_s)
        self._round_lasts += pace.ROUND_WEIGHT * (time.monotonic() - started - self._round_lasts)
        return epoch == self.epoch

    async def _deliver(self, epoch: int, partition: int, runs: Sequence[Run]) -> int:
        """Deliver runs and return the number of records that were processed."""
        if epoch != self.epoch:
            return 0  # taken away during the run: going live again reads the run again
        if not self.flow_active:
            self.abandon()  # the worker stops: undelivered runs must not count as processed
            return 0
        delivery = self._delivery = Delivery(partition, tuple(runs), epoch, self.loop.create_future())
        # Faust requires one place for a message, and does not use it.
        tp = TP(runs[0].topic if runs else self.options.topics[0], partition)
        generation = self.app.consumer_generation_id
        message = ConsumerMessage(
            tp.topic, tp.partition, 0, 0.0, 0, None, None, b"", None, 0, 0, tp, generation_id=generation
        )
        message.value = cast(Any, delivery)  # Faust's type is bytes; the schema passes it through
        await self.callback(message)
        await delivery.done
        return delivery.give_back(self._orders if epoch == self.epoch else {})

    async def _recover(self, records: Mapping[TP, list[Any]]) -> None:
        """Give a table's records to Faust, one event each: they are large and few."""
        generation, recovery = self.app.consumer_generation_id, self._recovery
        for tp, fetched in records.items():
            self.wiring.progress.read_changelog(
                len(fetched),
                sum(len(record.value or b"") for record in fetched),
                standby=tp in recovery.standby_tps,
                left=max(0, recovery.active_remaining_total()),
            )
            for record in fetched:
                if not self.flow_active or generation != self.app.consumer_generation_id:
                    return  # recovery starts over, and seeks
                message = self._to_message(tp, record)
                await self.wait_first(self.callback(message), self.suspend_flow.wait())

    async def _go_on_in_changelogs(self, lost: Mapping[TP, int]) -> None:
        """Continue reading changelogs that lack our position; ChangelogError if that is impossible.

        Records deleted before we read them may be missing from a snapshot; a restore from it detects that.
        """
        try:
            logs = await self._thread.log_ranges(lost)
        except NotYetError as reason:
            logger.warning("Positions out of range are looked at again: %s", reason)
            return
        for tp, position in lost.items():
            first, end = logs[tp]
            if position > end:
                message = (
                    f"topic {tp.topic} partition {tp.partition} has offsets {first} to {end}, but this "
                    f"worker has read it up to {position}"
                )
                raise ChangelogError(message, str(self.app.conf.datadir))
            if position < first:
                logger.warning(
                    "topic %s partition %d: offsets %d to %d were deleted before they were read",
                    *(tp.topic, tp.partition, position, first - 1),
                )
        await self._thread.seek_all({tp: max(at, logs[tp][0]) for tp, at in lost.items()})

    async def _feed(self, epoch: int, fetched: Fetched) -> None:
        await self._recover(fetched.changelogs)
        if fetched.changelogs_out_of_range:
            await self._go_on_in_changelogs(fetched.changelogs_out_of_range)
        if epoch != self.epoch:
            return  # fetched for an earlier assignment
        for tp, log_end in fetched.log_ends.items():
            if tp.partition in self._orders:
                self._orders[tp.partition].topics[tp.topic].log_end = log_end
        for tp, columns in fetched.columns.items():
            order = self._orders.get(tp.partition)
            if order is not None:
                order.add(tp.topic, columns)
                self.wiring.manager.moved(tp.partition, tp.topic, order.topics[tp.topic].next)
        self.wiring.progress.lag(self._log_ends(), fetched.unserved)
        if fetched.sought_back:
            self.wiring.progress.sought_back(fetched.sought_back)
        if fetched.out_of_range:
            await self._jump(epoch, fetched.out_of_range)

    def _log_ends(self) -> dict[TP, int]:
        return {
            TP(topic, partition): ahead.log_end
            for partition, order in self._orders.items()
            for topic, ahead in order.topics.items()
            if ahead.log_end is not None
        }

    # -- going live -----------------------------------------------------------------------------------------

    async def perform_seek(self) -> None:
        """Do nothing: Faust calls this before it empties its queues. Sources are sought when they go live."""

    def go_live(self) -> None:
        """Start to bring the assigned partitions to life, each independently, after the rebalance.

        Faust may call it late, when the next rebalance has begun already, and then again after that one. So
        partitions that went live in between are put aside first: else their runs would be handed out while
        nothing is live.
        """
        again = bool(self._orders)
        self.abandon()
        if self.membership is None:
            return  # the next rebalance has begun
        # If the next rebalance has reached Faust's recovery, the queues will be emptied again.
        self._standbys_read = not self._recovery.signal_recovery_start.is_set()
        self._going_live = asyncio.ensure_future(self._go_live(self.epoch, again))

    async def _go_live(self, epoch: int, again: bool) -> None:
        try:
            if again:
                await self.wiring.committer.commit("going live again")
            if epoch != self.epoch:
                return  # that commit was aborted
            await self._bring_to_life(epoch)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            if epoch == self.epoch and not (self.should_stop or self.app.should_stop):
                self.log.exception("Going live failed: %r", error)
                await self.crash(error)

    async def _bring_to_life(self, epoch: int) -> None:
        topics = self.options.topics
        partitions = sorted({tp.partition for tp in self.assignment() if tp.topic in topics})
        here = await self.wiring.assignments.assigned(partitions)
        if epoch != self.epoch:
            return
        self.wiring.abandoned.check(abort=not here >= set(partitions))
        sources = [TP(topic, partition) for partition in partitions for topic in topics]
        missing = set(sources) - self.assignment()
        if missing and self._thread.sources.suspects:
            return  # deleted at the broker: the watch ends the worker, or a rebalance brings them back
        if missing:  # the assignor moves topics of equal partition counts together
            await self._ask_for_all_topics(missing)
            return
        self._lacks_since = None
        if not sources:
            await run_blocking(self.options.check_group)
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
        await self.rejoin()

    async def _all_ranges(self, sources: list[TP]) -> dict[TP, tuple[int, int]]:
        """Return where the logs begin and end; nothing if one of them is unknown.

        While nothing is fetched the answer takes a moment. Later it is queued after the answer to a fetch,
        for which the broker waits until there are records.
        """
        try:
            return await self._thread.log_ranges(sources)
        except NotYetError:
            return {}  # each range is then requested separately

    async def _bring(
        self, epoch: int, partition: int, lanes: asyncio.Semaphore, logs: dict[TP, tuple[int, int]]
    ) -> None:
        """Bring one partition to life, however long it waits for other partitions; these do not wait."""
        while epoch == self.epoch and not self.app.should_stop:  # tables stop before we do
            try:
                async with lanes:
                    if epoch == self.epoch and not self.app.should_stop:
                        await self._bring_one_to_life(epoch, partition, logs)
                return
            except NotYetError as reason:
                if epoch == self.epoch:
                    self.wiring.assignments.waits(partition, str(reason))
            await asyncio.sleep(PENDING_PAUSE)

    async def _bring_one_to_life(self, epoch: int, partition: int, ranges: dict[TP, tuple[int, int]]) -> None:
        sources = [TP(topic, partition) for topic in self.options.topics]
        logs = {tp: ranges.pop(tp) for tp in sources if tp in ranges}  # the next attempt requests them again
        if not logs:
            logs = await self._thread.log_ranges(sources)
        first = {tp.topic: self._first(log) for tp, log in logs.items()}
        positions = await self.wiring.assignments.restore(partition, first)
        if positions is None or epoch != self.epoch:
            return
        if not all(is_in_log(positions[tp.topic], logs[tp]) for tp in sources):
            logs = await self._thread.log_ranges(sources)  # the logs have grown during the restore
        if epoch == self.epoch:
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
                start = self.wiring.manager.out_of_range(tp, at, *logs[tp])
            if start is None:
                return  # stopped
            starts[topic] = start
        await self._thread.seek_all({TP(topic, partition): at for topic, at in starts.items()})
        if epoch == self.epoch:
            self._orders[partition] = self._new_order(partition, starts)
            self.wiring.assignments.live(partition)
            self.wake()

    def _new_order(self, partition: int, starts: Mapping[str, int]) -> TimeOrder:
        return TimeOrder(
            partition,
            starts.items(),
            skew_ms=self.options.skew_ms,
            max_idle_ms=self.options.max_idle_ms,
            max_records=self.options.max_records,
        )

    def _first(self, log: tuple[int, int]) -> int:
        """Return where a partition that was never processed begins."""
        return log[0 if self.app.conf.consumer_auto_offset_reset == "earliest" else 1]

    async def _jump(self, epoch: int, lost: list[TP]) -> None:
        """Continue after records that retention deleted; any other change of the log stops the partition.

        Not while records wait that were fetched before: they precede the lost records, and come first.
        """
        gone = []
        for tp in lost:
            if (order := self._orders.get(tp.partition)) is not None:
                order.topics[tp.topic].cut_off = True
                if not len(order.topics[tp.topic]):
                    gone.append(tp)
        if not gone:
            return
        try:
            logs = await self._thread.log_ranges(gone)
        except NotYetError as reason:
            self.log.warning("Positions out of range are looked at again: %s", reason)
            return
        for tp in gone:
            order = self._orders.get(tp.partition)
            if order is None or epoch != self.epoch:
                continue
            ahead = order.topics[tp.topic]
            start = self.wiring.manager.out_of_range(tp, ahead.position, *logs[tp])
            if start is not None:
                ahead.go_on(start, logs[tp][1])

    def _stop_going_live(self) -> None:
        going, self._going_live = self._going_live, None
        if going is not None and going is not asyncio.current_task():  # it may find a commit aborted
            going.cancel()

    # -- the end of an assignment ---------------------------------------------------------------------------

    def abandon(self) -> None:
        """Forget the fetched records: the worker that goes live with these partitions reads them again."""
        self.epoch += 1
        self._orders.clear()
        self._stop_going_live()
        if self._delivery is not None:
            self._delivery.finish()

    def end(self, error: BaseException) -> None:
        """End the worker because of `error`."""
        self.add_future(self.crash(error))

    async def crash(self, reason: BaseException) -> None:
        """End the worker, once: later failures are consequences."""
        if not self._crashed.is_set():
            await super().crash(reason)

    def wake(self) -> None:
        """End the current poll: its conditions have changed."""
        self._thread.interrupt()

    def drop(self, partition: int) -> None:
        """Stop fetching one partition."""
        self._orders.pop(partition, None)

    async def on_partitions_revoked(self, revoked: set[TP]) -> None:
        self.abandon()
        self._standbys_read = False
        self.wiring.assignments.revoked()
        await super().on_partitions_revoked(revoked)  # commits, in commit_and_end_transactions
        self.membership = None

    async def on_partitions_assigned(self, assigned: set[TP], generation_id: int = 0) -> None:
        self.membership = self._thread.membership
        await super().on_partitions_assigned(assigned, generation_id)

    @property
    def broker_reachable(self) -> bool:
        """Whether the group's coordinator is known and has answered its latest request."""
        return self._thread.broker_reachable

    # -- offsets: the committer's ---------------------------------------------------------------------------

    async def rejoin(self) -> None:
        """Join the group again: every partition is then restored."""
        await self._thread.rejoin()

    async def commit_and_end_transactions(self) -> None:
        """Commit processed records; Faust calls this when partitions are revoked and when it stops."""
        if self.app.should_stop:
            await self.wiring.committer.commit("stopping", timeout_s=STOP_TIMEOUT_S)
        else:
            await self.wiring.committer.commit("partitions revoked")

    async def force_commit(self, topics: Any = None, start_new_transaction: bool = True) -> bool:
        """Do nothing: Faust's commit timer only handles acks."""
        return False

    async def verify_all_partitions_active(self) -> None:
        """Do nothing: Faust's livelock detector reads state that is not kept here."""
