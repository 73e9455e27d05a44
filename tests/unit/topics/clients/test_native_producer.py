"""librdkafka's own client: confluent-kafka's behaviour, whatever it is given, and gone when it is dropped."""

from __future__ import annotations

import ctypes
import gc
import logging
import math
import multiprocessing
import os
import resource
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition, cimpl

from streamapp.worker.reserved_ports import free_ports
from topics.clients import librdkafka
from topics.clients.native_client import _clients
from topics.clients.native_producer import NativeProducer
from topics.clients.produce import produce_records
from topics.columns.header_columns import HeaderColumns
from topics.columns.spans import Spans

Report = tuple[int, str, str, int]


class Told:
    """What a client has reported."""

    def __init__(self) -> None:
        self.undelivered: list[Report] = []
        self.errors: list[KafkaError] = []

    def delivered(self, error: KafkaError | None, message: Any) -> None:
        if error is not None:
            self.undelivered.append((error.code(), error.str(), message.topic(), message.partition()))

    def erred(self, error: KafkaError) -> None:
        self.errors.append(error)


def native(log: Told, properties: dict[str, Any], logger: Any = None) -> NativeProducer:
    library = librdkafka.bound()
    assert library is not None
    logger = logger or logging.getLogger(__name__)
    return NativeProducer(library, properties, log.delivered, log.erred, logger, produce_records)


def theirs(log: Told, properties: dict[str, Any], logger: Any = None) -> Producer:
    reports = {
        "delivery.report.only.error": True,
        "on_delivery": log.delivered,
        "error_cb": log.erred,
    }
    return Producer({**properties, **reports}, logger=logger or logging.getLogger(__name__))


Opener = Callable[..., Any]
OPENERS: list[Opener] = [theirs, native]


@pytest.fixture
def away() -> dict[str, Any]:
    return {"bootstrap.servers": f"127.0.0.1:{free_ports()}", "log_level": 0}


@pytest.fixture(scope="module")
def cluster() -> Iterator[dict[str, Any]]:
    """Yield the address of librdkafka's mock cluster, alive as long as its owner."""
    owner = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "unused", "log_level": 0})
    for topic in ("topic", "many"):
        broker = next(iter(owner.list_topics(topic, timeout=60).brokers.values()))
    yield {"bootstrap.servers": f"{broker.host}:{broker.port}"}
    owner.flush(1)


def ends_of(cluster: dict[str, Any], topic: str) -> int:
    """Return the number of records that a topic of the mock cluster holds."""
    consumer = Consumer(cluster | {"group.id": "ends"})
    try:
        partitions = consumer.list_topics(topic, timeout=60).topics[topic].partitions
        return sum(
            consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=60)[1]
            for number in partitions
        )
    finally:
        consumer.close()


def failure_of(call: Callable[..., Any], *arguments: Any) -> tuple[Any, ...]:
    with pytest.raises(KafkaException) as caught:
        call(*arguments)
    error = caught.value.args[0]
    return error.code(), error.str(), error.fatal(), error.retriable(), error.txn_requires_abort()


def test_what_is_given_up_is_reported_alike(away: dict[str, Any]) -> None:
    undelivered = []
    for opener in OPENERS:
        log = Told()
        client = opener(log, away)
        for partition in range(3):
            client.produce("topic", b"value", b"key", partition)
        assert len(client) >= 3, "errors wait there as well"
        client.purge()
        assert client.flush(5) == 0
        undelivered.append(sorted(log.undelivered))
    assert undelivered[0] == undelivered[1]
    assert undelivered[1][0] == (KafkaError._PURGE_QUEUE, "Local: Purged in queue", "topic", 0)


def test_what_it_does_not_take_is_refused_alike(away: dict[str, Any]) -> None:
    refusals: list[list[Any]] = []
    for opener in OPENERS:
        client = opener(Told(), away | {"message.max.bytes": 2000, "queue.buffering.max.messages": 1})
        refused = [
            failure_of(client.produce, "topic", bytes(3000)),
            failure_of(client.produce, "t" * 600, b"value"),
        ]
        client.produce("topic", b"value")
        with pytest.raises(BufferError) as full:
            client.produce("topic", b"value")
        refusals.append([*refused, str(full.value)])
        client.purge()
    assert refusals[0] == refusals[1]


