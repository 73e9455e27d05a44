"""Outputs while a commit is under way, or while the producer has no room: sent, held, waited for."""

import asyncio

import pytest

from streamapp.worker.journal.entry import Step
from tests.unit.streamapp.settled import settled
from tests.unit.streamapp.worker.processing.rig import Worker, hold, records, run


def test_at_least_once_a_few_outputs_pass_a_commit_and_the_others_wait_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hold(monkeypatch, passed_records=1)

    async def story(w: Worker) -> None:
        await w.assign()
        await w.deliver(0)
        await w.deliver(1)
        await w.begin_commit()
        await w.deliver(2)  # one record may pass
        await w.deliver(3)
        await w.deliver(4)
        assert w.outputs.sent == [0, 1, 2]
        assert w.outputs.tasks[0] == [0, 1, 2, 3, 4], "computing goes on"
        w.answer_flush()
        await w.commit("the rest")
        assert w.outputs.sent == [0, 1, 2, 3, 4]
        assert w.offsets == {("instances", 0): 5}

    run(story, exactly_once=False)


def test_exactly_once_holds_back_all_outputs_while_a_transaction_ends() -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        await w.deliver(0)
        await w.deliver(1)
        await w.begin_commit()
        await w.deliver(2)
        await w.deliver(3)
        assert w.outputs.sent == [0, 1]
        w.answer_flush()
        await w.commit("the rest")
        assert w.kafka.seen == [0, 1, 2, 3]
        assert w.outputs.handed == [1, 1, 2], "what was held goes in one call"
        steps = [entry.steps for entry in w.kafka.entries(0)]
        assert steps == [(Step("instances", 2),), (Step("instances", 4),)]

    run(story)


def test_while_the_producer_has_no_room_the_loop_goes_on_and_no_run_is_processed() -> None:
    async def story(w: Worker) -> None:
        await w.assign(0, 1)
        w.outputs.fill()
        first = asyncio.ensure_future(w.deliver(0))
        second = asyncio.ensure_future(w.deliver(0, partition=1))
        await w.until(lambda: w.outputs.draining)
        await settled()
        assert w.outputs.sent == [0]
        assert not first.done(), "the driver waits: it is the back-pressure"
        w.outputs.room.set()
        await asyncio.gather(first, second)
        assert w.outputs.sent == [0, 0]
        await w.commit()
        assert w.offsets == {("instances", 0): 1, ("instances", 1): 1}

    run(story, exactly_once=False)


def test_gathered_outputs_wait_for_room_before_the_driver_fetches_more() -> None:
    async def story(w: Worker) -> None:
        await w.assign(0, 1)
        w.outputs.fill()
        delivery = asyncio.ensure_future(w.deliver_runs(records(0, 0), records(1, 0)))
        await w.until(lambda: delivery.done() or w.outputs.draining)
        assert w.outputs.draining
        await settled()
        assert not delivery.done()
        w.outputs.room.set()
        await delivery
        await w.commit()
        assert w.offsets == {("instances", 0): 1, ("instances", 1): 1}

    run(story, exactly_once=False)


def test_the_outputs_of_what_is_held_count_too(monkeypatch: pytest.MonkeyPatch) -> None:
    hold(monkeypatch, passed_records=0, held_bytes=150)

    async def story(w: Worker) -> None:
        await w.assign()
        w.outputs.output_bytes = 100
        await w.deliver(0)
        await w.deliver(1)
        await w.begin_commit()
        await w.deliver(2)
        third = asyncio.ensure_future(w.deliver(3))
        await settled()
        assert not third.done(), "two outputs of 100 bytes each are held"
        w.answer_flush()
        await third
        assert w.outputs.sent == [0, 1, 2, 3]

    run(story, exactly_once=False)


def test_what_is_held_during_a_flush_is_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    hold(monkeypatch, passed_records=0, held_bytes=100)

    async def story(w: Worker) -> None:
        await w.assign()
        await w.deliver(0)
        await w.begin_commit()
        await w.deliver(1, values=(bytes(100),))
        full = asyncio.ensure_future(w.deliver(2))
        await settled()
        assert not full.done(), "it waits until the flush is over"
        w.answer_flush()
        await full
        await w.commit("the rest")
        assert w.outputs.sent == [0, 1, 2]

    run(story)
