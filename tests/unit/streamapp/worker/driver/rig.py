"""Rig of the driver: a consumer without Faust, aiokafka and a broker, driven by what these do with it.

Only this module has the parts that are attached to a consumer, and those of its methods that Faust or its own
loop calls. A consumer cannot be constructed without an app of Faust; `tests/broker` has it whole.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

from faust.types import TP

from streamapp.errors import NotYetError
from streamapp.worker.driver.changelogs import Changelogs
from streamapp.worker.driver.consumer import Consumer
from streamapp.worker.driver.going_live import GoingLive
from streamapp.worker.driver.live_partitions import LivePartitions
from streamapp.worker.driver.pace import RoundTime
from streamapp.worker.driver.thread import Fetched
from streamapp.worker.transport.delivery import Delivery
from streamapp.worker.transport.run_size import RunSize
from streamapp.worker.transport.runs import TimeOrder
from streamapp.worker.transport.schema_gate import SchemaGate
from topics.fetching.batches import Limit
from topics.registry.known_schemas import KnownSchemas

MOST_RECORDS = 2  # of a run


def order_of(partition: int, topics: Iterable[str] = ("topic",)) -> TimeOrder:
    """Return the input topics of a live partition, each read from its beginning."""
    return TimeOrder(
        partition, [(topic, 0) for topic in topics], skew_ms=0, max_idle_ms=-1, max_records=MOST_RECORDS
    )


@dataclass(frozen=True)
class Fetch:
    """A fetch as the thread of the client is asked for it."""

    wanted: Mapping[TP, int]
    changelogs: set[TP]
    not_before: float
    ahead: bool
    timeout_s: float = 0.0


class Driver:
    """A consumer of `topic`, whose broker, assignment and tables a test steers."""

    def __init__(
        self,
        *orders: TimeOrder,
        assigned: int = 0,
        tables: Iterable[int] = (),
        standbys: Iterable[int] = (1,),
        epoch: int = 1,
        round_s: float = 0.0,
        round_lasts: float = 0.0,
        manager: Any = None,
    ) -> None:
        """`orders`: of partitions that are live; `assigned`: how many partitions the group has assigned;
        `tables`: partitions whose table is to be read; `standbys`: those among them that are standbys;
        `round_s`, `round_lasts`: seconds that a round of runs took up to now."""
        # What the broker has, and what it does
        self.away: set[int] = set()  # partitions without a leader, until somebody waits for them
        self.logs: dict[int, tuple[int, int]] = {}  # first offset and end of partitions
        self.fetched = Fetched({})  # by the next fetch
        # What the worker does
        self.positions = 5  # where a restored partition goes on
        self.here: set[int] = set()  # partitions whose state is here
        self.restore: Callable[[int, dict[str, int]], Awaitable[dict[str, int]]] = self._restore
        self.live: Callable[[int], None] = lambda number: self.seen.append(f"{number} live")
        self.on_commit: Callable[[], Awaitable[None]] | None = None
        self.on_delivery: Callable[[Delivery], None] = lambda delivery: None
        self.due_for_tick: int | None = None  # a partition for which a commit is due
        self.room_before_commit = 0.0  # seconds that the last round before it may wait
        # What was seen of it
        self.seen: list[str] = []
        self.aborts: list[bool] = []
        self.asked: list[list[int]] = []  # where the logs of these partitions begin and end
        self.fetches: list[Fetch] = []
        self.delivered: list[int] = []  # partitions
        self.moved: list[tuple[int, int]] = []  # partition and position up to which no record is left
        self.woken = 0  # how often a poll was to end
        self.rounds: list[float] = []  # seconds for which room before a commit was asked
        self._assigned = assigned
        self._consumer = self._consumer_of(orders, epoch, round_s, round_lasts)
        self._consumer.app = self._app(standbys)
        parts = self._wiring(manager)
        self._consumer.options = self._consumer.app.options = self._consumer.app.wiring = parts
        self._consumer._active_partitions = {TP("table", number) for number in tables}

    def _consumer_of(
        self, orders: tuple[TimeOrder, ...], epoch: int, round_s: float, round_lasts: float
    ) -> Any:
        consumer = cast("Any", Consumer.__new__(Consumer))
        consumer.membership, consumer.flow_active = object(), True
        consumer._delivery, consumer._size = None, RunSize(MOST_RECORDS)
        consumer._round = RoundTime(0.5, round_s, round_lasts)
        consumer.assignment = lambda: {TP("topic", number) for number in range(self._assigned)}
        consumer.callback = self._called
        consumer._thread = SimpleNamespace(
            take=self._take,
            log_ranges=self._log_ranges,
            seek_all=self._seek_all,
            interrupt=self._wake,
            sources=SimpleNamespace(suspects=False),
        )
        consumer.schema_gate = SchemaGate(None)
        consumer._live = LivePartitions()
        consumer._live.epoch, consumer._live.orders = epoch, {order.partition: order for order in orders}
        consumer._going_live = GoingLive(consumer, consumer._thread, consumer._live, consumer.schema_gate)
        consumer._changelogs = Changelogs(consumer, consumer._thread)
        return consumer

    def _wake(self) -> None:
        self.woken += 1

    def read_by(self, schemas: KnownSchemas) -> None:
        """Read records by schemas, as a consumer does that has them in its options."""
        self._consumer.schema_gate = SchemaGate(schemas)

    def resume(self, *tables: int) -> None:
        """Let Faust resume the reading of tables."""
        self._consumer._paused_partitions = {TP("table", number) for number in tables}
        self._consumer.resume_partitions({TP("table", number) for number in tables})

    def _app(self, standbys: Iterable[int]) -> SimpleNamespace:
        recovery = SimpleNamespace(
            standby_tps={TP("table", number) for number in standbys}, signal_recovery_start=asyncio.Event()
        )
        return SimpleNamespace(
            should_stop=False,
            consumer_generation_id=1,
            tables=SimpleNamespace(changelog_topics={"table"}, recovery=recovery),
            conf=SimpleNamespace(consumer_auto_offset_reset="earliest", datadir="/state/w/topics-grove."),
        )

    def _wiring(self, manager: Any) -> SimpleNamespace:
        assignments = SimpleNamespace(
            assigned=self._assigned_to_it,
            restore=lambda partition, first: self.restore(partition, first),
            live=lambda number: self.live(number),
            waits=self._waits,
        )
        committer = SimpleNamespace(
            commit=self._commit,
            tick_due=lambda now: self.due_for_tick,
            seconds_to_tick=lambda now: 1.0,
            answers_at_once=False,
            seconds_to_last_round=self._seconds_to_last_round,
        )
        return SimpleNamespace(
            topics=("topic",),
            skew_ms=0,
            max_idle_ms=-1,
            max_records=MOST_RECORDS,
            limit=Limit(),
            abandoned=SimpleNamespace(check=lambda *, abort: self.aborts.append(abort)),
            manager=manager or SimpleNamespace(out_of_range=self._out_of_range, moved=self._moved),
            progress=SimpleNamespace(lag=lambda ends, unserved: None),
            traces=None,
            assignments=assignments,
            committer=committer,
            check_group=lambda: self.seen.append("looked who is in the group"),
        )

    # -- what Faust, the group and the broker do

    async def turn(self) -> None:
        """Fetch, and deliver what is due."""
        self._consumer.loop = asyncio.get_running_loop()
        await self._consumer._turn()

    async def fetch(self, timeout_s: float = 0.0) -> Fetch:
        """Fetch for a poll of so many seconds; return what was asked for."""
        await self._consumer._take(timeout_s)
        return self.fetches[-1]

    def stop_flow(self) -> None:
        """Faust stops the worker, or a rebalance begins: nothing is to be delivered."""
        self._consumer.flow_active = False

    def abandon(self) -> None:
        """The group takes the partitions away."""
        self._consumer.abandon()

    def revoke(self) -> None:
        self._consumer.membership = None

    def recovery_begins(self) -> None:
        """Faust is about to recover its tables for another rebalance."""
        self._consumer.app.tables.recovery.signal_recovery_start.set()

    async def go_live(self) -> None:
        """A rebalance is over; return when the partitions that it has assigned are live."""
        self._consumer.go_live()
        if self._consumer._going_live.running is not None:
            await self._consumer._going_live.running

    async def bring_to_life(self) -> None:
        """Bring the assigned partitions to life; raise what fails for good."""
        await self._consumer._going_live._bring_to_life(self._consumer.epoch)

    async def changelogs_are_out_of_range(self, lost: Mapping[TP, int]) -> None:
        """A fetch has found that the logs of tables do not have these positions."""
        await self._consumer._changelogs.go_on(lost)

    async def positions_are_out_of_range(self, *partitions: TP) -> None:
        """A fetch has found that these logs do not have the positions it asked for."""
        await self._consumer._jump(self._consumer.epoch, list(partitions))

    # -- what the consumer reaches

    async def _take(
        self, wanted: Any, timeout_s: float, changelogs: Any, pace_s: float, not_before: float, *, ahead: bool
    ) -> Fetched:
        self.fetches.append(Fetch(wanted, changelogs, not_before, ahead, timeout_s))
        fetched, self.fetched = self.fetched, Fetched({})
        return fetched

    async def _log_ranges(self, partitions: Iterable[TP]) -> dict[TP, tuple[int, int]]:
        self.asked.append([tp.partition for tp in partitions])
        for tp in partitions:
            if tp.partition in self.away:
                message = f"{tp.topic}-{tp.partition}: no leader is known"
                raise NotYetError(message)
        return {tp: self.logs.get(tp.partition, (0, 9)) for tp in partitions}

    async def _seek_all(self, positions: dict[TP, int]) -> None:
        self.seen += [f"{tp.partition} at {at}" for tp, at in positions.items()]

    async def _called(self, message: Any) -> None:
        self.delivered.append(message.partition)
        self.on_delivery(message.value)
        message.value.finish()

    async def _assigned_to_it(self, partitions: list[int]) -> set[int]:
        return self.here

    async def _restore(self, partition: int, first: dict[str, int]) -> dict[str, int]:
        return {"topic": self.positions}

    def _waits(self, partition: int, reason: str) -> None:
        self.seen.append(f"{partition} waits: {reason}")
        self.away.clear()

    def _out_of_range(self, tp: TP, position: int, first: int, end: int) -> int | None:
        self.seen.append(f"{tp.partition} lost {position} of {first}-{end}")
        return first if position < first else None

    def _moved(self, heads: Iterable[tuple[TP, int]]) -> None:
        self.moved += [(tp.partition, position) for tp, position in heads]

    async def _commit(self, why: str) -> None:
        self.seen.append(f"commit {why}")
        if self.on_commit is not None:
            await self.on_commit()

    def _seconds_to_last_round(self, now: float, round_s: float) -> float:
        self.rounds.append(round_s)
        return self.room_before_commit if round_s else 0.0