@pytest.mark.parametrize(("name", "value"), [("acks", "some"), ("nonsense", "1"), ("linger.ms", -1)])
def test_a_wrong_property_is_refused_alike(away: dict[str, Any], name: str, value: Any) -> None:
    ours, known = (failure_of(opener, Told(), away | {name: value}) for opener in (native, theirs))
    assert ours == known
    assert ours[:1] == (KafkaError._INVALID_ARG,)


def test_properties_that_do_not_go_together_are_refused_alike(away: dict[str, Any]) -> None:
    wrong = away | {"enable.idempotence": True, "acks": 1}
    assert failure_of(native, Told(), wrong) == failure_of(theirs, Told(), wrong)


def test_errors_and_lines_of_the_log_come_from_poll(caplog: pytest.LogCaptureFixture) -> None:
    address = f"127.0.0.1:{free_ports()}"
    log_lines = []
    for opener in OPENERS:
        log = Told()
        client = opener(log, {"bootstrap.servers": address})
        with caplog.at_level(logging.INFO, __name__):
            for _ in range(100):
                client.poll(0.1)
                if log.errors and caplog.records:
                    break
        line = caplog.records[0]
        log_lines.append(
            (line.levelno, line.getMessage().split(" ")[0], line.getMessage().split("/")[0][-20:])
        )
        assert address in log.errors[0].str()
        caplog.clear()
    assert log_lines[0] == log_lines[1]


def test_a_line_of_the_log_is_written_by_the_thread_that_polls() -> None:
    """A logger may belong to one thread; librdkafka's own threads write their lines into a queue."""
    writers: list[int] = []
    logger = SimpleNamespace(log=lambda *_: writers.append(threading.get_ident()))
    client = native(Told(), {"bootstrap.servers": f"127.0.0.1:{free_ports()}"}, logger)
    for _ in range(100):
        client.poll(0.1)
        if writers:
            break
    assert set(writers) == {threading.get_ident()}


@pytest.mark.parametrize("receiver", ["logger", "errors"])
def test_what_a_receiver_of_reports_raises_comes_out_of_the_call(receiver: str) -> None:
    def fail(*_: Any) -> None:
        raise LookupError

    log = Told()
    if receiver == "errors":
        log.erred = fail  # type: ignore[method-assign,assignment]
    logger = SimpleNamespace(log=fail) if receiver == "logger" else None
    client = native(log, {"bootstrap.servers": f"127.0.0.1:{free_ports()}"}, logger)

    def poll_until_it_fails() -> None:
        for _ in range(100):
            client.poll(0.1)

    with pytest.raises(LookupError):
        poll_until_it_fails()


def test_what_a_callback_raises_comes_out_of_the_call(away: dict[str, Any]) -> None:
    class Failing(Told):
        def delivered(self, error: KafkaError | None, message: Any) -> None:
            del error, message
            raise LookupError

    client = native(Failing(), away)
    client.produce("topic", b"value")
    client.purge()
    with pytest.raises(LookupError):
        client.flush(5)


def test_a_fatal_error_is_raised_by_the_call_that_serves_it(cluster: dict[str, Any]) -> None:
    client = native(Told(), cluster | {"enable.idempotence": True})
    # What librdkafka has for such tests.
    hook = ctypes.CDLL(cimpl.__file__).rd_kafka_test_fatal_error
    hook.argtypes = (ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p)
    code = KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert hook(client._client, code, b"for a test") == 0
    error = failure_of(client.poll, 5)
    assert error[0] == code
    assert "for a test" in error[1]
    assert error[2], "fatal"
    assert failure_of(client.produce, "topic", b"value")[0] == KafkaError._FATAL


N = 3
VALUES = Spans.of([b"one", b"two", b"three"])


def column(starts: list[int], buffer: Any = b"elevenbytes", lengths: list[int] | None = None) -> Spans:
    ends = np.array(starts)
    return (
        Spans(buffer, ends[:-1], np.diff(ends)) if lengths is None else Spans(buffer, ends, np.array(lengths))
    )


