"""The figures of `benchmarks.scaling`: keys, the end of uneven work, fitted costs."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest

from benchmarks.rig.keyed_load import KeyedLoad
from benchmarks.rig.shared_work import SharedWork, WorkerFigures, phases_of, processed_at, seconds_until
from benchmarks.scaling import arguments, fit
from streamapp.tools.sizing.measured_costs import Costs
from streamapp.tools.sizing.worker_load import backlog_rate, record_us, records_per_run
from topics.clients.partitioner import partition_of


def test_keys_follow_the_law_and_lie_where_clients_send_them() -> None:
    load = KeyedLoad.draw(50_000, 100, 8, zipf=1.1)
    harmonic = sum(1.0 / rank**1.1 for rank in range(1, 101))
    assert load.hottest_share == pytest.approx(1.0 / harmonic, rel=0.05)
    assert load.places.tolist() == [partition_of(key, 8) for key in load.keys]
    assert load.by_partition.sum() == 50_000
    uniform = KeyedLoad.draw(50_000, 100, 8, zipf=0.0)
    assert uniform.hottest_share < 0.013
    assert np.bincount(uniform.each_key(3).key).tolist() == [3] * 100


@pytest.mark.parametrize(
    ("words", "share", "commit_ms", "records"),
    [
        ("--json", 0.05, 2_000, 250_000),
        ("--fit", 1.0, 100, 2_000_000),
        ("--fit --share 0.05 --records 9", 0.05, 2_000, 9),
        ("--share 0.5", 0.5, 200, 250_000),
        ("--rebalance --commit-ms 300", 0.05, 300, 250_000),
    ],
)
def test_costs_are_measured_on_a_whole_core_and_groups_on_small_shares(
    words: str, share: float, commit_ms: int, records: int
) -> None:
    flags = arguments(words.split())
    assert (flags.share, flags.commit_ms, flags.records) == (share, commit_ms, records)


def test_keys_can_be_kept_to_some_partitions() -> None:
    load = KeyedLoad.draw(1_000, 50, 64, zipf=0.0, within=8)
    assert (load.by_partition > 0).nonzero()[0].max() < 8
    assert len(set(load.keys)) == 50


def test_small_partitions_are_empty_first() -> None:
    """Three partitions until each has processed 10, two until 20, one for the last 30."""
    phases = phases_of([50, 10, 0, 20], lambda active: 100.0 / active)
    assert phases == [(30, pytest.approx(33.3, abs=0.1)), (20, 50.0), (30, 100.0)]
    assert processed_at(phases, 0.9) == pytest.approx(30)
    assert processed_at(phases, 0.9 + 0.2) == pytest.approx(40)
    assert processed_at(phases, 100.0) == 80


@pytest.mark.parametrize(
    ("workers", "share", "seconds"),
    [
        ([[(100, 10)], [(100, 10)]], 0.95, 9.5),
        (
            [[(100, 10)], [(20, 10)]],
            0.95,
            9.4,
        ),  # the second ends after 2 s; 114 of 120: 2 s · 20 + 7.4 s · 10
        ([[(50, 10), (50, 5)], []], 1.0, 15.0),
        ([[(90, 10)], [(10, 1)]], 1.0, 10.0),
        ([[(90, 10)], [(10, 0)]], 0.95, math.inf),
    ],
)
def test_a_busy_worker_ends_later_than_the_others(
    workers: list[list[tuple[float, float]]], share: float, seconds: float
) -> None:
    assert seconds_until(workers, share) == pytest.approx(seconds)


def work(costs: Costs, records: int, seconds: float, active: int, rounds: float) -> SharedWork:
    """The work of one worker that costs as much as the costs."""
    each = costs.record_us + costs.byte_ns * 0.1 + costs.many_models_us * 0.1
    spent = records * each + seconds * costs.idle_us
    spent += seconds * (costs.commit_us + active * costs.commit_partition_us)  # a commit a second
    spent += rounds * (costs.round_us + active * costs.run_us)
    loads = (records // active,) * active + (0,) * (64 - active)
    worker = WorkerFigures(1_000, records, loads, spent / 1e6, seconds, rounds * active, 400.0)
    return SharedWork(seconds, 100.0, 0.1, (worker,), 0.01, 1.0, 0.0, 0.0)


def test_fitted_costs_are_those_that_the_work_took() -> None:
    true = Costs(record_us=4.0, commit_partition_us=250.0, round_us=7_000.0)
    works = [
        work(true, 200_000, 12.0, 64, 6),
        work(true, 190_000, 10.0, 8, 7),
        work(true, 190_000, 20.0, 1, 80),
    ]
    fitted = fit(Costs(), works)
    assert fitted.record_us == pytest.approx(4.0)
    assert fitted.commit_partition_us == pytest.approx(250.0)
    assert fitted.round_us == pytest.approx(7_000.0)


def test_a_backlog_in_one_partition_is_slower_than_the_same_in_eight() -> None:
    """Each of its runs is a round: 12 ms of records at 3 µs, and one round of 5 ms with one run."""
    costs = Costs(idle_us=0.0, commit_us=0.0, commit_partition_us=0.0, round_us=4_900.0, run_us=100.0)
    assert backlog_rate(costs, 1.0, 1, 3.0, 100, 100) == pytest.approx(1e6 / 3.0 * 12 / 17)
    assert backlog_rate(costs, 1.0, 8, 3.0, 100, 100) == pytest.approx(1e6 / 3.0 * 96 / 101.7)


def test_the_prediction_of_work_that_costs_as_planned_is_its_rate() -> None:
    costs = Costs(record_us=4.0)
    rounds = 100_000 / 8 / records_per_run(100.0, record_us(costs, 100.0, 1_000))
    full = work(costs, 100_000, 1.0, 8, rounds)
    (worker,) = full.workers
    as_fast = SharedWork(1.0, 100.0, worker.cpu_seconds, (worker,), 0.01, 1.0, 0.0, 0.0)
    assert as_fast.predicted_rate(costs, 1_000.0) == pytest.approx(100_000)


@pytest.mark.parametrize("words", [["--workers", "0"], ["--workers", "a"], ["--workers", "65"]])
def test_wrong_numbers_of_workers_are_refused(words: list[str]) -> None:
    command = [sys.executable, "-m", "benchmarks.scaling", *words]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert "--workers" in ended.stderr
