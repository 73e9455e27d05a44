"""Each function and struct that is bound by ctypes, against the librdkafka of the pinned confluent-kafka."""

from __future__ import annotations

import ctypes
import logging
import re
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition, cimpl, libversion

from topics.clients import librdkafka
from topics.clients.librdkafka import FUNCTIONS, Argument, Library, LibraryError, Message, bind

PINNED = "2.16.1"
TEXT = 512
AWAY = {"bootstrap.servers": "127.0.0.1:1", "log_level": "0"}


@pytest.fixture(scope="module")
def library() -> Library:
    bound = librdkafka.bound()
    assert bound is not None
    return bound


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """Yield the address of librdkafka's mock cluster, alive as long as its owner."""
    owner = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "unused", "log_level": 0})
    for topic in ("arguments", "source"):
        broker = next(iter(owner.list_topics(topic, timeout=60).brokers.values()))
    yield f"{broker.host}:{broker.port}"
    owner.flush(1)


def open_client(library: Library, properties: dict[str, str]) -> int:
    conf, text = library.conf_new(), ctypes.create_string_buffer(TEXT)
    for name, value in properties.items():
        code = library.conf_set(conf, name.encode(), value.encode(), text, TEXT)
        assert code == librdkafka.CONF_OK, text.value
    client = library.new(librdkafka.PRODUCER, conf, text, TEXT)
    assert client, text.value
    return int(client)


def test_the_version_is_the_one_that_all_of_this_was_tried_with(library: Library) -> None:
    pins = (Path(__file__).parents[2] / "constraints.txt").read_text()
    assert re.findall(r"^confluent-kafka==(.+)$", pins, re.MULTILINE) == [PINNED]
    assert version("confluent-kafka") == PINNED
    assert library.version() == libversion()[1] == 0x021000FF, "confluent-kafka runs on the same library"
    assert librdkafka.VERSION == (2, 16)


def test_every_function_is_found(library: Library) -> None:
    for name in FUNCTIONS:
        assert ctypes.cast(getattr(library, name), ctypes.c_void_p).value, name
    assert library.produceva_at == ctypes.cast(library.produceva, ctypes.c_void_p).value