@pytest.mark.parametrize(
    "columns",
    [
        {"values": column([0, 3, 6, 12])},
        {"values": column([0, 3, 1, 11])},
        {"values": column([-1, 3, 6, 11])},
        {"values": column([0, 3, 6, 1 << 62])},
        {"keys": column([0, 3, 6, 12])},
        {"keys": [None]},
        {"timestamps": [0]},
        {"timestamps": np.zeros((3, 3), dtype=np.int64)},
        {"headers": [[]]},
        {"headers": [[("a\0b", b"")], [], []]},
        {"headers": HeaderColumns(["a"], np.array([0]), Spans.of([b"x"]), np.array([0, 1, 2, 1]))},
        {"headers": HeaderColumns(["a"], np.array([0]), Spans.of([b"x"]), np.array([0, 1, 1, 2]))},
        {"headers": HeaderColumns(["a"], np.array([0]), Spans.of([]), np.array([0, 1, 1, 1]))},
        {"headers": HeaderColumns(["a"], np.array([0]), column([0, 99]), np.array([0, 1, 1, 1]))},
        {"headers": HeaderColumns(["a"], np.array([1]), Spans.of([b"x"]), np.array([0, 1, 1, 1]))},
        {"headers": HeaderColumns(["a"], np.array([-1]), Spans.of([b"x"]), np.array([0, 1, 1, 1]))},
        {"partition": 1 << 31},
        {"partition": -2},
        {"partition": np.zeros(N - 1, dtype=np.int64)},
        {"partition": np.zeros(N + 1, dtype=np.int64)},
        {"topic": "a\0b"},
        {"values": column([0, 3, 6, 11], bytearray(11))},
        {"values": column([0, 3, 6], lengths=[1, 1])},
        {"values": column([0, 3, 6], lengths=[1, -2, 1])},
        {"values": column([0, 3, 1 << 62], lengths=[1, 1, 1 << 62])},
        {"values": Spans(b"x", np.zeros((N, 2), dtype=np.int64), np.zeros((N, 2), dtype=np.int64))},
    ],
    ids=lambda columns: next(iter(columns)),
)
def test_columns_that_do_not_go_together_are_refused(away: dict[str, Any], columns: dict[str, Any]) -> None:
    client = native(Told(), away)
    good: dict[str, Any] = {
        "topic": "topic",
        "partition": 0,
        "values": VALUES,
        "keys": [None] * N,
        "timestamps": [0] * N,
        "headers": None,
    }
    with pytest.raises((ValueError, IndexError)):
        client.produce_columns(**good | columns)
    assert client.produce_columns(**good) == (N, None), "nothing is out of order"
    client.purge()


@pytest.mark.parametrize("values", [["text"], [1], [b"x", "text"]])
def test_what_is_not_bytes_is_refused(away: dict[str, Any], values: list[Any]) -> None:
    client = native(Told(), away)
    with pytest.raises(TypeError):
        client.produce_columns("topic", 0, values, [None] * len(values), [0] * len(values))


def test_a_full_queue_tells_how_many_were_taken(away: dict[str, Any]) -> None:
    client = native(Told(), away | {"queue.buffering.max.messages": 2})
    rest: Any = [VALUES, Spans.of([None] * N), np.zeros(N, dtype=np.int64)]
    assert client.produce_columns("topic", 0, *rest) == (2, None)
    assert client.produce_columns("topic", 0, *(cells[2:] for cells in rest)) == (0, None)
    client.purge()
    assert client.flush(5) == 0
    assert client.produce_columns("topic", 0, *(cells[2:] for cells in rest)) == (1, None)


def use_in_fork(client: NativeProducer, answers: Any) -> None:
    try:
        client.poll(0)
    except RuntimeError as error:
        answers.put(str(error))
    del client
    gc.collect()
    answers.put("ended")


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_can_do_nothing_with_its_parents_client_and_does_not_hang(away: dict[str, Any]) -> None:
    context = multiprocessing.get_context("fork")
    clients = [native(Told(), away)]
    answers = context.Queue()
    child = context.Process(target=lambda: use_in_fork(clients.pop(), answers))
    child.start()
    errors = [answers.get(timeout=20) for _ in range(2)]
    child.join(20)
    assert child.exitcode == 0
    assert errors[0].startswith(f"pid={child.pid} must be {os.getpid()}: ")
    assert errors[1] == "ended"
    assert clients[0].poll(0) >= 0, "the parent goes on"


