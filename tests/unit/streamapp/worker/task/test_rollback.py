"""A task goes back to the beginning of its last run, whichever way the runs before it went."""

from __future__ import annotations

from streamapp.worker.task.error_isolation import process_isolated
from streamapp.worker.task.task import Task, TaskRun
from streamapp.worker.task.task_config import TaskConfig
from topics.columns.raw_records import RawRecords


def records(offset: int) -> RawRecords:
    return RawRecords("grove.instances", 0, [offset], [1_000 + offset], [b"k"], [b"{}"], [()])


def test_the_counts_of_skipped_records_survive_the_failure_of_a_joined_run() -> None:
    task = Task(0, TaskConfig())
    task.checkpoint()
    skipped = TaskRun("instances", records(0), skipped=frozenset({0}))
    process_isolated([(task, skipped)], lambda pairs: [[] for _ in pairs])
    counted = dict(task.counters)
    assert counted == {"instances.dead-letter": 1}
    task.begin_joined(records(1), 1_001, 1_001)
    task.rollback()
    assert dict(task.counters) == counted
    assert task.next["instances"] == 1
