"""A producer never forgets what it could not send."""

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from streamapp.worker.reserved_ports import free_ports
from topics.clients.sender import Sender
from topics.columns.spans import Spans
from topics.errors import BrokerError, DeliveryError

TINY = 100  # records in the client's queue


def one_run(sender: Sender, value: bytes) -> None:
    sender.send_run("topic", 0, [value], [b"key"], [0])


def one_row(sender: Sender, value: bytes) -> None:
    sender.send(["topic"], [value], [b"key"], [0], [0])


@pytest.mark.parametrize("send", [one_run, one_row])
def test_a_record_that_the_client_did_not_take_fails_every_later_flush(
    send: Callable[[Sender, bytes], None],
) -> None:
    sender = Sender({"bootstrap.servers": f"127.0.0.1:{free_ports()}", "message.max.bytes": 2000})
    for use in (lambda: send(sender, bytes(4000)), sender.check, sender.flush):
        with pytest.raises(DeliveryError, match=r"^topic\[0\]: a record of 4000 bytes: .*too large"):
            use()
    sender.close()


@pytest.fixture(scope="module")
def cluster() -> Iterator[dict[str, str]]:
    """Yield the address of librdkafka's mock cluster, alive as long as its owner."""
    owner = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "unused", "log_level": 0})
    broker = next(iter(owner.list_topics("topic", timeout=60).brokers.values()))
    for topic in ("refused", "columns", "room", "rows"):
        owner.list_topics(topic, timeout=60)
    yield {"bootstrap.servers": f"{broker.host}:{broker.port}"}
    owner.flush(1)


def read(kafka: dict[str, str], topic: str, n: int, partition: int = 0) -> list[tuple[Any, Any]]:
    """Return value and headers of the records of a partition, which are n at least."""
    consumer = Consumer(kafka | {"group.id": "reader", "enable.partition.eof": "true"})
    consumer.assign([TopicPartition(topic, partition, 0)])
    messages = consumer.consume(n + 1, timeout=60)
    consumer.close()
    return [(message.value(), message.headers()) for message in messages if message.error() is None]


def test_after_a_record_that_was_refused_nothing_is_sent(cluster: dict[str, str]) -> None:
    sender = Sender(cluster | {"message.max.bytes": "2000"})
    sender.send_run("refused", 0, [b"first"], [b"key"], [0])
    for more in ([b"second", bytes(3000), b"third"], [b"fourth"]):
        with pytest.raises(DeliveryError, match="too large"):
            sender.send_run("refused", 0, more, [b"key"] * len(more), [0] * len(more))
    with pytest.raises(DeliveryError, match="too large"):
        sender.send(["refused"], [b"fifth"], [b"key"], [0], [0])
    with pytest.raises(DeliveryError, match="too large"):
        sender.flush()
    sender._producer.flush(10)
    assert read(cluster, "refused", 2) == [(b"first", None), (b"second", None)]
    sender.close()


class Ended:
    """A client whose fatal error was lost when it wrote a log line; the next one tells it."""

    def __init__(self, properties: dict[str, Any], **_: Any) -> None:
        self._silent = properties.get("log.queue")

    def poll(self, seconds: float) -> int:
        if self._silent:
            raise KafkaException(KafkaError(KafkaError.CLUSTER_AUTHORIZATION_FAILED, "no id", fatal=True))
        message = "<method 'poll' of 'cimpl.Producer' objects> returned NULL without setting an exception"
        raise SystemError(message)

    flush = poll

    def __len__(self) -> int:
        return 0


def test_the_reason_of_a_fatal_error_that_the_client_lost_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("topics.clients.sender.Producer", Ended)
    monkeypatch.setattr("topics.clients.delivery_failures.Producer", Ended)
    sender = Sender({"bootstrap.servers": "unused"})
    for _ in range(2):
        with pytest.raises(BrokerError, match="has failed for good: .*IdempotentWrite"):
            sender.flush()


class Reporting(Ended):
    """A client that takes each record; its owner decides which are reported as undelivered."""

    def __init__(self, properties: dict[str, Any], **_: Any) -> None:
        self.report = properties["on_delivery"]
        self.complaints: list[KafkaError] = []

    def produce(self, *_: Any) -> None:
        """It is not sent."""

    def poll(self, seconds: float) -> int:
        for error in self.complaints:
            self.report(error, SimpleNamespace(topic=lambda: "t", partition=lambda: 3))
        self.complaints.clear()
        return 0

    flush = poll


def test_an_undelivered_batch_is_explained_by_the_record_at_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """For each other record of the batch librdkafka reports only that one of them was refused."""
    clients: list[Reporting] = []
    monkeypatch.setattr(
        "topics.clients.sender.Producer", lambda *a, **k: clients.append(Reporting(*a, **k)) or clients[-1]
    )
    another = KafkaError(KafkaError._INVALID_DIFFERENT_RECORD, "another record")
    at_fault = KafkaError(KafkaError.MSG_SIZE_TOO_LARGE, "too large")
    late = KafkaError(KafkaError._MSG_TIMED_OUT, "too late")
    for order in ([another, another, at_fault, another, late], [at_fault, another, late]):
        sender = Sender({"bootstrap.servers": "unused"})
        clients[-1].complaints = list(order)
        message = rf"^{len(order)} records were not delivered.*t\[3\]: too large; raise max.message.bytes"
        with pytest.raises(DeliveryError, match=message):
            sender.flush()


