"""The driver's loop: what it handed out is processed, or it is not called so."""

import asyncio
import threading
import time

import pytest
from faust.types import TP

from streamapp.errors import ChangelogError, NotYetError
from streamapp.worker.driver.pace import FETCH_S, PAUSE_MAX_S, ROUND_ROOM
from streamapp.worker.driver.thread import Fetched
from streamapp.worker.transport.delivery import Delivery
from streamapp.worker.transport.rounds import together
from streamapp.worker.transport.runs import MAX_RUN_BYTES, FetchedColumns, Run
from tests.registry_endpoint import RegistryEndpoint, answered, failed
from tests.unit.streamapp.worker.driver.rig import Driver, order_of
from topics.codecs.frames.wire_format import framed
from topics.columns.records import RawRecords
from topics.columns.spans import RecordSpans
from topics.registry.client import Registry
from topics.registry.known_schemas import KnownSchemas
from topics.registry.registry_access import registry_access


def columns(*offsets: int) -> FetchedColumns:
    n = len(offsets)
    position = offsets[-1] + 1
    records = RecordSpans.of(offsets, [0] * n, [b"k"] * n, [b"v"] * n, [()] * n)
    return FetchedColumns(records, position, position)


def test_a_run_that_a_stop_leaves_undelivered_is_not_called_processed() -> None:
    orders = [order_of(partition) for partition in (0, 1)]
    for order in orders:
        order.add("topic", columns(0, 1))
    driver = Driver(*orders, tables=(0, 1))
    driver.fetched = Fetched({TP("topic", 1): columns(2)})
    driver.on_delivery = lambda delivery: driver.stop_flow()  # while this run is processed
    asyncio.run(driver.turn())
    (fetch,) = driver.fetches
    assert fetch.ahead
    assert fetch.changelogs == {TP("table", 0)}
    assert driver.delivered == [0]
    assert driver.moved == []


def test_records_that_were_too_many_for_a_step_come_after_other_partitions_had_their_turn() -> None:
    orders = [order_of(partition) for partition in (0, 1)]
    for order in orders:
        order.add("topic", columns(0, 1))
    driver = Driver(*orders)
    processed: list[tuple[int, list[int]]] = []

    def process_one_each(delivery: Delivery) -> None:
        for run in delivery.runs:
            first, *rest = run.cut(1) if len(run.raw) > 1 else (run,)
            processed.append((first.raw.partition, [*first.raw.offsets]))
            delivery.rest.extend(rest)

    driver.on_delivery = process_one_each
    asyncio.run(driver.turn())
    asyncio.run(driver.turn())
    assert processed == [(0, [0]), (1, [0]), (0, [1]), (1, [1])]
    assert [order.topics["topic"].next for order in orders] == [2, 2]


def test_records_of_an_earlier_assignment_are_not_given_back() -> None:
    order = order_of(0)
    order.add("topic", columns(0, 1))
    driver = Driver(order)

    def revoke(delivery: Delivery) -> None:
        delivery.rest.append(delivery.runs[0].cut(1)[1])
        driver.abandon()

    driver.on_delivery = revoke
    asyncio.run(driver.turn())
    assert len(order.topics["topic"]) == 0, "the task of the next assignment reads them again"


@pytest.mark.parametrize(
    ("timeout_s", "table_waits", "left"),
    [(0.5, False, 0), (0.0, False, 0), (0.5, True, 0), (0.5, False, 1)],
    ids=["calm", "a run waits", "a table waits", "the broker has more"],
)
def test_a_fetch_pauses_only_while_nobody_waits_for_it(
    timeout_s: float, table_waits: bool, left: int
) -> None:
    order = order_of(0)
    order.topics["topic"].log_end = left
    driver = Driver(order, tables=[0] if table_waits else [], round_s=0.001, round_lasts=0.004)
    driver.room_before_commit = 10.0
    before = time.monotonic()
    fetch = asyncio.run(driver.fetch(timeout_s))
    if timeout_s and not table_waits and not left:
        assert driver.rounds == [FETCH_S + ROUND_ROOM * 0.004]
        assert before + PAUSE_MAX_S <= fetch.not_before <= time.monotonic() + PAUSE_MAX_S
        assert not fetch.ahead, "what comes while a round is processed waits, too"
    else:
        assert (driver.rounds, fetch.not_before, fetch.ahead) == ([0.0], 0.0, True)


