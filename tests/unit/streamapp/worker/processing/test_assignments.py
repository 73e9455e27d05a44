"""Assignments: a partition comes with its state, keeps it or gives it up, and waits where it has to."""

import asyncio
from collections.abc import Callable

import pytest

from streamapp.errors import NotYetError
from streamapp.worker.journal.entry import Skip
from streamapp.worker.restore.restore_progress import RestoreProgress
from streamapp.worker.task.effects.effects import Effects, Evaluated
from tests.positions import at
from tests.unit.streamapp.settled import settled
from tests.unit.streamapp.worker.processing.rig import GUARANTEES, Worker, records, run
from topics.columns.records import EvaluationRecord

RESTORES = "grove_restore_seconds_count"


def test_a_partition_that_comes_back_keeps_its_task_if_it_stands_at_the_committed_offsets() -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        await w.deliver(0, 1)
        await w.revoke()
        task = w.outputs.tasks[0]
        await w.assign()
        assert w.outputs.tasks[0] is task
        assert (task, w.outputs.closed, w.metric(RESTORES)) == ([0, 1], 0, 0)
        await w.deliver(2)
        await w.commit()
        assert w.offsets == {("instances", 0): 3}

    run(story)


def test_a_partition_that_comes_back_is_committed_with_the_ids_that_its_topics_have_now() -> None:
    """A topic may have been made again meanwhile, at the same positions."""

    async def story(w: Worker) -> None:
        await w.assign()
        await w.deliver(0)
        await w.revoke()
        w.kafka.topic_ids = {"instances": "again"}
        await w.assign()
        assert w.metric(RESTORES) == 0
        await w.deliver(1)
        await w.commit()
        ids = [transaction.topic_ids for transaction in w.kafka.transactions]
        assert ids == [{}, {("instances", 0): "again"}]

    run(story)


def test_a_partition_that_was_elsewhere_meanwhile_is_restored() -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        await w.deliver(0, 1)
        await w.revoke()
        w.kafka.another_worker_commits(0, instances=7)
        await w.assign()
        assert (w.outputs.tasks[0], w.outputs.closed) == ([*range(7)], 1)
        assert w.metric("grove_replayed_records_total") == 5
        await w.deliver(7)
        await w.commit()
        assert w.offsets == {("instances", 0): 8}
        assert w.kafka.entries(0)[-1].incarnation == 3

    run(story)


def test_a_partition_whose_last_records_were_not_committed_is_restored() -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        await w.deliver(0)
        await w.commit()
        await w.deliver(1)
        await w.assign()
        assert w.outputs.tasks[0] == [0]
        await w.deliver(1)
        await w.commit()
        assert w.offsets == {("instances", 0): 2}

    run(story)


def test_a_partition_of_which_nothing_was_committed_begins_again_with_a_new_task() -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        await w.deliver(0)
        await w.assign()
        assert w.outputs.tasks[0] == []
        await w.deliver(0)
        await w.commit()
        assert w.outputs.tasks[0] == [0]
        assert w.offsets == {("instances", 0): 1}

    run(story)


def test_a_partition_waits_for_the_transaction_of_another_worker() -> None:
    async def story(w: Worker) -> None:
        w.kafka.unstable = 1
        await w.assigned(0)
        with pytest.raises(NotYetError):
            await w.restore(0)
        assert w.stopped == {}
        await w.bring_to_life(0)
        assert w.statuses == {0: "live"}

    run(story)


def test_a_partition_that_leaves_gives_up_its_task() -> None:
    async def story(w: Worker) -> None:
        await w.assign(0, 1)
        await w.assign(1)
        assert (w.here, w.outputs.closed) == ([1], 1)
        assert w.statuses == {1: "live"}

    run(story)


def test_a_partition_that_leaves_takes_the_figures_of_its_models_along() -> None:
    async def story(w: Worker) -> None:
        await w.assign(0, 1)
        for partition in (0, 1):
            raw = records(partition, 0).raw
            evaluated = Evaluated(0, EvaluationRecord(9, 9, 0.5, 0.75, 0, 0, 0, 0, 1), b"m%d" % partition)
            w.metrics.sent(raw, Effects(evaluations=[evaluated]))
        await w.revoke()
        await w.assigned(1)
        value = w.metrics.registry.get_sample_value
        shown = [value("grove_accuracy_ratio", {"model_key": key}) for key in ("m0", "m1")]
        assert shown == [None, 0.75]

    run(story)


def test_what_an_earlier_member_processed_is_not_committed_before_the_partition_is_restored() -> None:
    async def story(w: Worker) -> None:
        await w.assign(0, 1)
        await w.deliver(0)
        await w.deliver(0, partition=1)
        w.join_again()
        await w.assigned(0, 1)
        await w.bring_to_life(1)
        await w.deliver(0, partition=1)
        w.clock.now += 1
        assert w.tick_due() == 1
        await w.commit("stopping")
        assert w.offsets == {("instances", 1): 1}

    run(story)


def test_a_commit_does_not_touch_a_partition_that_was_restored_meanwhile() -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        await w.deliver(0)
        await w.begin_commit()
        w.kafka.another_worker_commits(0, instances=7)
        assert await w.restore(0) == at(instances=7)
        w.answer_flush()
        await w.commit("the one that is under way")
        w.logs_end({("instances", 0): 9})
        assert w.lags == {("instances", 0): 2}

    run(story)