def test_one_thread_hands_over_while_others_poll_flush_and_purge(cluster: dict[str, Any]) -> None:
    log = Told()
    client = native(log, cluster | {"queue.buffering.max.messages": 500, "linger.ms": 0})
    ended = threading.Event()

    def serve(call: Callable[[], Any]) -> None:
        while not ended.is_set():
            call()

    def hand_over(part: int) -> int:
        values = Spans.of([b"%d" % part] * 100)
        taken, error = client.produce_columns("many", part % 4, values, [None] * 100, [0] * 100)
        assert error is None
        return taken

    calls = [lambda: client.poll(0.01), lambda: client.flush(0.01), lambda: len(client), client.purge]
    threads = [threading.Thread(target=serve, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    handed = sum(hand_over(part) for part in range(300))
    ended.set()
    for thread in threads:
        thread.join()
    assert client.flush(10) == 0
    purged = len(log.undelivered)
    assert purged <= handed
    assert {code for code, *_ in log.undelivered} <= {KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT}
    written = ends_of(cluster, "many")
    assert written + purged >= handed, "every record is written or purged, or both"
    assert hand_over(0) == 100, "the queue has room again: every record has been reported"
    assert client.flush(10) == 0
    assert ends_of(cluster, "many") == written + 100
    assert len(log.undelivered) == purged, "without a purge every record is delivered"


def test_what_is_delivered_soon_is_not_waited_for_long(cluster: dict[str, Any]) -> None:
    """The library's own flush takes ten milliseconds at least if it is told of failures only."""
    client = native(Told(), cluster)
    took = math.inf
    for _ in range(500):  # on a busy machine most of them wait for a processor
        if took < 0.010:
            break
        client.produce("topic", b"value", b"key", 0)
        began = time.monotonic()
        assert client.flush(10) == 0
        took = min(took, time.monotonic() - began)
    assert took < 0.010


def test_a_dropped_client_leaves_neither_threads_nor_files(away: dict[str, Any]) -> None:
    gc.collect()
    before, threads, files = len(_clients), tasks(), files_open()
    client = native(Told(), away)
    client.produce("topic", b"value")
    assert len(_clients) == before + 1
    del client
    # Of clients of other tests some may end at this moment.
    assert len(_clients) == before
    assert tasks() <= threads
    assert files_open() <= files


def tasks() -> set[str]:
    """Return the ids of librdkafka's threads in this process; others come and go with other tests."""
    names = {path.parent.name: path.read_text() for path in Path("/proc/self/task").glob("*/comm")}
    return {thread for thread, name in names.items() if name.startswith("rdk:")}


def files_open() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def resident() -> int:
    """Return bytes of this process in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def hand_over(cluster: dict[str, Any], n: int) -> None:
    client = native(Told(), cluster | {"queue.buffering.max.messages": 20_000, "linger.ms": 0})
    values = Spans.of([b"x" * 100] * 1000)
    rest: Any = [[b"key"] * 1000, [0] * 1000, [[("name", b"content")]] * 1000]
    left = n
    while left:
        most = min(left, 1000)
        taken, error = client.produce_columns("many", 0, values[:most], *(cells[:most] for cells in rest))
        assert error is None
        left -= taken
        client.poll(0 if taken else 0.01)
        if left % 20_000 == 0:
            assert client.flush(30) == 0
    assert client.flush(30) == 0


def open_and_drop(away: dict[str, Any], n: int) -> None:
    for _ in range(n):
        client = native(Told(), away)
        client.produce("topic", b"value", b"key", 0, headers=[("name", b"content")])


def test_clients_are_forgotten(away: dict[str, Any]) -> None:
    open_and_drop(away, 200)
    before = resident()
    open_and_drop(away, 1000)
    assert resident() - before < 16 << 20


@pytest.mark.nightly
def test_records_are_forgotten(cluster: dict[str, Any]) -> None:
    hand_over(cluster, 200_000)
    before = resident()
    hand_over(cluster, 1_000_000)
    assert resident() - before < 32 << 20, "32 bytes a record"
