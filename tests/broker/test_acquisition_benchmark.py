"""The benchmark of feature acquisition runs on a broker: every request is timed beside its echoes."""

from __future__ import annotations

import pytest

from benchmarks.acquisition import ALL, TREE
from benchmarks.rig.broker import topics
from benchmarks.rig.purchases import PARTITIONS, measure_purchases
from benchmarks.rig.visible import Cluster
from tests.conftest import Broker

pytestmark = pytest.mark.broker


def test_latency_of_requests_and_predictions_beside_echoes(broker: Broker) -> None:
    cluster = Cluster(broker.bootstrap_servers)
    spec = {"learner": TREE, "query": "never", "acquire": ALL}
    with topics(broker.bootstrap_servers, cluster, PARTITIONS) as names:
        figures = measure_purchases(
            cluster, names, broker.bootstrap_servers, spec, 100, 200, 0.5, "at_least_once"
        )
    assert (figures["records"], figures["requests"]) == (200, 100)
    times = [figures[f"{name}_ms"] for name in ("instance_to_request", "value_to_prediction")]
    times += [figures[f"{name}_to_echo_ms"] for name in ("instance", "value")]
    assert all(0 < percentiles["p50"] <= percentiles["p99"] <= percentiles["most"] for percentiles in times)
