"""The driver's loop: what it handed out is processed, or it is not called so."""

import asyncio
import time
from types import SimpleNamespace
from typing import Any, cast

import pytest
from faust.types import TP

from streamapp.errors import ChangelogError, NotYetError
from streamapp.worker.transport.consumer import Consumer
from streamapp.worker.transport.pace import FETCH_S, PAUSE_MAX_S, ROUND_ROOM
from streamapp.worker.transport.rounds import together
from streamapp.worker.transport.run_size import RunSize
from streamapp.worker.transport.runs import MAX_RUN_BYTES, FetchedColumns, Run, TimeOrder
from streamapp.worker.transport.thread import Fetched
from topics.columns.records import RawRecords
from topics.columns.spans import RecordSpans
from topics.fetching.batches import Limit


def columns(*offsets: int) -> FetchedColumns:
    n = len(offsets)
    position = offsets[-1] + 1
    records = RecordSpans.of(offsets, [0] * n, [b"k"] * n, [b"v"] * n, [()] * n)
    return FetchedColumns(records, position, position)


def test_a_run_that_a_stop_leaves_undelivered_is_not_called_processed() -> None:
    moved: list[tuple[int, int]] = []
    delivered: list[int] = []

    async def story() -> None:
        consumer: Any = Consumer.__new__(Consumer)
        consumer.loop = asyncio.get_running_loop()
        recovery = SimpleNamespace(standby_tps={TP("table", 1)})
        tables = SimpleNamespace(changelog_topics={"table"}, recovery=recovery)
        consumer.app = SimpleNamespace(consumer_generation_id=1, tables=tables)
        consumer._active_partitions = {TP("topic", 0), TP("topic", 1), TP("table", 0), TP("table", 1)}
        consumer._standbys_read = False
        manager = SimpleNamespace(
            moved=lambda partition, topic, position: moved.append((partition, position))
        )
        consumer.wiring = SimpleNamespace(
            topics=("topic",),
            manager=manager,
            committer=SimpleNamespace(
                seconds_to_tick=lambda now: 1.0, seconds_to_last_round=lambda now, round_s: 0.0
            ),
            progress=SimpleNamespace(lag=lambda ends: None),
            limit=Limit(),
        )
        consumer.epoch, consumer.flow_active = 1, True
        consumer._delivery = consumer._going_live = None
        consumer._orders, consumer._size = {}, RunSize(2)
        consumer._round_s = consumer._round_lasts = 0.0
        for partition in (0, 1):
            order = TimeOrder(partition, [("topic", 0)], skew_ms=0, max_idle_ms=-1, max_records=2)
            order.add("topic", columns(0, 1))
            consumer._orders[partition] = order

        async def take(wanted: Any, timeout_s: float, changelogs: Any, *times: float, ahead: bool) -> Fetched:
            assert ahead
            assert changelogs == {TP("table", 0)}
            return Fetched({TP("topic", 1): columns(2)})

        async def callback(message: Any) -> None:
            delivered.append(message.partition)
            consumer.flow_active = False  # the worker is stopped while this run is processed
            message.value.finish()

        consumer._thread, consumer.callback = SimpleNamespace(take=take), callback
        await consumer._turn()

    asyncio.run(story())
    assert delivered == [0]
    assert moved == []


