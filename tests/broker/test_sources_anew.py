"""Source topics that are made anew, groups whose offsets are gone: nothing is guessed; the ways out."""

import signal
from pathlib import Path

import orjson
import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from streamapp.cli.main import main
from streamapp.worker.task.sources import source_topics
from tests.broker.workers import PATIENCE, Installation, WorkerProcess, wait_until
from tests.conftest import Broker
from topics.clients import admin

pytestmark = pytest.mark.broker


def load(place: Installation, first: int, n: int) -> None:
    """Send instances of one model to partition 0."""
    producer = place.producer()
    for number in range(first, first + n):
        document = {"id": str(number), "features": {"a": number % 7}, "label": "xy"[number % 2]}
        producer.produce(place.names.instances, orjson.dumps(document), b"model", 0)
    assert producer.flush(PATIENCE) == 0


def wait_until_stopped(worker: WorkerProcess, *says: str) -> None:
    """Partition 0 is, the other one is not."""

    def stopped() -> bool:
        assert worker.code is None, worker.log
        lines = worker.page("/readyz?verbose")[1].splitlines()
        here = [line for line in lines if "partition-0 failed: stopped" in line]
        return any("partition-1 ok: live" in line for line in lines) and bool(here)

    wait_until(stopped, PATIENCE, lambda: worker.log)
    for text in says:
        assert text in worker.log


def drain(worker: WorkerProcess) -> None:
    """End it, and let it leave the group."""
    worker.signal(signal.SIGUSR2)
    assert worker.wait() == 0, worker.log


def models(place: Installation, command: str) -> list[str]:
    options = ["-b", place.servers, "--topics-prefix", place.prefix]
    return ["models", command, "-p", "0", "--yes", *options, "--set", f"application.id={place.group}"]


def versions(place: Installation) -> list[tuple[str, int]]:
    return [(answer["id"], answer["version"]) for answer in place.read(place.names.predictions)]


def numbered(first: int, n: int, version: int) -> list[tuple[str, int]]:
    return [(str(first + i), version + i) for i in range(n)]


def test_a_source_made_anew_stops_its_partition_and_a_reset_begins_with_its_first_record(
    broker: Broker, tmp_path: Path
) -> None:
    place = Installation(broker.bootstrap_servers, "anew.", 2, tmp_path, module="streamapp worker")
    client = AdminClient({"bootstrap.servers": place.servers})
    load(place, 0, 20)
    with place.worker("w") as worker:
        worker.wait_until_ready()
        place.wait_for_lag_0(alive=[worker])
        drain(worker)
        place.delete(place.names.instances)
        wait_until(lambda: place.names.instances not in client.list_topics().topics, PATIENCE, str)
        admin.create({"bootstrap.servers": place.servers}, place.names, place.partitions, 1, PATIENCE)
        load(place, 100, 50)  # it reaches further than what was processed
        worker.start()
        wait_until_stopped(worker, f"so {place.names.instances} was created again", "'grove models reset")
        drain(worker)
        assert main(models(place, "reset")) == 0
        worker.start()
        worker.wait_until_ready()
        place.wait_for_lag_0(alive=[worker])
        assert versions(place) == numbered(0, 20, 0) + numbered(100, 50, 0)
        drain(worker)
    assert all("topic-id=" in note for note in metadata(place))


def metadata(place: Installation) -> list[str]:
    """What is noted with the group's offsets of partition 0."""
    consumer = Consumer({"bootstrap.servers": place.servers, "group.id": place.group})
    asked = [TopicPartition(topic, 0) for topic in source_topics(place.names).values()]
    positions = [position for position in consumer.committed(asked, timeout=PATIENCE) if position.offset >= 0]
    consumer.close()
    assert {position.topic for position in positions} >= {place.names.instances}
    return [position.metadata or "" for position in positions]


def test_offsets_that_are_gone_are_taken_from_the_journal_by_a_restore(
    broker: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = Installation(broker.bootstrap_servers, "expired.", 2, tmp_path, module="streamapp worker")
    load(place, 0, 20)
    with place.worker("w") as worker:
        worker.wait_until_ready()
        place.wait_for_lag_0(alive=[worker])
        drain(worker)
        client = AdminClient({"bootstrap.servers": place.servers})
        for done in client.delete_consumer_groups([place.group]).values():
            done.result(PATIENCE)
        worker.start()
        wait_until_stopped(worker, "has no offsets, the journal ends at controls 0, instances 20, labels 0")
        drain(worker)
        assert main(models(place, "restore")) == 0
        assert (
            "partition 0 goes on where it stood, at controls 0, instances 20, labels 0"
            in capsys.readouterr().out
        )
        worker.start()
        worker.wait_until_ready()
        load(place, 20, 5)
        place.wait_for_lag_0(alive=[worker])
        assert versions(place) == numbered(0, 25, 0), "nothing is learned twice, nothing is given up"
        drain(worker)
