"""A producer never forgets what it could not send."""

import ctypes
import random
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition, cimpl

from streamapp.worker.reserved_ports import free_ports
from topics.clients import librdkafka
from topics.clients.native_producer import NativeProducer
from topics.clients.sender import Sender
from topics.columns.spans import Spans
from topics.errors import BrokerError, DeliveryError

CLIENTS: dict[str, bool] = {"confluent-kafka": False, "librdkafka": True}


@pytest.fixture(params=CLIENTS)
def native(request: pytest.FixtureRequest) -> bool:
    """Give what makes a sender use one client or the other."""
    return CLIENTS[request.param]


def sender_to(kafka: dict[str, Any], native: bool) -> Sender:
    sender = Sender(kafka, native=native)
    assert isinstance(sender._producer, NativeProducer if native else Producer)
    return sender


def one_run(sender: Sender, value: bytes) -> None:
    sender.send_run("topic", 0, [value], [b"key"], [0])


def one_row(sender: Sender, value: bytes) -> None:
    sender.send(["topic"], [value], [b"key"], [0], [0])


@pytest.mark.parametrize("send", [one_run, one_row])
def test_a_record_that_the_client_did_not_take_fails_every_later_flush(
    send: Callable[[Sender, bytes], None], native: bool
) -> None:
    sender = sender_to({"bootstrap.servers": f"127.0.0.1:{free_ports()}", "message.max.bytes": 2000}, native)
    for use in (lambda: send(sender, bytes(4000)), sender.check, sender.flush):
        with pytest.raises(DeliveryError, match=r"^topic\[0\]: a record of 4000 bytes: .*too large"):
            use()
    sender.close()


TINY = 100  # records in the client's queue
PATIENCE_S = 60.0


@pytest.fixture
def away(native: bool) -> Iterator[Sender]:
    """Yield a sender whose broker is away and whose queue is soon full."""
    kafka = {"bootstrap.servers": f"127.0.0.1:{free_ports()}", "queue.buffering.max.messages": TINY}
    sender = sender_to(kafka | {"log_level": 0}, native)
    yield sender
    sender.close()


@pytest.fixture(scope="module")
def cluster() -> Iterator[dict[str, str]]:
    """Yield the address of librdkafka's mock cluster, alive as long as its owner."""
    owner = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "unused", "log_level": 0})
    broker = next(iter(owner.list_topics("topic", timeout=60).brokers.values()))
    for test in ("order", "refused", "columns", "gathered", "beside", "mixed", "room", "rows"):
        for native in CLIENTS.values():
            owner.list_topics(topic_of(test, native), timeout=60)
    yield {"bootstrap.servers": f"{broker.host}:{broker.port}"}
    owner.flush(1)


def read(kafka: dict[str, str], topic: str, n: int, partition: int = 0) -> list[tuple[Any, Any]]:
    """Return value and headers of the records of a partition, which are n at least."""
    consumer = Consumer(kafka | {"group.id": "reader", "enable.partition.eof": "true"})
    consumer.assign([TopicPartition(topic, partition, 0)])
    messages = consumer.consume(n + 1, timeout=60)
    consumer.close()
    return [(message.value(), message.headers()) for message in messages if message.error() is None]


def topic_of(test: str, native: bool) -> str:
    """Return a topic that a test has for itself; the cluster makes it when it is first asked for."""
    return f"{test}-{'native' if native else 'python'}"


def offer(sender: Sender, n: int, prefix: str = "", topic: str = "topic") -> None:
    values = [f"{prefix}{i}".encode() for i in range(n)]
    given = Spans.of(values) if n % 2 else values
    sender.offer_run(topic, 0, given, [b"key"] * n, [0] * n, [[("h", value)] for value in values])


class NotedLock:
    """A lock that counts the threads that wait for it or had it."""

    def __init__(self) -> None:
        self.entered = threading.Semaphore(0)
        self._lock = threading.Lock()
        self.acquire, self.release = self._lock.acquire, self._lock.release

    def __enter__(self) -> None:
        self.entered.release()
        self._lock.acquire()

    def __exit__(self, *_error: object) -> None:
        self._lock.release()


def test_what_is_offered_never_waits_and_close_ends_whoever_drains(away: Sender) -> None:
    offer(away, TINY)
    assert not away.is_full, "the client has taken all of it"
    offer(away, TINY)
    offer(away, 1)
    assert away.is_full
    away._handing_over = lock = NotedLock()
    ended: list[Exception] = []

    def drain() -> None:
        try:
            away.drain()
        except DeliveryError as error:
            ended.append(error)

    threads = [threading.Thread(target=drain), threading.Thread(target=drain)]
    for thread in threads:
        thread.start()
    for _ in threads:
        assert lock.entered.acquire(timeout=PATIENCE_S), "a drain has not begun"
    offer(away, 1)
    away.close()
    for thread in threads:
        thread.join()
    assert [str(error) for error in ended] == ["102 records were not delivered: the producer was closed"] * 2
    assert away.failed == TINY
    assert not away.is_full, "nothing waits any more"


