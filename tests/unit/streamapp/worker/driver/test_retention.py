"""Retention that overtakes a worker: records that were fetched before are processed, and come first."""

from __future__ import annotations

from faust.types import TP

from streamapp.worker.journal.entry import Step
from streamapp.worker.task.sources import SOURCES
from streamapp.worker.transport.runs import FetchedColumns
from tests.unit.streamapp.worker.driver.rig import Driver, order_of
from tests.unit.streamapp.worker.processing.rig import GUARANTEES, Worker, run
from topics.columns.spans import RecordSpans

INSTANCES = TP("instances", 0)


@GUARANTEES
def test_retention_that_overtakes_what_waits_loses_nothing_of_it(exactly_once: bool) -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        order = order_of(0, SOURCES)
        fetched = RecordSpans.of(range(4), [0] * 4, [b"k"] * 4, [b"v"] * 4, [()] * 4)
        order.add("instances", FetchedColumns(fetched, position=4, log_end=20))
        driver = Driver(order, manager=w.manager)
        driver.logs[0] = 9, 20
        for _ in range(2):  # a run of what waits, and then the other
            await driver.positions_are_out_of_range(INSTANCES)
            assert "instances" not in [ahead.topic for ahead in order.wanted()], "it would fail again at once"
            waiting = order.next_run(0.0)
            assert waiting is not None
            await w.deliver_runs(waiting)
            await w.commit()
            assert w.offsets == {("instances", 0): waiting.position}
            assert w.metric("grove_records_lost_total", topic="instances") == 0
        assert "instances" in [ahead.topic for ahead in order.wanted()]
        await driver.positions_are_out_of_range(INSTANCES)
        w.kafka.without_record.update(range(4, 9))
        await w.commit()
        assert w.offsets == {("instances", 0): 9}
        assert w.metric("grove_records_lost_total", topic="instances") == 5
        steps = [entry.steps for entry in w.kafka.entries(0)]
        assert steps == [(Step("instances", 2),), (Step("instances", 4),), (Step("instances", 9, ((4, 9),)),)]
        ahead = order.topics["instances"]
        assert (ahead.position, ahead.lag) == (9, 11), "labels do not overtake what is still to be fetched"

    run(story, exactly_once)
