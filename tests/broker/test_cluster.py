"""Three brokers: one that leads, or that coordinates the group, dies, and answers go on."""

import contextlib
import itertools
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
from confluent_kafka import Consumer, ElectionType, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from streamapp.embedded import EmbeddedCluster
from streamapp.worker.journal.log import JournalLog
from tests.broker.workers import PATIENCE, Installation, wait_until
from topics.clients.consumer_group import members_of
from topics.clients.partitioner import partition_of

pytestmark = [pytest.mark.broker, pytest.mark.nightly]  # three brokers take a minute and a half of the gate

PAUSE_S = 0.02
BROKER_DEFAULT = -1


class Stream:
    """Numbered instances, one after the other, until the block ends; and a reader of their answers."""

    def __init__(self, place: Installation) -> None:
        self._place = place
        self.answers: Counter[int] = Counter()  # by the number of the instance
        properties = {"bootstrap.servers": place.servers, "group.id": "reader", "log_level": 0}
        self._reader = Consumer(properties)
        topic = place.names.predictions
        self._reader.assign([TopicPartition(topic, number, 0) for number in range(place.partitions)])
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="stream")
        self.n = 0

    def _run(self) -> None:
        producer = self._place.producer(**{"delivery.timeout.ms": 1000 * PATIENCE})
        for number in itertools.count():
            value = orjson.dumps({"id": str(number), "features": {"a": number % 7}, "label": str(number % 2)})
            key = f"model-{number % 5}"
            partition = partition_of(key.encode(), self._place.partitions)
            producer.produce(self._place.names.instances, value, key, partition)
            producer.poll(0)
            self.n = number + 1
            if self._ended.wait(PAUSE_S):
                break
        assert producer.flush(PATIENCE) == 0

    def read_until(self, n: int) -> None:
        """Return when more than n answers have been read."""

        def done() -> bool:
            messages = self._reader.consume(1000, 0.1)
            for message in messages:
                if message.error() is None:
                    self.answers[int(orjson.loads(message.value() or b"")["id"])] += 1
            return len(self.answers) > n

        wait_until(done, PATIENCE, lambda: f"{len(self.answers)} answers, not more than {n}")

    def go_on(self) -> None:
        """Return when a record is answered that was written after this call."""
        self.read_until(self.n)

    @contextlib.contextmanager
    def flows(self) -> Iterator[None]:
        self._thread.start()
        try:
            yield
        finally:
            self._ended.set()
            self._thread.join()

    def close(self) -> None:
        self._reader.close()


def lead_again(cluster: EmbeddedCluster, topic: str) -> None:
    """Let the preferred replica of partition 0 lead, which is another one after a failover."""
    cluster.wait_until_in_sync(cluster.nodes)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
    admin.elect_leaders(ElectionType.PREFERRED, [TopicPartition(topic, 0)]).result(PATIENCE)


def has_end(journal: JournalLog) -> bool:
    try:
        end = journal.end(0)
    except KafkaException:
        return False
    assert end >= 0, "an offset that is none would count as the end"
    return True


@pytest.mark.timeout(900)  # three brokers start, and two of them again
def test_answers_go_on_when_the_leader_or_the_coordinator_is_killed(tmp_path: Path) -> None:
    with EmbeddedCluster(3, brief=True) as cluster:
        place = Installation(
            cluster.bootstrap_servers,
            "three.",
            2,
            tmp_path,
            module="streamapp worker",
            replication=BROKER_DEFAULT,
        )
        replicas = cluster.metadata(place.names.journal).topics[place.names.journal].partitions[0].replicas
        assert sorted(replicas) == [1, 2, 3]
        journal = JournalLog({"bootstrap.servers": place.servers}, place.names.journal)
        wait_until(lambda: has_end(journal), PATIENCE, lambda: "the journal has no end")
        with contextlib.closing(Stream(place)) as stream, place.worker("w", fresh=True) as worker:
            worker.wait_until_ready()
            with stream.flows():
                stream.go_on()
                leader = cluster.leader(place.names.journal, 0)
                cluster.stop(leader, kill=True)
                # librdkafka reports success without an offset while the leader is away.
                wait_until(lambda: has_end(journal), PATIENCE, lambda: "the journal has no end")
                stream.go_on()
                cluster.start(leader)
                lead_again(cluster, place.names.journal)
                # Its client has an older epoch of the same leader, and would keep it: no more snapshots.
                wait_until(lambda: has_end(journal), PATIENCE, lambda: "the journal has no end")
                coordinator = cluster.coordinator(place.group)
                cluster.stop(coordinator, kill=True)
                # librdkafka's own request for this would end the process: see `group_description`.
                assert members_of({"bootstrap.servers": place.servers}, place.group) == ["w"]
                stream.go_on()
                cluster.start(coordinator)
            place.wait_for_lag_0(alive=[worker])
            stream.read_until(stream.n - 1)
            assert sorted(stream.answers) == list(range(stream.n))
            assert set(stream.answers.values()) == {1}
            assert worker.terminate() == 0
