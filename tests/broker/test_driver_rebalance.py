"""Workers come, go and die while records flow; the broker goes away. Nothing is lost, the order of a
partition stays.
"""

import itertools
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from streamapp.embedded import EmbeddedBroker
from tests.broker.workers import PATIENCE, Installation, wait_until
from tests.conftest import Broker

pytestmark = pytest.mark.broker


class Load:
    """Numbered records on both topics of every partition, from a thread, until stopped."""

    def __init__(self, place: Installation, rate: int) -> None:
        self._place, self._rate = place, rate
        self._producer: Producer = place.producer(**{"message.timeout.ms": 120_000})
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.sent = 0

    def _run(self) -> None:
        names = self._place.names
        for i in itertools.count():
            topic = names.labels if i % 4 == 3 else names.instances
            self._producer.produce(topic, str(i).encode(), b"key", i // 4 % self._place.partitions)
            self.sent = i + 1
            if i % 50 == 49:
                self._producer.poll(0)
                if self._stop.wait(50 / self._rate):
                    return

    @contextmanager
    def flowing(self) -> Iterator[None]:
        self._thread.start()
        try:
            yield
        finally:
            self._stop.set()
            self._thread.join()
            assert self._producer.flush(60) == 0

    def wait_for(self, more: int) -> None:
        """Return when `more` records were sent from now on."""
        goal = self.sent + more
        wait_until(lambda: self.sent >= goal, PATIENCE, lambda: f"{self.sent} of {goal} records sent")


def check(place: Installation, sent: int, *, once: bool) -> None:
    """Nothing is missing, and the first answers of a topic partition are in offset order."""
    echoes = place.read(place.names.predictions)
    values = [int(echo["value"]) for echo in echoes]
    assert set(values) == set(range(sent)), f"{sent - len(set(values))} records were lost"
    if once:
        assert len(values) == sent, f"{len(values) - sent} answers are doubled"
    newest: dict[Any, int] = defaultdict(lambda: -1)
    for echo in echoes:
        source = (echo["partition"], echo["source"])
        assert echo["offset"] <= newest[source] + 1, "a gap was passed"
        newest[source] = max(newest[source], echo["offset"])


def test_two_workers_and_one_leaves(broker: Broker, tmp_path: Path) -> None:
    session = {"GROVE_KAFKA_SESSION_TIMEOUT_MS": "6000"}
    place = Installation(broker.bootstrap_servers, "leave.", 4, tmp_path, settings=session)
    load = Load(place, 2000)
    with place.worker("a") as first, place.worker("b") as second:
        first.wait_until_ready()
        with load.flowing():
            second.wait_until_ready()
            wait_until(
                lambda: all(
                    worker.page("/readyz?verbose")[1].count("partition-") == 2 for worker in (first, second)
                ),
                PATIENCE,
                lambda: first.log + second.log,
            )
            load.wait_for(1000)
            assert second.terminate() == 0
            # a static member stays one until its session is over; then the other takes over
            wait_until(
                lambda: first.page("/readyz?verbose")[1].count(": live") == 4, PATIENCE, lambda: first.log
            )
            load.wait_for(1000)
        place.wait_for_lag_0(alive=[first])
        assert first.terminate() == 0
    check(place, load.sent, once=True)  # whoever leaves in good order commits before
    assert first.log.count("keeps its task") >= 2, "what comes back at a rebalance keeps its task"


def test_a_worker_that_is_killed(broker: Broker, tmp_path: Path) -> None:
    place = Installation(broker.bootstrap_servers, "kill.", 4, tmp_path)
    load = Load(place, 2000)
    with place.worker("a") as first, place.worker("b") as second:
        first.wait_until_ready()
        second.wait_until_ready()
        with load.flowing():
            load.wait_for(3000)
            second.kill()
            second.start()  # under its name: the group does not even rebalance
            load.wait_for(3000)
        place.wait_for_lag_0(alive=[first, second])
        assert first.terminate() == 0
        assert second.terminate() == 0
    check(place, load.sent, once=False)


def test_sigterm_in_mid_stream_loses_and_doubles_nothing(broker: Broker, tmp_path: Path) -> None:
    place = Installation(broker.bootstrap_servers, "term.", 2, tmp_path)
    load = Load(place, 4000)
    with place.worker("w") as worker:
        worker.wait_until_ready()
        with load.flowing():
            for _ in range(3):
                load.wait_for(2000)
                assert worker.terminate() == 0
                worker.start()
                worker.wait_until_ready()
        place.wait_for_lag_0(alive=[worker])
        assert worker.terminate() == 0
    check(place, load.sent, once=True)


def test_a_broker_that_is_gone_for_20_seconds(private_broker: EmbeddedBroker, tmp_path: Path) -> None:
    place = Installation(private_broker.bootstrap_servers, "outage.", 2, tmp_path)
    load = Load(place, 500)
    with place.worker("w") as worker:
        worker.wait_until_ready()
        with load.flowing():
            load.wait_for(1000)
            private_broker.stop()
            assert not threading.Event().wait(20), "the outage itself takes its time"
            assert worker.page("/livez")[0] == 200, "a restart would not bring the broker back"
            private_broker.start()
            load.wait_for(500)
        place.wait_for_lag_0(alive=[worker])
        assert worker.terminate() == 0
    check(place, load.sent, once=False)


def test_a_worker_can_be_stopped_while_the_broker_is_gone(
    private_broker: EmbeddedBroker, tmp_path: Path
) -> None:
    place = Installation(private_broker.bootstrap_servers, "stop.", 2, tmp_path)
    producer = place.producer()
    with place.worker("w", GROVE_COMMIT_INTERVAL_MS="60000") as worker:
        worker.wait_until_ready()
        producer.produce(place.names.instances, b"1", b"key", 0)
        assert producer.flush(60) == 0
        wait_until(lambda: len(place.read(place.names.predictions)) == 1, PATIENCE, lambda: worker.log)
        private_broker.stop()
        assert worker.terminate() == 0
    assert "not everything could be committed within 15 s" in worker.log


def test_after_an_outage_of_the_worker_both_topics_come_in_time_order(broker: Broker, tmp_path: Path) -> None:
    place = Installation(broker.bootstrap_servers, "behind.", 2, tmp_path)
    producer = place.producer()
    minutes = 10
    for ms in range(0, minutes * 60_000, 20):  # an instance every 20 ms, its label 200 ms later
        partition = ms // 20 % 2
        producer.produce(
            place.names.instances, f"i{ms}".encode(), b"key", partition, timestamp=1_000_000 + ms
        )
        producer.produce(place.names.labels, f"l{ms}".encode(), b"key", partition, timestamp=1_000_200 + ms)
    assert producer.flush(60) == 0
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