def test_another_version_and_a_file_without_the_functions_are_not_bound(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(AttributeError, match="rd_kafka_"):
        bind(np.linalg._umath_linalg.__file__)
    monkeypatch.setattr(librdkafka, "VERSION", (2, 15))
    with pytest.raises(LibraryError, match=r"version=2\.16 must be 2\.15"):
        bind(cimpl.__file__)
    librdkafka.bound.cache_clear()
    try:
        with caplog.at_level(logging.INFO, "topics.clients.librdkafka"):
            assert librdkafka.bound() is None
    finally:
        librdkafka.bound.cache_clear()
    assert "confluent-kafka's Producer is used" in caplog.text


@pytest.mark.parametrize(
    ("struct", "size", "offsets"),
    [
        (Argument, 72, {"vtype": 0, "u": 8}),
        (librdkafka.Memory, 16, {"ptr": 0, "size": 8}),
        (librdkafka.Header, 24, {"name": 0, "val": 8, "size": 16}),
        (
            Message,
            72,
            {
                "err": 0,
                "rkt": 8,
                "partition": 16,
                "payload": 24,
                "len": 32,
                "key": 40,
                "key_len": 48,
                "offset": 56,
                "_private": 64,
            },
        ),
    ],
)
def test_structs_lie_in_memory_as_in_rdkafka_h(
    struct: type[ctypes.Structure], size: int, offsets: dict[str, int]
) -> None:
    assert ctypes.sizeof(struct) == size
    assert {name: getattr(struct, name).offset for name, *_ in struct._fields_} == offsets


def test_a_property_is_set_or_refused_with_a_sentence(library: Library) -> None:
    conf, text = library.conf_new(), ctypes.create_string_buffer(TEXT)
    assert library.conf_set(conf, b"linger.ms", b"7", text, TEXT) == librdkafka.CONF_OK
    assert library.conf_set(conf, b"linger.ns", b"7", text, TEXT) != librdkafka.CONF_OK
    assert text.value == b'No such configuration property: "linger.ns"'
    library.conf_destroy(conf)


def test_a_client_has_name_and_topics_and_its_queue_a_length(library: Library) -> None:
    client = open_client(library, AWAY)
    assert library.name(client).startswith(b"rdkafka#producer-")
    topic = library.topic_new(client, b"a topic", None)
    assert library.topic_name(topic) == b"a topic"
    assert library.topic_new(client, bytes(range(1, 200)) * 5, None) is None
    assert library.last_error() == KafkaError._INVALID_ARG
    assert library.outq_len(client) >= 0
    text = ctypes.create_string_buffer(TEXT)
    assert library.fatal_error(client, text, TEXT) == 0
    assert library.poll(client, 0) >= 0
    assert library.flush(client, 0) == 0
    library.topic_destroy(topic)
    library.destroy(client)


def argument(kind: int, **values: Any) -> Argument:
    made = Argument(vtype=kind)
    for name, value in values.items():
        setattr(made.u, name, value)
    return made


def text_of(text: bytes) -> tuple[Any, int]:
    held = ctypes.create_string_buffer(text, len(text))
    return held, ctypes.addressof(held)


def test_produceva_reads_its_arguments_as_they_are_laid_out(library: Library, cluster: str) -> None:
    client = open_client(library, {"bootstrap.servers": cluster})
    topic = library.topic_new(client, b"arguments", None)
    held = [text_of(text) for text in (b"key", b"a\0value", b"name\0", b"content")]
    (_, key), (_, value), (_, name), (_, content) = held
    arguments = [
        argument(librdkafka.RKT, rkt=topic),
        argument(librdkafka.PARTITION, i32=2),
        argument(librdkafka.MSGFLAGS, i=librdkafka.COPY),
        argument(librdkafka.TIMESTAMP, i64=1_700_000_000_001),
        argument(librdkafka.KEY, mem=librdkafka.Memory(key, 3)),
        argument(librdkafka.VALUE, mem=librdkafka.Memory(value, 7)),
        argument(librdkafka.HEADER, header=librdkafka.Header(name, content, 7)),
    ]
    block = (Argument * len(arguments))(*arguments)
    assert library.produceva(client, block, len(arguments)) is None
    # And as compiled code calls it, through its address.
    word = ctypes.c_int64
    at_address = ctypes.CFUNCTYPE(word, word, word, word)(int(library.produceva_at or 0))
    assert at_address(client, ctypes.addressof(block), len(arguments)) == 0
    assert library.outq_len(client) >= 2
    for text, _ in held:  # it has copied them
        ctypes.memset(text, 0, len(text))
    assert library.flush(client, 10_000) == 0
    library.topic_destroy(topic)
    library.destroy(client)
    consumer = Consumer({"bootstrap.servers": cluster, "group.id": "reader"})
    consumer.assign([TopicPartition("arguments", 2, 0)])
    messages = consumer.consume(2, timeout=60)
    consumer.close()
    rows = [
        (message.key(), message.value(), message.timestamp()[1], message.headers()) for message in messages
    ]
    assert rows == [(b"key", b"a\0value", 1_700_000_000_001, [("name", b"content")])] * 2


def test_an_error_tells_its_code_what_it_says_and_what_to_do(library: Library) -> None:
    client = open_client(library, AWAY)
    error = library.produceva(client, (Argument * 1)(), 0)
    assert library.error_code(error) == KafkaError._INVALID_ARG
    assert library.error_string(error)
    assert library.error_is_fatal(error) == 0
    assert library.error_is_retriable(error) == 0
    assert library.error_txn_requires_abort(error) == 0
    library.error_destroy(error)
    library.destroy(client)


def test_a_failed_record_is_reported_with_all_that_it_was(library: Library) -> None:
    seen: list[Any] = []

    def report(client: int, message: Any, opaque: int) -> None:
        of = message.contents
        payload = ctypes.string_at(of.payload, of.len), ctypes.string_at(of.key, of.key_len)
        seen.append((client, opaque, library.topic_name(of.rkt), of.err, of.partition, of.offset, *payload))

    callback = librdkafka.DELIVERY_CALLBACK(report)
    conf, text = library.conf_new(), ctypes.create_string_buffer(TEXT)
    for name, given in ((b"bootstrap.servers", b"127.0.0.1:1"), (b"log_level", b"0")):
        assert library.conf_set(conf, name, given, text, TEXT) == librdkafka.CONF_OK
    library.conf_set_dr_msg_cb(conf, callback)
    library.conf_set_opaque(conf, 77)
    client = library.new(librdkafka.PRODUCER, conf, text, TEXT)
    assert library.opaque(client) == 77
    topic = library.topic_new(client, b"t", None)
    (_, key), (_, value) = held = [text_of(b"key"), text_of(b"value")]
    block = (Argument * 5)(
        argument(librdkafka.RKT, rkt=topic),
        argument(librdkafka.PARTITION, i32=3),
        argument(librdkafka.MSGFLAGS, i=librdkafka.COPY),
        argument(librdkafka.KEY, mem=librdkafka.Memory(key, 3)),
        argument(librdkafka.VALUE, mem=librdkafka.Memory(value, 5)),
    )
    assert library.produceva(client, block, len(block)) is None
    assert len(held) == 2
    purged = library.purge(client, librdkafka.PURGE_QUEUE | librdkafka.PURGE_IN_FLIGHT)
    assert purged == 0
    assert library.flush(client, 5000) == 0
    assert seen == [(client, 77, b"t", KafkaError._PURGE_QUEUE, 3, -1001, b"value", b"key")]
    library.topic_destroy(topic)
    library.destroy(client)


def test_errors_and_log_lines_reach_their_callbacks(library: Library) -> None:
    errors: list[Any] = []
    lines: list[Any] = []
    on_error = librdkafka.ERROR_CALLBACK(lambda *given: errors.append(given))
    on_line = librdkafka.LOG_CALLBACK(lambda *given: lines.append(given))
    conf, text = library.conf_new(), ctypes.create_string_buffer(TEXT)
    for name, value in ((b"bootstrap.servers", b"127.0.0.1:1"), (b"log.queue", b"true")):
        assert library.conf_set(conf, name, value, text, TEXT) == librdkafka.CONF_OK
    library.conf_set_opaque(conf, 5)
    library.conf_set_error_cb(conf, on_error)
    library.conf_set_log_cb(conf, on_line)
    client = library.new(librdkafka.PRODUCER, conf, text, TEXT)
    assert library.set_log_queue(client, None) == 0
    for _ in range(50):
        library.poll(client, 100)
        if errors and lines:
            break
    library.destroy(client)
    assert errors[0][0] == lines[0][0] == client
    assert {code for _, code, _, _ in errors} <= {KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN}
    assert b"127.0.0.1:1" in errors[0][2]
    assert errors[0][3] == 5
    _, level, facility, line = lines[0]
    assert (level, facility) == (3, b"FAIL")
    assert b"Connection refused" in line
