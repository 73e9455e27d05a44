"""Commits: all producers get the same records, and turns are summed up by commit."""

from __future__ import annotations

import pytest

from benchmarks.rig.commits import Load
from benchmarks.transactions import Turn, summary
from topics.definitions import TopicNames


@pytest.mark.parametrize(("partitions", "outputs", "per_partition"), [(8, 480, 60), (64, 480, 8), (8, 3, 1)])
def test_each_partition_has_the_same_number_of_answers(
    partitions: int, outputs: int, per_partition: int
) -> None:
    load = Load(TopicNames("t."), partitions, outputs)
    expected = [partition for partition in range(partitions) for _ in range(per_partition)]
    assert load.places.tolist() == expected
    assert len(load.values) == len(load.keys) == len(expected)
    assert len(load.journal) == partitions


def test_columns_hold_the_records_of_the_lists() -> None:
    load = Load(TopicNames("t."), 4, 80)
    values, keys = load.spans
    assert list(values) == load.values
    assert list(keys) == load.keys
    assert len(set(load.values)) == len(load.values)


def test_percentiles_are_of_all_commits_and_cpu_is_the_median_turn() -> None:
    def turn(whole: list[float], cpu_ms: float) -> Turn:
        part = [ms / 2 for ms in whole]
        return Turn({"all": whole, "offsets": part, "flush": part, "end": [1.0] * len(whole)}, cpu_ms)

    found = summary([turn([1.0, 2.0], 7.0), turn([3.0, 4.0], 1.0), turn([5.0], 2.0)])
    assert found == {
        "commits": 5,
        "p50": 3.0,
        "p90": 4.6,
        "p99": 5.0,
        "mean": 3.0,
        "offsets": 1.5,
        "flush": 1.5,
        "end": 1.0,
        "cpu_ms": 2.0,
    }
