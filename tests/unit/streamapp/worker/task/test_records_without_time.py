"""Records whose timestamp is Kafka's -1, "none": what waits for a label goes on waiting."""

from __future__ import annotations

import pytest

from streamapp.worker.task.task import Task
from tests.topology.partition import ALWAYS, NOW, PARTITION, Partition, config, instance, label

NONE = -1 - NOW  # `at` of a record without a time
TIMES = [
    [0, NONE, 1],
    [NONE, 0, 1],
    [NONE, NONE, 0, 1, NONE],
    [0, NONE],
    [NONE, NONE],
]


@pytest.mark.parametrize("times", TIMES)
@pytest.mark.parametrize("one_run", [True, False])
def test_labels_of_all_are_learned(times: list[int], one_run: bool) -> None:
    given = config(ALWAYS)
    partition = Partition(given)
    records = [instance({"id": f"i{n}", "features": {"x": float(n)}}, at=at) for n, at in enumerate(times)]
    for run in [records] if one_run else [[record] for record in records]:
        partition.feed(*run)
    labels = [label({"id": f"i{n}", "label": "yes"}, at=max(times)) for n in range(len(times))]
    partition.feed(*labels)
    assert partition.counts["labels.learned"] == len(times), partition.counts
    again = Task.from_units(PARTITION, given, None, list(partition.task.cut().units()))
    assert again.digest() == partition.task.digest()


@pytest.mark.parametrize("times", TIMES)
def test_the_clock_is_the_same_in_whatever_runs_they_come(times: list[int]) -> None:
    whole, single = Partition(config(ALWAYS)), Partition(config(ALWAYS))
    records = [instance({"id": f"i{n}", "features": {"x": 1.0}}, at=at) for n, at in enumerate(times)]
    whole.feed(*records)
    for record in records:
        single.feed(record)
    assert whole.task.clock == single.task.clock
    assert whole.task.digest() == single.task.digest()


def test_a_label_before_its_instance_waits_for_it_too() -> None:
    partition = Partition(config(ALWAYS))
    partition.labels({"id": "i0", "label": "yes"}, at=NONE)
    partition.instances({"id": "i0", "features": {"x": 1.0}}, at=0)
    assert partition.counts["labels.learned"] == 1
