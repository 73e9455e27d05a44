"""A partition is restored in a thread while others are processed: neither notices the other."""

from __future__ import annotations

import sys
import threading
from typing import Any

import pytest

from streamapp.worker.task.models.quota import ModelQuota
from streamapp.worker.task.task import Task
from tests.property.test_task_cuts import SPECS, TTL, assert_same, outcome, story
from tests.property.test_task_rollback import runs_of
from tests.topology.partition import PARTITION, Partition, Record, config

SEEDS = (3, 11, 12)


@pytest.fixture
def hurried() -> Any:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def restored_and_played(records: list[Record], quota: ModelQuota) -> Partition:
    """Return a partition after a story; its second half in a task restored from the units of the first."""
    given = config(SPECS["asks-again"], pending_ttl_ms=TTL, models_max_classes=6)
    partition = Partition(given)
    partition.task = Task(PARTITION, given, quota)
    runs = runs_of(records, 7)
    for run in runs[: len(runs) // 2]:
        partition.feed(*run)
    units = list(partition.task.cut().units())
    partition.task.close()
    counters = partition.task.counters
    partition.task = Task.from_units(PARTITION, given, quota, units)
    partition.task.counters = counters
    for run in runs[len(runs) // 2 :]:
        partition.feed(*run)
    return partition


@pytest.mark.usefixtures("hurried")
def test_tasks_in_several_threads_do_what_they_do_alone() -> None:
    stories = [story(seed, 500) for seed in SEEDS]
    alone = [restored_and_played(records, ModelQuota(100)) for records in stories]
    shared, found = ModelQuota(100), dict[int, Partition]()
    begin = threading.Barrier(len(stories))

    def run(number: int) -> None:
        begin.wait()
        found[number] = restored_and_played(stories[number], shared)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(stories))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, expected in enumerate(alone):
        assert_same(outcome(found[number]), outcome(expected))
        assert found[number].task.digest() == expected.task.digest()
    assert shared.taken == sum(len(partition.task.models.keys) for partition in alone)


@pytest.mark.usefixtures("hurried")
def test_a_quota_counts_every_place_once() -> None:
    quota, taken = ModelQuota(1000), [0] * 4
    begin = threading.Barrier(4)

    def run(number: int) -> None:
        begin.wait()
        for _ in range(5000):
            if quota.take():
                taken[number] += 1
                if taken[number] % 3 == 0:
                    quota.give_back()
                    taken[number] -= 1

    threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert quota.taken == sum(taken) <= 1000