@pytest.mark.parametrize(
    ("timeout_s", "table_waits", "left"),
    [(0.5, False, 0), (0.0, False, 0), (0.5, True, 0), (0.5, False, 1)],
    ids=["calm", "a run waits", "a table waits", "the broker has more"],
)
def test_a_fetch_pauses_only_while_nobody_waits_for_it(
    timeout_s: float, table_waits: bool, left: int
) -> None:
    asked: list[float] = []
    fetches: list[float] = []

    async def story() -> None:
        consumer: Any = Consumer.__new__(Consumer)
        consumer.app = with_recovery()
        consumer._active_partitions = {TP("table", 0)} if table_waits else set()
        order = TimeOrder(0, [("topic", 0)], skew_ms=0, max_idle_ms=-1, max_records=2)
        order.topics["topic"].log_end = left
        consumer._standbys_read, consumer._orders = True, {0: order}
        consumer._round_s, consumer._round_lasts = 0.001, 0.004

        def seconds_to_last_round(now: float, round_s: float) -> float:
            asked.append(round_s)
            return 0.0 if round_s == 0.0 else 10.0

        async def take(
            wanted: Any, timeout_s: float, changelogs: Any, pace_s: float, not_before: float, *, ahead: bool
        ) -> None:
            fetches.append(not_before)
            assert ahead == (not_before == 0.0), "what comes while a round is processed waits, too"

        committer = SimpleNamespace(
            seconds_to_tick=lambda now: 1.0, seconds_to_last_round=seconds_to_last_round
        )
        consumer.wiring, consumer._thread = (
            SimpleNamespace(committer=committer, limit=Limit()),
            SimpleNamespace(take=take),
        )
        before = time.monotonic()
        await consumer._take(timeout_s)
        if timeout_s and not table_waits and not left:
            assert asked == [FETCH_S + ROUND_ROOM * 0.004]
            assert before + PAUSE_MAX_S <= fetches[0] <= time.monotonic() + PAUSE_MAX_S
        else:
            assert (asked, fetches) == ([0.0], [0.0])

    asyncio.run(story())


def test_small_runs_are_handed_out_together_and_in_their_order() -> None:
    sizes = [3, 4, 2, 10, 1, 1, 11, 1]
    records = [columns(*range(n)).records for n in sizes]
    runs = [Run("topic", RawRecords.over("topic", n, r), 0) for n, r in enumerate(records)]
    found = [[len(run.raw) for run in some] for some in together(runs, 10)]
    assert found == [[3, 4, 2], [10], [1, 1], [11], [1]]
    assert list(together([], 10)) == []