def test_what_was_offered_is_sent_in_order_whoever_hands_it_over(
    cluster: dict[str, str], native: bool
) -> None:
    topic = topic_of("order", native)
    # The client keeps its records for so long that the queue fills, however slow this thread is.
    bounds = {"queue.buffering.max.messages": str(TINY), "linger.ms": "50"}
    sender = sender_to(cluster | bounds, native)
    drained = 0
    for part in range(20):
        offer(sender, 70 + part % 2, f"{part}-", topic)
        if part % 5 == 4:
            drained += sender.is_full
            thread = threading.Thread(target=sender.drain)
            thread.start()
            offer(sender, 3, f"{part}+", topic)
            thread.join()
    sender.flush()
    sender.close()
    assert drained, "else nothing was tested"
    expected = []
    for part in range(20):
        expected += [f"{part}-{i}" for i in range(70 + part % 2)]
        if part % 5 == 4:
            expected += [f"{part}+{i}" for i in range(3)]
    sent = [(value.encode(), [("h", value.encode())]) for value in expected]
    assert read(cluster, topic, len(expected)) == sent


def test_what_was_gathered_goes_to_its_partitions_in_order(cluster: dict[str, str], native: bool) -> None:
    """Small parts in one call, others by themselves, with headers and without, and a queue that is full."""
    topic, other = topic_of("gathered", native), topic_of("beside", native)
    sender = sender_to(cluster | {"queue.buffering.max.messages": str(TINY)}, native)
    draw = random.Random(7)
    expected: dict[tuple[str, int], list[tuple[bytes, Any]]] = {}
    for turn in range(12):
        with sender.gathering():
            for part in range(draw.randrange(1, 9)):
                where = draw.choice([topic, topic, other]), draw.randrange(3)
                large = bytes(80_000) if draw.random() < 0.1 else b""
                values = [b"%d-%d-%d" % (turn, part, i) + large for i in range(draw.randrange(1, 30))]
                headers = [[("h", b"%d" % part)]] * len(values) if draw.random() < 0.3 else None
                given = Spans.of(values) if draw.random() < 0.8 else values
                sender.offer_run(*where, given, [b"key"] * len(values), [0] * len(values), headers)
                expected.setdefault(where, []).extend((v, headers and headers[0]) for v in values)
            if turn % 5 == 4:
                sender.drain()
                assert not sender.is_full
        sender.hand_over()
    sender.flush()
    assert sender.failed == 0
    sender.close()
    for (name, partition), records in expected.items():
        assert read(cluster, name, len(records), partition) == records


def test_small_parts_with_headers_and_without_keep_their_own(cluster: dict[str, str], native: bool) -> None:
    """Each combination of neighbours: records that go in one call have headers all of them, or none."""
    topic = topic_of("mixed", native)
    sender = sender_to(cluster, native)
    has_headers = [False, True, True, False, False, True, False]
    sent: list[tuple[bytes, Any]] = []
    with sender.gathering():
        for part, has in enumerate(has_headers):
            values = [b"%d-%d" % (part, i) for i in range(2)]
            headers = [[("h", value)] for value in values]
            sender.offer_run(topic, 0, Spans.of(values), Spans.of(values), [0] * 2, headers if has else None)
            sent += zip(values, headers if has else [None] * 2, strict=True)
    sender.flush()
    sender.close()
    assert read(cluster, topic, len(sent)) == sent


def test_while_a_sender_gathers_it_is_full_only_if_its_client_is(away: Sender) -> None:
    with away.gathering():
        offer(away, TINY)
        assert len(away._producer) < TINY <= away._n_waiting()
        assert not away.is_full
    assert away.is_full, "it has not handed it over"
    away.hand_over()
    assert not away.is_full, "the client has taken all of it"
    with away.gathering():
        offer(away, 1)
        offer(away, 2)
    away.hand_over()
    assert away.is_full
    with away.gathering():
        assert away.is_full


def test_a_record_that_was_refused_is_told_by_its_own_partition(native: bool) -> None:
    sender = sender_to({"bootstrap.servers": f"127.0.0.1:{free_ports()}", "message.max.bytes": 2000}, native)
    with sender.gathering():
        for partition, size in ((3, 10), (5, 3000), (4, 10)):
            sender.offer_run("topic", partition, Spans.of([bytes(size)]), Spans.of([b"key"]), [0])
    with pytest.raises(DeliveryError, match=r"^topic\[5\]: a record of 3000 bytes: .*too large"):
        sender.hand_over()
    sender.close()


