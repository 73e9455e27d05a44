"""The chaos program reads the workers' counters under the names that the workers give them."""

import pytest
from prometheus_client import generate_latest

from benchmarks.chaos.counts import METRICS, parse
from benchmarks.chaos.fleet import ChaosError, wait_while_it_falls
from streamapp.worker.gauges import memory_counts
from streamapp.worker.observability.metrics import Metrics
from streamapp.worker.task.models.eviction.model_memory import ModelMemory


def test_counters_of_a_worker() -> None:
    memory, metrics = ModelMemory(limit=1), Metrics()
    memory.hits, memory.misses, memory.evictions = 7, 5, 3
    metrics.watch(lambda: memory_counts(memory))
    metrics.read_changelog("standby", 11, 1000)
    metrics.read_changelog("active", 13, 1000)
    assert parse(generate_latest(metrics.registry).decode()) == {
        "model_hits": 7,
        "model_reloads": 5,
        "model_evictions": 3,
        "standby_parts_read": 11,
        "active_parts_read": 13,
    }


def test_counters_that_are_not_there_are_0() -> None:
    assert parse("# HELP up Whether it is.\nup 1.0\n") == dict.fromkeys(METRICS, 0)


def test_a_lag_that_falls_is_waited_for_and_one_that_stays_is_not() -> None:
    lags = iter([3, 3, 2, 5, 1, 0])
    assert wait_while_it_falls(lambda: next(lags), 60, str) > 0
    with pytest.raises(ChaosError, match="4 for 0 s: labels wait"):
        wait_while_it_falls(lambda: 4, 0.01, lambda: "labels wait")