def test_runs_of_large_records_are_handed_out_each_by_itself() -> None:
    value = bytes(MAX_RUN_BYTES // 2 + 1)
    records = RecordSpans.of([0], [0], [b"k"], [value], [()])
    runs = [Run("topic", RawRecords.over("topic", n, records), 1) for n in range(3)]
    assert [len(some) for some in together(runs, 10)] == [1, 1, 1]


def with_recovery(begins: bool = False) -> Any:
    """An app whose worker is the standby of partition 1; `begins`: another recovery is to begin."""
    signal = asyncio.Event()
    if begins:
        signal.set()
    recovery = SimpleNamespace(standby_tps={TP("table", 1)}, signal_recovery_start=signal)
    return SimpleNamespace(tables=SimpleNamespace(changelog_topics={"table"}, recovery=recovery))


@pytest.mark.parametrize("next_rebalance", ["none", "partitions-revoked", "partitions-assigned"])
def test_standbys_read_nothing_that_faust_would_throw_away(next_rebalance: str) -> None:
    async def story() -> None:
        consumer: Any = Consumer.__new__(Consumer)
        consumer.epoch, consumer._standbys_read = 3, False
        consumer._delivery = consumer._going_live = None
        consumer._orders = {}
        consumer._active_partitions = {TP("table", 0), TP("table", 1)}
        consumer.membership = None if next_rebalance == "partitions-revoked" else object()
        consumer.app = with_recovery(begins=next_rebalance == "partitions-assigned")

        async def bring_to_life(epoch: int) -> None:
            """Nothing has to be restored."""

        consumer._bring_to_life = bring_to_life
        assert consumer._changelogs() == {TP("table", 0)}, "Faust will empty its queues"
        consumer.go_live()
        rest = {TP("table", 1)} if next_rebalance == "none" else set()
        assert consumer._changelogs() == {TP("table", 0)} | rest

    asyncio.run(story())


def test_going_live_twice_in_one_assignment_hands_out_nothing_in_between() -> None:
    """Faust resumes for a rebalance although the next one has begun, and again when that is over."""
    seen: list[str] = []

    async def story() -> None:
        consumer: Any = Consumer.__new__(Consumer)
        consumer.epoch, consumer.membership = 3, object()
        consumer.app = with_recovery()
        consumer._delivery = consumer._going_live = None
        consumer._orders = {0: TimeOrder(0, [("topic", 0)], skew_ms=0, max_idle_ms=-1, max_records=2)}

        async def commit(why: str) -> None:
            assert not consumer._orders, "what is committed is what was processed, and nothing is added"
            seen.append(f"commit {why}")

        async def bring_to_life(epoch: int) -> None:
            seen.append(f"live in epoch {epoch}")

        consumer.wiring = SimpleNamespace(committer=SimpleNamespace(commit=commit))
        consumer._bring_to_life = bring_to_life
        consumer.go_live()
        assert consumer.epoch == 4, "what was handed out before is void"
        await consumer._going_live
        consumer.membership = None  # revoked: the next rebalance goes live
        consumer.go_live()
        assert consumer._going_live is None

    asyncio.run(story())
    assert seen == ["commit going live again", "live in epoch 4"]


class Assigned:
    """A consumer that has got partitions, with a broker that serves those it is told to."""

    def __init__(self, partitions: int) -> None:
        self.away: set[int] = set()
        self.logs: dict[int, tuple[int, int]] = {}
        self.positions = 5
        self.seen: list[str] = []
        self.aborts: list[bool] = []
        self.asked: list[list[int]] = []  # where the logs of these partitions begin and end
        self.here: set[int] = set()  # partitions whose state is here
        self.consumer = cast("Any", Consumer.__new__(Consumer))
        self.consumer.app = SimpleNamespace(
            should_stop=False, conf=SimpleNamespace(consumer_auto_offset_reset="earliest")
        )
        abandoned = SimpleNamespace(check=lambda *, abort: self.aborts.append(abort))
        self.assignments = SimpleNamespace(
            assigned=self.assigned,
            restore=self.restore,
            live=lambda number: self.seen.append(f"{number} live"),
            waits=self.waits,
        )
        self.consumer.wiring = SimpleNamespace(
            topics=("topic",),
            skew_ms=0,
            max_idle_ms=-1,
            max_records=2,
            abandoned=abandoned,
            manager=SimpleNamespace(out_of_range=self.out_of_range),
            assignments=self.assignments,
            check_group=lambda: self.seen.append("looked who is in the group"),
        )
        self.consumer.epoch, self.consumer._orders = 1, {}
        self.consumer.assignment = lambda: {TP("topic", number) for number in range(partitions)}
        self.consumer._thread = SimpleNamespace(
            log_ranges=self.log_ranges, seek_all=self.seek_all, interrupt=lambda: None
        )

    async def assigned(self, partitions: list[int]) -> set[int]:
        return self.here

    async def log_ranges(self, partitions: list[TP]) -> dict[TP, tuple[int, int]]:
        self.asked.append([tp.partition for tp in partitions])
        for tp in partitions:
            if tp.partition in self.away:
                message = f"{tp.topic}-{tp.partition}: no leader is known"
                raise NotYetError(message)
        return {tp: self.logs.get(tp.partition, (0, 9)) for tp in partitions}

    async def seek_all(self, positions: dict[TP, int]) -> None:
        self.seen += [f"{tp.partition} at {at}" for tp, at in positions.items()]

    async def restore(self, partition: int, first: dict[str, int]) -> dict[str, int]:
        return {"topic": self.positions}

    def waits(self, partition: int, reason: str) -> None:
        self.seen.append(f"{partition} waits: {reason}")
        self.away.clear()

    def out_of_range(self, tp: TP, position: int, first: int, end: int) -> int | None:
        self.seen.append(f"{tp.partition} lost {position} of {first}-{end}")
        return first if position < first else None


def test_a_partition_without_a_leader_waits_and_the_others_go_live() -> None:
    story = Assigned(3)
    story.away.add(1)
    asyncio.run(story.consumer._bring_to_life(1))
    said = story.seen.index
    assert said("1 waits: topic-1: no leader is known") < said("1 live")
    assert [said(f"{number} at 5") < said(f"{number} live") for number in range(3)] == [True] * 3
    assert max(said("0 live"), said("2 live")) < said("1 live")
    assert len(story.seen) == 7


def test_the_logs_are_looked_at_before_anything_is_fetched_and_again_only_where_something_failed() -> None:
    story = Assigned(3)
    asyncio.run(story.consumer._bring_to_life(1))
    assert story.asked == [[0, 1, 2]]

    story = Assigned(3)
    attempts: list[int] = []

    async def restore(partition: int, first: dict[str, int]) -> dict[str, int]:
        attempts.append(partition)
        if attempts == [0]:
            message = "a transaction is open"
            raise NotYetError(message)
        return {"topic": 5}

    story.assignments.restore = restore
    asyncio.run(story.consumer._bring_to_life(1))
    assert story.asked == [[0, 1, 2], [0]]


def test_a_restore_that_hangs_holds_up_no_other_partition() -> None:
    story, others = Assigned(4), asyncio.Event()

    async def restore(partition: int, first: dict[str, int]) -> dict[str, int]:
        if partition == 0:
            await others.wait()
        return {"topic": 5}

    def live(partition: int) -> None:
        story.seen.append(f"{partition} live")
        if sum("live" in said for said in story.seen) == 3:
            others.set()

    story.assignments.restore, story.assignments.live = restore, live
    asyncio.run(story.consumer._bring_to_life(1))
    assert story.seen[-1] == "0 live"


def test_partitions_whose_state_is_here_come_first() -> None:
    story = Assigned(4)
    story.here = {1, 3}
    asyncio.run(story.consumer._bring_to_life(1))
    live = [said for said in story.seen if said.endswith("live")]
    assert sorted(live[:2]) == ["1 live", "3 live"]
    assert story.aborts == [True]


def test_who_keeps_its_partitions_is_nobodys_heir() -> None:
    story = Assigned(2)
    story.here = {0, 1}
    asyncio.run(story.consumer._bring_to_life(1))
    assert story.aborts == [False]


def test_what_fails_for_good_ends_the_others_too() -> None:
    story = Assigned(3)
    ended: list[int] = []

    async def restore(partition: int, first: dict[str, int]) -> dict[str, int]:
        if partition == 1:
            message = "denied"
            raise PermissionError(message)
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(partition)
        return {}

    story.assignments.restore = restore
    with pytest.raises(PermissionError):
        asyncio.run(story.consumer._bring_to_life(1))
    assert 0 in ended
    assert not story.seen


def test_a_worker_that_is_given_nothing_looks_who_is_in_the_group() -> None:
    story = Assigned(0)
    asyncio.run(story.consumer._bring_to_life(1))
    assert story.seen == ["looked who is in the group"]


def test_only_a_log_that_reaches_our_position_is_read() -> None:
    story = Assigned(3)
    story.logs = {0: (7, 9), 1: (0, 4)}
    asyncio.run(story.consumer._bring_to_life(1))
    assert story.seen == ["0 lost 5 of 7-9", "0 at 7", "0 live", "1 lost 5 of 0-4", "2 at 5", "2 live"]


def test_a_log_that_grew_while_its_partition_was_restored_is_looked_at_again() -> None:
    story = Assigned(1)
    story.logs = {0: (0, 4)}

    async def restore(partition: int, first: dict[str, int]) -> dict[str, int]:
        story.logs[0] = (0, 5)
        return {"topic": 5}

    story.assignments.restore = restore
    asyncio.run(story.consumer._bring_to_life(1))
    assert story.seen == ["0 at 5", "0 live"]


def test_a_changelog_that_was_trimmed_is_read_on_and_one_made_anew_says_what_to_do(
    caplog: pytest.LogCaptureFixture,
) -> None:
    story = Assigned(3)
    story.consumer.app.conf.datadir = "/state/w/topics-grove."
    story.logs = {0: (7, 9), 1: (0, 4), 2: (0, 9)}
    asyncio.run(story.consumer._go_on_in_changelogs({TP("topic", 0): 5, TP("topic", 2): 5}))
    assert story.seen == ["0 at 7", "2 at 5"]
    assert "topic topic partition 0: offsets 5 to 6 were deleted before they were read" in caplog.text
    told = (
        r"topic topic partition 1 has offsets 0 to 4, .* read it up to 5: .* delete /state/w/topics-grove\."
    )
    with pytest.raises(ChangelogError, match=told):
        asyncio.run(story.consumer._go_on_in_changelogs({TP("topic", 1): 5}))
    story.away.add(0)
    asyncio.run(story.consumer._go_on_in_changelogs({TP("topic", 0): 5}))
    assert "looked at again: topic-0: no leader is known" in caplog.text
    assert len(story.seen) == 2