def test_behind_a_record_that_was_refused_nothing_is_sent(cluster: dict[str, str], native: bool) -> None:
    topic = topic_of("refused", native)
    sender = sender_to(cluster | {"message.max.bytes": "2000"}, native)
    sender.offer_run(topic, 0, [b"first"], [b"key"], [0])
    for more in ([b"second", bytes(3000), b"third"], [b"fourth"]):
        with pytest.raises(DeliveryError, match="too large"):
            sender.offer_run(topic, 0, more, [b"key"] * len(more), [0] * len(more))
    for use in (sender.drain, sender.flush):
        with pytest.raises(DeliveryError, match="too large"):
            use()
    sender._producer.flush(10)
    assert read(cluster, topic, 2) == [(b"first", None), (b"second", None)]
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


def test_a_client_that_has_failed_for_good_is_the_reason_of_a_record_it_does_not_take(
    cluster: dict[str, str],
) -> None:
    sender = sender_to(cluster, native=True)
    hook = ctypes.CDLL(cimpl.__file__).rd_kafka_test_fatal_error  # what librdkafka has for such tests
    hook.argtypes = (ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p)
    client: Any = sender._producer
    assert hook(client._client, KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER, b"for a test") == 0
    for use in (lambda: one_run(sender, b"value"), sender.check):
        with pytest.raises(BrokerError, match="^the producer has failed for good: .*for a test"):
            use()
    sender.close()


def test_a_sender_that_has_drained_a_full_client_has_room_again(
    cluster: dict[str, str], native: bool
) -> None:
    topic = topic_of("room", native)
    sender = sender_to(cluster | {"queue.buffering.max.messages": str(TINY)}, native)
    offer(sender, 3 * TINY, topic=topic)
    assert sender.is_full
    sender.drain()
    with sender.gathering():
        offer(sender, 1, topic=topic)
        assert not sender.is_full, "the record waits for more, and not for room"
    sender.flush()
    sender.close()
    assert len(read(cluster, topic, 3 * TINY + 1)) == 3 * TINY + 1


def test_rows_go_to_their_topics_and_partitions_and_wait_for_room(
    cluster: dict[str, str], native: bool
) -> None:
    topic = topic_of("rows", native)
    sender = sender_to(cluster | {"queue.buffering.max.messages": str(TINY)}, native)
    n = 3 * TINY
    values = [b"%d" % i for i in range(n)]
    partitions = [i % 3 for i in range(n)]
    sender.send([topic] * n, values, [b"key"] * n, partitions, [1] * n)
    sender.flush()
    sender.close()
    for number in range(3):
        assert read(cluster, topic, n // 3, number) == [(value, None) for value in values[number::3]]


def test_a_stop_leaves_the_broker_some_time(native: bool) -> None:
    kafka = {"bootstrap.servers": f"127.0.0.1:{free_ports()}", "log_level": 0}
    stopped: list[bool] = []
    sender = Sender(kafka, lambda: bool(stopped), native)
    assert not sender.is_overdue()
    stopped.append(True)
    assert not sender.is_overdue(), "it has ten seconds from now"
    sender.close()


COLUMNS = [b"", None, "\N{SNOWMAN}".encode(), b"a\0b", bytes(1000)]
HEADERS: list[list[tuple[str, bytes | None]]] = [
    [],
    [("h", b""), ("h", None), ("\N{SNOWMAN}", b"\0")],
    [],
    [("grove-id", b"1")] * 40,
    [("h", b"x")],
]


def test_values_keys_times_and_headers_arrive_as_they_are(cluster: dict[str, str], native: bool) -> None:
    topic = topic_of("columns", native)
    sender = sender_to(cluster, native)
    keys, times = COLUMNS[::-1], [1, 2, 3, 4, 1_700_000_000_000]
    sender.send_run(topic, 0, COLUMNS, keys, times, HEADERS)
    sender.send_run(topic, 0, Spans.of(COLUMNS)[1:4], Spans.of(keys)[1:4], times[1:4])
    sender.flush()
    sender.close()
    consumer = Consumer(cluster | {"group.id": "reader"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    messages = consumer.consume(8, timeout=60)
    consumer.close()
    records = [
        (message.value(), message.key(), message.timestamp()[1], message.headers()) for message in messages
    ]
    sent = list(zip(COLUMNS, keys, times, [pairs or None for pairs in HEADERS], strict=True))
    assert records == sent + [(value, key, at, None) for value, key, at, _ in sent[1:4]]


def test_without_the_library_confluent_kafkas_client_is_used(
    monkeypatch: pytest.MonkeyPatch, cluster: dict[str, str]
) -> None:
    monkeypatch.setattr(librdkafka, "bound", lambda: None)
    sender = Sender(cluster, native=True)
    assert isinstance(sender._producer, Producer)
    sender.send_run("topic", 0, [b"value"], [b"key"], [0])
    sender.flush()
    sender.close()


def test_a_property_that_is_a_function_is_one_for_confluent_kafkas_client(cluster: dict[str, str]) -> None:
    sender = Sender({**cluster, "stats_cb": print}, native=True)
    assert isinstance(sender._producer, Producer)
    sender.close()
