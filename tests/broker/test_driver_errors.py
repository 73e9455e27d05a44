"""A bug of ours on a record: its partition stops, the others go on, and the operator is told where."""

from pathlib import Path

import pytest

from tests.broker.workers import PATIENCE, UNHURRIED, Installation, wait_until
from tests.conftest import Broker

pytestmark = pytest.mark.broker

GROVE = "streamapp worker"  # the real one


def test_a_poisoned_record_stops_its_partition_and_no_other(broker: Broker, tmp_path: Path) -> None:
    place = Installation(broker.bootstrap_servers, "poison.", 2, tmp_path)
    producer = place.producer()
    with place.worker("w") as worker:
        worker.wait_until_ready()
        for i in range(5):
            producer.produce(place.names.instances, f"before-{i}".encode(), b"model-a", 0)
        assert producer.flush(PATIENCE) == 0
        place.wait_for_lag_0(alive=[worker])
        producer.produce(place.names.instances, b"poison", b"model-b", 0)
        producer.produce(place.names.instances, b"behind", b"model-a", 0)
        assert producer.flush(PATIENCE) == 0
        wait_until(lambda: worker.page("/readyz")[0] == 503, PATIENCE, lambda: worker.log)
        producer.produce(place.names.instances, b"elsewhere", b"model-c", 1)
        assert producer.flush(PATIENCE) == 0
        wait_until(lambda: len(place.read(place.names.predictions)) == 6, PATIENCE, lambda: worker.log)
        assert "[-]partition-0 failed: stopped" in worker.page("/readyz?verbose")[1]
        assert "[+]partition-1 ok: live" in worker.page("/readyz?verbose")[1]
        assert worker.page("/livez")[0] == 200
        assert worker.metric("grove_partitions_stopped_total") == 1
        wait_until(lambda: place.lag() == 2, PATIENCE, lambda: "what is committed ends before the record")
        assert worker.terminate() == 0
    assert "partition 0 is stopped" in worker.log
    values = [echo["value"] for echo in place.read(place.names.predictions)]
    assert values == [f"before-{i}" for i in range(5)] + ["elsewhere"]


def test_topics_that_are_missing_or_differ_end_the_worker_with_78(broker: Broker, tmp_path: Path) -> None:
    place = Installation(broker.bootstrap_servers, "wrong.", 2, tmp_path, module=GROVE)
    with place.worker("w", GROVE_TOPICS_PREFIX="nobody-made-these.") as worker:
        assert worker.wait() == 78, worker.log
        assert "topic 'nobody-made-these.instances' is missing" in worker.log
    place.grow(place.names.labels, 3)
    with place.worker("w") as worker:
        assert worker.wait() == 78, worker.log
        assert f"topic '{place.names.labels}' has 3 partitions, '{place.names.instances}' has 2" in worker.log


def test_a_second_worker_of_the_same_name_ends_with_78(broker: Broker, tmp_path: Path) -> None:
    place = Installation(broker.bootstrap_servers, "twice.", 2, tmp_path, module=GROVE)
    with place.worker("w") as first:
        first.wait_until_ready()
        with place.worker("w") as second:
            assert second.wait() == 78
            assert f"process {first.pid} holds" in " ".join(second.log.split())
        assert first.terminate() == 0


def test_a_second_signal_ends_the_worker_at_once(broker: Broker, tmp_path: Path) -> None:
    place = Installation(broker.bootstrap_servers, "forced.", 2, tmp_path)
    producer = place.producer()
    with place.worker("w") as worker:
        worker.wait_until_ready()
        producer.produce(place.names.instances, b"sleep 600", b"key", 0)
        assert producer.flush(PATIENCE) == 0
        wait_until(lambda: "asleep" in worker.log, PATIENCE, lambda: worker.log)
        worker.signal()
        wait_until(lambda: "SIGTERM: finishing the run" in worker.log, PATIENCE, lambda: worker.log)
        assert worker.page("/livez")[0] == 200, "the pages have a thread of their own"
        worker.signal()
        assert worker.wait() == 1


def test_an_output_that_cannot_be_delivered_ends_the_worker_and_nothing_is_committed_past_it(
    broker: Broker, tmp_path: Path
) -> None:
    place = Installation(broker.bootstrap_servers, "refused.", 2, tmp_path, module=GROVE)
    producer = place.producer()
    with place.worker("w") as worker:
        worker.wait_until_ready()
        place.configure(place.names.predictions, {"max.message.bytes": "100"})  # it does not know of that
        for i in range(50):
            producer.produce(place.names.instances, b'{"features":{"a":1},"label":"x"}', b"key-%d" % i, i % 2)
        assert producer.flush(PATIENCE) == 0
        assert worker.wait() == 1
    assert "nothing can be committed any more" in worker.log
    assert place.names.predictions in worker.log, "which topic refused it"
    assert place.lag() == 50
    assert place.read(place.names.predictions) == []
    with place.worker("w", fresh=False, **UNHURRIED) as worker:  # now it knows
        worker.wait_until_ready()
        place.wait_for_lag_0(alive=[worker])
        assert worker.metric_of("grove_dlq_records_total", reason="output-too-large") == 50
        assert worker.terminate() == 0