class Failed(Ended):
    """A client that has failed for good: it takes no record, and its next poll raises the reason."""

    def produce(self, *_: Any) -> None:
        raise KafkaException(KafkaError(KafkaError._FATAL, "Local: Fatal error"))

    def poll(self, seconds: float) -> int:
        raise KafkaException(KafkaError(KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER, "for a test", fatal=True))

    flush = poll


def test_the_end_of_a_client_is_the_reason_of_a_record_that_it_does_not_take(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("topics.clients.sender.Producer", Failed)
    sender = Sender({"bootstrap.servers": "unused"})
    for use in (lambda: one_run(sender, b"value"), sender.check):
        with pytest.raises(BrokerError, match="^the producer has failed for good: .*for a test"):
            use()


def test_runs_of_a_partition_keep_their_order_while_the_queue_is_full(cluster: dict[str, str]) -> None:
    sender = Sender(cluster | {"queue.buffering.max.messages": str(TINY)})
    sent: list[tuple[bytes, Any]] = []
    for number in range(5):
        values = [b"%d-%d" % (number, i) for i in range(70 + number)]
        headers: Any = [[("h", value)] for value in values] if number % 2 else None
        sender.send_run("room", 0, values, [b"key"] * len(values), [0] * len(values), headers)
        sent += zip(values, headers or [None] * len(values), strict=True)
    sender.flush()
    sender.close()
    assert read(cluster, "room", len(sent)) == sent


def test_rows_go_to_their_topics_and_partitions_and_wait_for_room(cluster: dict[str, str]) -> None:
    sender = Sender(cluster | {"queue.buffering.max.messages": str(TINY)})
    n = 3 * TINY
    values = [b"%d" % i for i in range(n)]
    partitions = [i % 3 for i in range(n)]
    sender.send(["rows"] * n, values, [b"key"] * n, partitions, [1] * n)
    sender.flush()
    sender.close()
    for number in range(3):
        assert read(cluster, "rows", n // 3, number) == [(value, None) for value in values[number::3]]


@pytest.mark.parametrize("n", [1, TINY + 1])
def test_after_a_stop_an_absent_broker_is_waited_for_a_little(
    monkeypatch: pytest.MonkeyPatch, n: int
) -> None:
    """In `flush`, and in `send_run` for room."""
    monkeypatch.setattr("topics.clients.stop_deadline.STOP_S", 0.1)
    looks: list[bool] = []

    def stopped() -> bool:
        looks.append(len(looks) >= 2)
        return looks[-1]

    kafka = {"bootstrap.servers": f"127.0.0.1:{free_ports()}", "queue.buffering.max.messages": TINY}
    sender = Sender(kafka | {"log_level": 0}, stopped)
    message = "[0-9]+ records were not delivered within 10 s of the stop: the broker is away"
    with pytest.raises(DeliveryError, match=message):
        sender.send_run("topic", 0, [b"value"] * n, [b"key"] * n, [0] * n)
        sender.flush()
    assert looks[:4] == [False, False, True, True], "it waits before the stop, and after it"
    with pytest.raises(DeliveryError, match=message):
        sender.check()
    sender.close()


COLUMNS = [b"", None, "\N{SNOWMAN}".encode(), b"a\0b", bytes(1000)]
HEADERS: list[list[tuple[str, bytes | None]]] = [
    [],
    [("h", b""), ("h", None), ("\N{SNOWMAN}", b"\0")],
    [],
    [("grove-id", b"1")] * 40,
    [("h", b"x")],
]


def test_values_keys_times_and_headers_arrive_as_they_are(cluster: dict[str, str]) -> None:
    sender = Sender(cluster)
    keys, times = COLUMNS[::-1], [1, 2, 3, 4, 1_700_000_000_000]
    sender.send_run("columns", 0, COLUMNS, keys, times, HEADERS)
    sender.send_run("columns", 0, Spans.of(COLUMNS)[1:4], Spans.of(keys)[1:4], times[1:4])
    sender.flush()
    sender.close()
    consumer = Consumer(cluster | {"group.id": "reader"})
    consumer.assign([TopicPartition("columns", 0, 0)])
    messages = consumer.consume(8, timeout=60)
    consumer.close()
    records = [
        (message.value(), message.key(), message.timestamp()[1], message.headers()) for message in messages
    ]
    sent = list(zip(COLUMNS, keys, times, [pairs or None for pairs in HEADERS], strict=True))
    assert records == sent + [(value, key, at, None) for value, key, at, _ in sent[1:4]]