def test_runs_of_one_fetch_are_marked_as_followed_up_to_the_last_one() -> None:
    order = order_of(0, ("instances", "labels"))
    driver = Driver(order)
    driver.fetched = Fetched({TP("instances", 0): columns(0, 1, 2), TP("labels", 0): columns(0)})
    seen: list[tuple[str, bool]] = []

    def note(delivery: Delivery) -> None:
        seen.extend((run.topic, delivery.is_followed) for run in delivery.runs)
        driver.due_for_tick = 0  # a run in the thread of another one may leave a commit due

    driver.on_delivery = note
    asyncio.run(driver.turn())
    assert seen == [("instances", True), ("instances", True), ("labels", False)]
    assert driver.delivered == [0, 0, 0, 0], "three runs, and the tick that commits at their end"


def test_a_round_that_is_handed_out_in_parts_is_followed_up_to_its_last_part() -> None:
    """Else a commit that is due begins after the first part, and leaves out the others' outputs."""
    driver = Driver(order_of(0), order_of(1))
    driver.fetched = Fetched({TP("topic", 0): columns(0, 1), TP("topic", 1): columns(0)})
    seen: list[tuple[list[int], bool]] = []

    def note(delivery: Delivery) -> None:
        seen.append(([run.raw.partition for run in delivery.runs], delivery.is_followed))

    driver.on_delivery = note
    asyncio.run(driver.turn())
    assert [entry for entry in seen if entry[0]] == [([0], True), ([1], False)]


def test_a_backlog_does_not_make_a_commit_wait() -> None:
    order = order_of(0)
    order.add("topic", columns(0, 1, 2, 3))  # two runs
    driver = Driver(order)
    followed: list[bool] = []
    driver.on_delivery = lambda delivery: followed.append(delivery.is_followed)
    asyncio.run(driver.turn())
    asyncio.run(driver.turn())
    assert followed == [False, False]


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


@pytest.mark.parametrize("next_rebalance", ["none", "partitions-revoked", "partitions-assigned"])
def test_standbys_read_nothing_that_faust_would_throw_away(next_rebalance: str) -> None:
    async def story() -> None:
        driver = Driver(tables=(0, 1), standbys=[1])
        assert (await driver.fetch()).changelogs == {TP("table", 0)}, "Faust will empty its queues"
        if next_rebalance == "partitions-revoked":
            driver.revoke()
        elif next_rebalance == "partitions-assigned":
            driver.recovery_begins()
        await driver.go_live()
        rest = {TP("table", 1)} if next_rebalance == "none" else set()
        assert (await driver.fetch()).changelogs == {TP("table", 0)} | rest

    asyncio.run(story())


def test_a_poll_ends_when_faust_resumes_a_changelog() -> None:
    async def story() -> None:
        driver = Driver(order_of(0))
        driver.resume(0)
        assert driver.woken == 1
        await driver.turn()
        assert driver.fetches[-1].changelogs == {TP("table", 0)}

    asyncio.run(story())


def test_going_live_twice_in_one_assignment_hands_out_nothing_in_between() -> None:
    """Faust resumes for a rebalance although the next one has begun, and again when that is over."""

    async def story() -> None:
        order = order_of(0)
        order.add("topic", columns(0, 1))
        driver = Driver(order, assigned=1)
        driver.on_commit = driver.turn
        await driver.go_live()
        assert driver.delivered == [], "what is committed is what was processed, and nothing is added"
        assert driver.fetches[-1].wanted == {}
        live = ["commit going live again", "0 at 5", "0 live"]
        assert driver.seen == live
        driver.revoke()  # the next rebalance goes live
        await driver.go_live()
        assert driver.seen == live

    asyncio.run(story())


def test_a_partition_without_a_leader_waits_and_the_others_go_live() -> None:
    driver = Driver(assigned=3)
    driver.away.add(1)
    asyncio.run(driver.bring_to_life())
    said = driver.seen.index
    assert said("1 waits: topic-1: no leader is known") < said("1 live")
    assert [said(f"{number} at 5") < said(f"{number} live") for number in range(3)] == [True] * 3
    assert max(said("0 live"), said("2 live")) < said("1 live")
    assert len(driver.seen) == 7


def test_the_logs_are_looked_at_before_anything_is_fetched_and_again_only_where_something_failed() -> None:
    driver = Driver(assigned=3)
    asyncio.run(driver.bring_to_life())
    assert driver.asked == [[0, 1, 2]]

    driver = Driver(assigned=3)
    attempts: list[int] = []

    async def restore(partition: int, first: dict[str, int]) -> dict[str, int]:
        attempts.append(partition)
        if attempts == [0]:
            message = "a transaction is open"
            raise NotYetError(message)
        return {"topic": 5}

    driver.restore = restore
    asyncio.run(driver.bring_to_life())
    assert driver.asked == [[0, 1, 2], [0]]


