"""A stop without broker; the order across topics after an outage. While records flow: tests/scenarios."""

from collections import defaultdict
from pathlib import Path

import pytest

from streamapp.embedded import EmbeddedBroker
from tests.broker.workers import PATIENCE, Installation, ms_ago, wait_until
from tests.conftest import Broker

pytestmark = pytest.mark.broker


def test_a_worker_can_be_stopped_while_the_broker_is_gone(
    private_broker: EmbeddedBroker, tmp_path: Path
) -> None:
    place = Installation(private_broker.bootstrap_servers, "stop.", 2, tmp_path)
    producer = place.producer()
    with place.worker("w", GROVE_COMMIT_INTERVAL_MS="60000") as worker:
        worker.wait_until_ready()
        producer.produce(place.names.instances, b"1", b"key", 0)
        assert producer.flush(PATIENCE) == 0
        wait_until(lambda: len(place.read(place.names.predictions)) == 1, PATIENCE, lambda: worker.log)
        private_broker.stop()
        assert worker.terminate() == 0
    assert "uncommitted records will be processed again" in worker.log, worker.log
    assert "committed: stopping" not in worker.log


def test_after_an_outage_of_the_worker_both_topics_come_in_time_order(broker: Broker, tmp_path: Path) -> None:
    place = Installation(broker.bootstrap_servers, "behind.", 2, tmp_path)
    producer = place.producer()
    minutes = 10
    start = ms_ago(minutes * 60 + 1)
    for ms in range(0, minutes * 60_000, 20):  # an instance every 20 ms, its label 200 ms later
        partition = ms // 20 % 2
        producer.produce(place.names.instances, f"i{ms}".encode(), b"key", partition, timestamp=start + ms)
        producer.produce(place.names.labels, f"l{ms}".encode(), b"key", partition, timestamp=start + 200 + ms)
    assert producer.flush(PATIENCE) == 0
    with place.worker("w") as worker:
        worker.wait_until_ready()
        place.wait_for_lag_0(alive=[worker])
        assert worker.terminate() == 0
    newest: dict[int, int] = defaultdict(int)
    answered: set[str] = set()
    for echo in place.read(place.names.predictions):
        assert echo["timestamp"] >= newest[echo["partition"]] - 1000, "further out of time than input.skew.ms"
        newest[echo["partition"]] = max(newest[echo["partition"]], echo["timestamp"])
        if echo["value"][0] == "i":
            answered.add(echo["value"][1:])
        else:
            assert echo["value"][1:] in answered, "a label overtook its instance"
    assert len(answered) == minutes * 60_000 // 20
