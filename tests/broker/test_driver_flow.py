"""The driver on a real broker: every record once and in order, and the lag reaches 0."""

from pathlib import Path

import pytest

from tests.broker.workers import PATIENCE, Installation, ms_ago
from tests.conftest import Broker

pytestmark = pytest.mark.broker


def test_every_record_of_every_topic_comes_out_once_in_order(broker: Broker, tmp_path: Path) -> None:
    place = Installation(broker.bootstrap_servers, "flow.", 4, tmp_path)
    # so well compressed that one fetch brings more records than are taken at once
    producer = place.producer(**{"compression.type": "lz4"})
    n = 60_000
    start = ms_ago(n / 1000)
    for i in range(n):
        topic = place.names.labels if i % 4 == 3 else place.names.instances
        producer.produce(topic, str(i).encode(), b"key", i % 3, timestamp=start + i)
    assert producer.flush(PATIENCE) == 0
    with place.worker("w") as worker:
        worker.wait_until_ready()
        place.wait_for_lag_0(alive=[worker])
        assert worker.metric("grove_sought_back_total") == 0
        assert worker.terminate() == 0
    echoes = place.read(place.names.predictions)
    assert sorted(int(echo["value"]) for echo in echoes) == list(range(n))
    for partition in range(4):
        here = [echo for echo in echoes if echo["partition"] == partition]
        assert [echo["n"] for echo in here] == list(range(1, len(here) + 1))
        for source in ("instances", "labels"):
            offsets = [echo["offset"] for echo in here if echo["source"] == source]
            assert offsets == list(range(len(offsets)))


def test_a_second_start_goes_on_where_the_first_ended(broker: Broker, tmp_path: Path) -> None:
    place = Installation(broker.bootstrap_servers, "again.", 2, tmp_path)
    producer = place.producer()
    for round_ in range(2):
        for i in range(100):
            producer.produce(place.names.instances, f"{round_}-{i}".encode(), b"key", i % 2)
        assert producer.flush(PATIENCE) == 0
        with place.worker("w") as worker:
            worker.wait_until_ready()
            place.wait_for_lag_0(alive=[worker])
            assert worker.terminate() == 0
    values = [echo["value"] for echo in place.read(place.names.predictions)]
    assert sorted(values) == sorted(f"{round_}-{i}" for round_ in range(2) for i in range(100))
