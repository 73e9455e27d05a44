"""Positions without records: markers, what retention took, and logs that are not ours any more."""

import pytest

from streamapp.worker.journal.entry import Step
from tests.unit.streamapp.worker.processing.rig import GUARANTEES, Worker, run

LOST = "grove_records_lost_total"


@GUARANTEES
def test_markers_after_the_last_record_are_committed_too(exactly_once: bool) -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        await w.deliver(0, 1)
        w.markers_up_to(4)
        assert w.outputs.tasks[0].advanced == {"instances": 4}, "the task stands where the journal does"
        await w.commit()
        assert w.offsets == {("instances", 0): 4}
        assert w.metric(LOST, topic="instances") == 0
        w.markers_up_to(6)
        await w.commit()
        assert w.kafka.entries(0)[-1].steps == (Step("instances", 6, count=0),), "no record is left out"

    run(story, exactly_once)


def test_a_log_that_ends_before_our_position_stops_its_partition_and_nothing_is_guessed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def story(w: Worker) -> None:
        await w.assign(0, 1)
        await w.deliver(0, 1)
        assert w.position_is_lost(2, first=0, end=1) is None
        assert w.position_is_lost(2, first=0, end=1) is None
        await w.deliver(2)
        await w.deliver(0, partition=1)
        await w.commit()
        assert w.offsets == {("instances", 0): 2, ("instances", 1): 1}
        assert (w.group.dropped, list(w.stopped)) == ([0], [0])
        assert not w.is_ready
        assert w.metric("grove_partitions_stopped_total") == 1, "said once"
        assert w.metric(LOST, topic="instances") == 0

    run(story)
    assert (
        "partition 0 is stopped, all others go on: topic instances has offsets 0 to 1, but records up to 2 "
        "were processed: it was created again, or truncated; stop the workers, then 'grove models restore "
    ) in caplog.text


@GUARANTEES
def test_what_retention_took_is_lost_counted_and_noted_in_the_journal(exactly_once: bool) -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        await w.deliver(0, 1)
        assert w.position_is_lost(2, first=7, end=9) == 7
        await w.deliver(7)
        await w.commit()
        assert w.kafka.entries(0)[0].steps == (
            Step("instances", 2),
            Step("instances", 7, ((2, 7),)),
            Step("instances", 8),
        )
        assert w.offsets == {("instances", 0): 8}
        assert w.metric(LOST, topic="instances") == 5
        assert w.statuses == {0: "live"}

    run(story, exactly_once)