def test_a_restore_that_hangs_holds_up_no_other_partition() -> None:
    driver, others = Driver(assigned=4), asyncio.Event()

    async def restore(partition: int, first: dict[str, int]) -> dict[str, int]:
        if partition == 0:
            await others.wait()
        return {"topic": 5}

    def live(partition: int) -> None:
        driver.seen.append(f"{partition} live")
        if sum("live" in said for said in driver.seen) == 3:
            others.set()

    driver.restore, driver.live = restore, live
    asyncio.run(driver.bring_to_life())
    assert driver.seen[-1] == "0 live"


def test_partitions_whose_state_is_here_come_first() -> None:
    driver = Driver(assigned=4)
    driver.here = {1, 3}
    asyncio.run(driver.bring_to_life())
    live = [said for said in driver.seen if said.endswith("live")]
    assert sorted(live[:2]) == ["1 live", "3 live"]
    assert driver.aborts == [True]


def test_who_keeps_its_partitions_is_nobodys_heir() -> None:
    driver = Driver(assigned=2)
    driver.here = {0, 1}
    asyncio.run(driver.bring_to_life())
    assert driver.aborts == [False]


def test_what_fails_for_good_ends_the_others_too() -> None:
    driver = Driver(assigned=3)
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

    driver.restore = restore
    with pytest.raises(PermissionError):
        asyncio.run(driver.bring_to_life())
    assert 0 in ended
    assert not driver.seen


def test_a_worker_that_is_given_nothing_looks_who_is_in_the_group() -> None:
    driver = Driver(assigned=0)
    asyncio.run(driver.bring_to_life())
    assert driver.seen == ["looked who is in the group"]


def test_only_a_log_that_reaches_our_position_is_read() -> None:
    driver = Driver(assigned=3)
    driver.logs = {0: (7, 9), 1: (0, 4)}
    asyncio.run(driver.bring_to_life())
    assert driver.seen == ["0 lost 5 of 7-9", "0 at 7", "0 live", "1 lost 5 of 0-4", "2 at 5", "2 live"]


def test_a_log_that_grew_while_its_partition_was_restored_is_looked_at_again() -> None:
    driver = Driver(assigned=1)
    driver.logs = {0: (0, 4)}

    async def restore(partition: int, first: dict[str, int]) -> dict[str, int]:
        driver.logs[0] = (0, 5)
        return {"topic": 5}

    driver.restore = restore
    asyncio.run(driver.bring_to_life())
    assert driver.seen == ["0 at 5", "0 live"]


def test_a_changelog_that_was_trimmed_is_read_on_and_one_made_anew_says_what_to_do(
    caplog: pytest.LogCaptureFixture,
) -> None:
    driver = Driver(assigned=3)
    driver.logs = {0: (7, 9), 1: (0, 4), 2: (0, 9)}
    asyncio.run(driver.changelogs_are_out_of_range({TP("topic", 0): 5, TP("topic", 2): 5}))
    assert driver.seen == ["0 at 7", "2 at 5"]
    assert "topic topic partition 0: offsets 5 to 6 were deleted before they were read" in caplog.text
    told = (
        r"topic topic partition 1 has offsets 0 to 4, .* read it up to 5: .* delete /state/w/topics-grove\."
    )
    with pytest.raises(ChangelogError, match=told):
        asyncio.run(driver.changelogs_are_out_of_range({TP("topic", 1): 5}))
    driver.away.add(0)
    asyncio.run(driver.changelogs_are_out_of_range({TP("topic", 0): 5}))
    assert "looked at again: topic-0: no leader is known" in caplog.text
    assert len(driver.seen) == 2


def test_a_partition_that_waits_for_a_schema_lets_the_others_go_on_and_costs_no_turns() -> None:
    orders = [order_of(partition) for partition in (0, 1)]
    by_schema = RecordSpans.of([0], [0], [b"k"], [framed(1, b"{}")], [()])
    orders[0].add("topic", FetchedColumns(by_schema, 1, 1))
    orders[1].add("topic", columns(0))
    driver = Driver(*orders)
    with RegistryEndpoint(schemas__ids__1=failed(503, 50301)) as endpoint:
        access = registry_access({"schema.registry.url": endpoint.url})
        assert access is not None
        schemas, found = KnownSchemas(Registry(access), lambda _: None), threading.Event()
        schemas.on_result(found.set)
        driver.read_by(schemas)
        asyncio.run(driver.turn())
        asyncio.run(driver.turn())
        assert driver.delivered == [1]
        assert driver.fetches[-1].timeout_s > 0, "the driver waits for records, and does not spin"
        endpoint.answers["/schemas/ids/1"] = answered(schema="{}", schemaType="JSON")
        assert found.wait(60)
        asyncio.run(driver.turn())
        assert driver.delivered == [1, 0]
