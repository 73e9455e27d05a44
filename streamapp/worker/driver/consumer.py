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
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from aiokafka.errors import ConsumerStoppedError
from faust.transport.drivers import aiokafka as driver
from faust.types import TP, ConsumerMessage

from streamapp.errors import NotYetError
from streamapp.worker.driver.changelogs import Changelogs
from streamapp.worker.driver.faust_app import STOP_TIMEOUT_S, App, Wiring
from streamapp.worker.driver.going_live import GoingLive
from streamapp.worker.driver.live_partitions import LivePartitions
from streamapp.worker.driver.pace import PAUSE_MAX_S, RoundTime
from streamapp.worker.driver.thread import ConsumerThread, Fetched
from streamapp.worker.transport.delivery import Delivery
from streamapp.worker.transport.membership import Membership
from streamapp.worker.transport.rounds import together
from streamapp.worker.transport.run_size import RunSize
from streamapp.worker.transport.runs import Run, TimeOrder
from streamapp.worker.transport.schema_gate import SchemaGate

logger = logging.getLogger(__name__)

IDLE_POLL = 1.0
"""Seconds a poll waits when there are no records, changelogs to read or commits.

All of these end it. A snapshot that becomes due, or is complete, waits for its end.
"""


class Consumer(driver.Consumer):
    """Faust's consumer, delivering runs."""

    logger = logging.getLogger("faust.kafkabatch")  # keeps service messages out of our log
    app: App
    _thread: ConsumerThread

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.options = self.app.options
        self.membership: Membership | None = None
        self._live = LivePartitions()
        self.schema_gate = SchemaGate(self.options.schemas)
        if self.options.schemas is not None:
            self.options.schemas.on_result(lambda: self.loop.call_soon_threadsafe(self._schemas_found))
        self._going_live = GoingLive(self, self._thread, self._live, self.schema_gate)
        self._changelogs = Changelogs(self, self._thread)
        self._size = RunSize(self.options.max_records)
        self._round = RoundTime(self.options.cpu_share)
        self._delivery: Delivery | None = None

    @property
    def wiring(self) -> Wiring:
        """The parts that process deliveries; they are made after the driver."""
        return self.app.wiring

    @property
    def epoch(self) -> int:
        """The number of assignments and of their ends up to now."""
        return self._live.epoch

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
        if self._live.has_backlog(time.monotonic(), self.schema_gate.holds):
            # There is work for a while: records fetched during it are for the next turn.
            fetching = asyncio.ensure_future(self._take(0.0))
            began = time.monotonic()
            if await self._deliver_round(epoch, is_backlog=True):
                self._round.note(began, time.monotonic(), time.process_time())
            await self._feed(epoch, await fetching)
        else:
            await self._feed(epoch, await self._take(IDLE_POLL))
            began = time.monotonic()
            if await self._deliver_round(epoch):
                while await self._deliver_round(epoch):
                    pass
                self._round.note(began, time.monotonic(), time.process_time())
            tick = self.wiring.committer.tick_due(time.monotonic())  # a round commits if that is due
            if tick is not None:
                await self._deliver(epoch, tick, ())

    async def _take(self, timeout_s: float) -> Fetched:
        now = time.monotonic()
        topics = self._live.wanted(self.options.limit.most_bytes, now)
        back = {ahead.place: ahead.request_again() for ahead in topics if ahead.released}
        await self._thread.seek_all(cast("Mapping[TP, int]", back))
        positions = cast("Mapping[TP, int]", {ahead.place: ahead.position for ahead in topics})
        waits = [timeout_s, self.wiring.committer.seconds_to_tick(now)]
        if self.options.max_idle_ms > 0:
            waits += [order.seconds_to_idle(now) for order in self._live.orders.values()]
        changelogs = self._changelogs.wanted()
        # No table and no run waits for the fetch, and the broker had no more than that.
        standbys = self._changelogs.recovery.standby_tps
        is_calm = timeout_s > 0 and changelogs <= standbys and not self._live.is_behind
        round_s = self._round.room_s if is_calm else 0.0
        pause = min(PAUSE_MAX_S, self.wiring.committer.seconds_to_last_round(now, round_s))
        pauses = is_calm and pause > 0
        # Records fetched while the round is processed would be a separate small round before the pause.
        not_before = now + pause if pauses else 0.0
        is_paced = timeout_s > 0 and self.wiring.committer.answers_at_once
        between = self._round.between_fetches_s if is_paced else 0.0
        fetched = await self._thread.take(
            positions, min(waits), changelogs, between, not_before, ahead=not pauses
        )
        if self.wiring.traces is not None:
            self.wiring.traces.fetched(fetched.columns, fetched.began)
        return fetched

    async def _deliver_round(self, epoch: int, *, is_backlog: bool = False) -> bool:
        """Deliver at most one run of each live partition; return whether there was one.

        A partition whose records are of several topics has several runs, in the order of time. `is_backlog`:
        there are always more runs, so that a commit waits for none.
        """
        if self.options.max_idle_ms <= 0 and self._live.is_at_rest:
            return False  # without a time to count that a topic has been empty
        now, most = time.monotonic(), self._size.limit
        next_run = self._next_run if self.schema_gate.reads_schemas else TimeOrder.next_run
        orders = self._live.orders.values()
        runs = [run for order in orders if (run := next_run(order, now, most)) is not None]
        if not runs:
            return False
        is_backlog = is_backlog or self._live.has_backlog(now, self.schema_gate.holds)
        is_last, groups = self._live.is_at_rest, [*together(runs, most)]
        for group in groups:
            began = time.thread_time()
            is_followed = not is_backlog and not (is_last and group is groups[-1])
            records = await self._deliver(epoch, group[0].raw.partition, group, is_followed=is_followed)
            self._size.note(records, time.thread_time() - began)
        return epoch == self.epoch

    def _schemas_found(self) -> None:
        self.schema_gate.changed()
        self.wake()

    def _next_run(self, order: TimeOrder, now: float, most: int) -> Run | None:
        """Return the next run of a partition whose schemas are known, if there is one."""
        if self.schema_gate.holds(order.partition) or (run := order.next_run(now, most)) is None:
            return None
        return self.schema_gate.admit(order, run)

    async def _deliver(
        self, epoch: int, partition: int, runs: Sequence[Run], *, is_followed: bool = False
    ) -> int:
        """Deliver runs and return the number of records that were processed."""
        if epoch != self.epoch:
            return 0  # taken away during the run: going live again reads the run again
        if not self.flow_active:
            self.abandon()  # the worker stops: undelivered runs must not count as processed
            return 0
        ended = self.loop.create_future()
        delivery = self._delivery = Delivery(partition, tuple(runs), epoch, ended, is_followed=is_followed)
        # Faust requires one place for a message, and does not use it.
        tp = TP(runs[0].topic if runs else self.options.topics[0], partition)
        generation = self.app.consumer_generation_id
        message = ConsumerMessage(
            tp.topic, tp.partition, 0, 0.0, 0, None, None, b"", None, 0, 0, tp, generation_id=generation
        )
        message.value = cast(Any, delivery)  # Faust's type is bytes; the schema passes it through
        await self.callback(message)
        await delivery.done
        return delivery.give_back(self._live.orders if epoch == self.epoch else {})

    async def _feed(self, epoch: int, fetched: Fetched) -> None:
        await self._changelogs.pass_on(fetched.changelogs)
        if fetched.changelogs_out_of_range:
            await self._changelogs.go_on(fetched.changelogs_out_of_range)
        if epoch != self.epoch:
            return  # fetched for an earlier assignment
        self._live.note_log_ends(fetched.log_ends)
        orders = self._live.orders
        fetches = [(tp, columns) for tp, columns in fetched.columns.items() if tp.partition in orders]
        for tp, columns in fetches:
            orders[tp.partition].topics[tp.topic].add(columns)
        heads = [(tp, orders[tp.partition].topics[tp.topic].next) for tp, _ in fetches]
        self.wiring.manager.moved(heads)
        self.wiring.progress.lag(self._live.log_ends(), fetched.unserved)
        if fetched.sought_back:
            self.wiring.progress.sought_back(fetched.sought_back)
        if fetched.out_of_range:
            await self._jump(epoch, fetched.out_of_range)

    # -- going live -----------------------------------------------------------------------------------------

    async def perform_seek(self) -> None:
        """Do nothing: Faust calls this before it empties its queues. Sources are sought when they go live."""

    def go_live(self) -> None:
        """Start to bring the assigned partitions to life, each independently, after the rebalance.

        Faust may call it late, when the next rebalance has begun already, and then again after that one. So
        partitions that went live in between are put aside first: else their runs would be handed out while
        nothing is live.
        """
        again = bool(self._live.orders)
        self.abandon()
        if self.membership is None:
            return  # the next rebalance has begun
        # If the next rebalance has reached Faust's recovery, the queues will be emptied again.
        self._changelogs.standbys_are_read = not self._changelogs.recovery.signal_recovery_start.is_set()
        self._going_live.start(again=again)

    async def _jump(self, epoch: int, lost: list[TP]) -> None:
        """Continue after records that retention deleted; any other change of the log stops the partition.

        Not while records wait that were fetched before: they precede the lost records, and come first.
        """
        gone = []
        for tp in lost:
            if (order := self._live.orders.get(tp.partition)) is not None:
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
            order = self._live.orders.get(tp.partition)
            if order is None or epoch != self.epoch:
                continue
            ahead = order.topics[tp.topic]
            start = self.wiring.manager.out_of_range(tp, ahead.position, *logs[tp])
            if start is not None:
                ahead.go_on(start, logs[tp][1])

    # -- the end of an assignment ---------------------------------------------------------------------------

    def abandon(self) -> None:
        """Forget the fetched records: the worker that goes live with these partitions reads them again."""
        self._live.end_epoch()
        self.schema_gate.clear()
        self._going_live.stop()
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

    def resume_partitions(self, tps: Iterable[TP]) -> None:
        """Read changelogs from now on: Faust has prepared what takes their records."""
        super().resume_partitions(tps)
        self.wake()

    def drop(self, partition: int) -> None:
        """Stop fetching one partition."""
        self._live.orders.pop(partition, None)
        self.schema_gate.forget(partition)

    async def on_partitions_revoked(self, revoked: set[TP]) -> None:
        self.abandon()
        self._changelogs.standbys_are_read = False
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