@GUARANTEES
def test_where_a_partition_begins_at_the_end_is_committed_before_it_lives(exactly_once: bool) -> None:
    async def story(w: Worker) -> None:
        await w.assigned(0)
        assert await w.restore(0, instances=7) == at(instances=7)
        assert w.offsets == {("instances", 0): 7}
        (entry,) = w.kafka.entries(0)
        assert (entry.before, entry.after, entry.steps) == (at(instances=7), at(instances=7), ())
        assert entry.config is not None
        again = Worker(exactly_once, commit_start=True, kafka=w.kafka)  # after a crash; the log has grown
        await again.assigned(0)
        assert await again.restore(0, instances=9) == at(instances=7)

    run(story, exactly_once, commit_start=True)


@GUARANTEES
def test_a_partition_does_not_begin_if_the_commit_before_that_of_its_start_ends_the_worker(
    exactly_once: bool,
) -> None:
    async def story(w: Worker) -> None:
        await w.assigned(0, 1)
        await w.bring_to_life(0, instances=0)
        await w.deliver(0)
        await w.begin_commit()
        starting = asyncio.ensure_future(w.restore(1, instances=5))
        await settled()
        w.answer_flush(RuntimeError("lost"))
        assert await starting is None
        assert isinstance(w.ended, RuntimeError)
        assert ("instances", 1) not in w.offsets

    run(story, exactly_once, commit_start=True)


@GUARANTEES
def test_each_run_has_those_of_its_records_that_are_to_be_skipped(exactly_once: bool) -> None:
    async def story(w: Worker) -> None:
        skips = ("instances", 3), ("labels", 0), ("instances", 4), ("instances", 7)
        w.kafka.skips = tuple(Skip(1, source, offset, "") for source, offset in skips)  # type: ignore[arg-type]
        await w.assign()
        await w.deliver(0, 1, 2)
        assert w.outputs.skipped == []
        await w.deliver(3, 4, 5)
        await w.deliver(0, topic="controls")
        assert w.outputs.skipped == [3, 4]
        await w.deliver(0, topic="labels")
        assert w.outputs.skipped == [3, 4, 0]
        await w.revoke()
        await w.assign()  # comes back with its task, and the journal is not read
        await w.deliver(6, 7, 8)
        assert w.outputs.skipped == [3, 4, 0, 7]

    run(story, exactly_once)


def test_a_partition_that_waits_has_the_reason_in_its_state_and_now_and_then_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")

    async def story(w: Worker) -> None:
        await w.assigned(0, 1)
        for second in range(25):
            w.waits(0, f"no leader at {second}")
            w.waits(1, "a transaction is open")
            w.clock.now += 1
        assert w.statuses == {0: "waits: no leader at 24", 1: "waits: a transaction is open"}

    run(story)
    said = [record.message for record in caplog.records if record.message.startswith("Partition 0")]
    assert said == [f"Partition 0 waits: no leader at {second}" for second in (0, 10, 20)]


def test_how_far_a_restore_is_counts_only_while_it_is_waited_for() -> None:
    async def story(w: Worker) -> None:
        seen: list[str] = []
        say: list[Callable[[str], None]] = []

        def reports(progress: RestoreProgress) -> None:
            say.append(progress.say)
            progress.say("replayed 1 of 2 records")
            seen.append(w.statuses[0])

        w.kafka.while_restoring = reports
        await w.assign()
        assert seen == ["restoring: replayed 1 of 2 records"]
        say[0]("replayed 2 of 2 records")
        assert w.statuses == {0: "live"}
        await w.revoke()
        say[0]("replayed 2 of 2 records")
        assert w.statuses == {}

    run(story)


def test_only_models_of_live_or_stopped_partitions_are_read() -> None:
    """The task of an earlier assignment may be out of date until its positions are compared."""

    async def story(w: Worker) -> None:
        async def read() -> int:
            return await w.manager.between_runs(len)

        await w.assign(0, 1)
        assert await read() == 2
        await w.revoke()
        w.group.membership = None
        assert await read() == 0
        w.join_again()
        await w.assigned(0, 1)
        assert await read() == 0
        await w.bring_to_life(1)
        assert await read() == 1
        await w.deliver(0, partition=1, values=(b"poison",))
        assert list(w.stopped) == [1]
        assert await read() == 1

    run(story)


def test_no_model_is_read_between_an_abort_and_the_next_assignment() -> None:
    async def story(w: Worker) -> None:
        await w.assign(0, 1)
        await w.deliver(0)
        w.lose_membership()
        await w.commit()
        assert w.kafka.aborts == 1
        assert w.here == [1], "nothing of it was undone"
        w.manager.assignments.revoked()
        w.group.membership = None
        assert await w.manager.between_runs(len) == 0

    run(story)


def test_a_disk_that_does_not_answer_holds_up_only_partitions_that_are_restored_from_it() -> None:
    async def story(w: Worker) -> None:
        await w.assign(0)
        await w.deliver(0, 1)
        await w.revoke()
        w.table.lacks = "the disk does not answer"
        await w.assigned(0, 1)
        await w.bring_to_life(0)
        restores = len(w.kafka.restores)
        with pytest.raises(NotYetError, match="the disk does not answer"):
            await w.restore(1)
        assert len(w.kafka.restores) == restores, "no broker is asked"
        await w.deliver(2)
        await w.commit()
        assert w.offsets[("instances", 0)] == 3
        w.table.lacks = ""
        await w.bring_to_life(1)
        assert w.statuses == {0: "live", 1: "live"}

    run(story)
