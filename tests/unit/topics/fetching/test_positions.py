"""Where a consumer begins to read, and how long it waits."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from benchmarks.chaos.wire import TRANSACTIONAL, Producer, Record, encode_records, frame_batch
from topics.fetching import bounded_consumer as module
from topics.fetching.bounded_consumer import BoundedConsumer

PLACE = ("t", 0)


def test_an_offset_that_is_not_answered_for_is_looked_up_again(monkeypatch: pytest.MonkeyPatch) -> None:
    consumer = BoundedConsumer(
        {"bootstrap.servers": "none:1", "group.id": "g", "auto.offset.reset": "latest"}
    )
    try:
        answers = iter([(-1001, KafkaError(KafkaError.UNSTABLE_OFFSET_COMMIT)), (7, None)])

        def committed(asked: list[TopicPartition], timeout: float) -> list[Any]:
            offset, error = next(answers)
            assert [(each.topic, each.partition) for each in asked] == [("t", 0)]
            return [SimpleNamespace(topic="t", partition=0, offset=offset, error=error)]

        broker = SimpleNamespace(
            committed=committed,
            get_watermark_offsets=lambda *_, **__: (0, 100),
            close=consumer._consumer.close,
        )
        monkeypatch.setattr(consumer, "_consumer", broker)
        consumer._is_subscribed, consumer._unplaced = True, {("t", 0): -1001}
        consumer._place()
        assert consumer.next_offset(("t", 0)) == -1, "not at the end of the log: records would be missed"
        consumer._place()
        assert consumer.next_offset(("t", 0)) == 7
    finally:
        consumer.close()


@pytest.mark.parametrize(
    ("reset", "start"),
    [
        *[("earliest", 3), ("beginning", 3), ("smallest", 3), ("Smallest", 3)],
        *[("latest", 9), ("end", 9), ("largest", 9), (None, 9)],
    ],
)
def test_a_partition_without_a_position_begins_as_librdkafka_would(
    reset: str | None, start: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = {} if reset is None else {"auto.offset.reset": reset}
    consumer = BoundedConsumer({"bootstrap.servers": "none:1", "group.id": "g", **chosen})
    broker = SimpleNamespace(
        committed=lambda asked, timeout: asked,
        get_watermark_offsets=lambda *_, **__: (3, 9),
        close=consumer._consumer.close,
    )
    monkeypatch.setattr(consumer, "_consumer", broker)
    try:
        consumer._is_subscribed, consumer._unplaced = True, {PLACE: -1001}
        consumer._place()
        assert consumer.next_offset(PLACE) == start
        broker.committed = lambda asked, timeout: [TopicPartition(*PLACE, 1)]  # deleted by retention
        consumer._fail(PLACE, 1, KafkaError.OFFSET_OUT_OF_RANGE)
        consumer._place()
        assert consumer.next_offset(PLACE) == start
    finally:
        consumer.close()


def test_answers_without_records_do_not_use_up_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Aborted transactions bring answers, but no messages."""
    consumer = BoundedConsumer({"bootstrap.servers": "none:1", "group.id": "g"})
    fetcher = consumer._fetcher
    assert fetcher is not None
    body, aborted = encode_records([Record(b"k", b"v", (), 5)]), 40

    def answer(seconds: float, before: object) -> None:
        at = fetcher.position(PLACE)
        producer = Producer(7, 0, 0) if at < aborted else Producer()
        raw = frame_batch(body, 1, (5, 5), producer, TRANSACTIONAL if at < aborted else 0)
        log = at.to_bytes(8, "big") + raw[8:]
        fetcher._came(PLACE, fetcher._places[PLACE], aborted + 1, [0, [(7, at)], -1, log])

    try:
        consumer.assign([TopicPartition(*PLACE, 0)])
        monkeypatch.setattr(fetcher, "wait", answer)
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: 0.0))  # no time passes
        assert [message.offset() for message in consumer.consume(1, 1.0)] == [aborted]
    finally:
        consumer.close()


@pytest.mark.parametrize(("given", "tells"), [(True, True), ("true", True), ("false", False), (False, False)])
def test_ends_are_told_of_if_they_were_asked_for(given: bool | str, tells: bool) -> None:
    consumer = BoundedConsumer(
        {"bootstrap.servers": "none:1", "group.id": "g", "enable.partition.eof": given}
    )
    try:
        assert consumer._tells_ends is tells
    finally:
        consumer.close()


UNANSWERED = SimpleNamespace(offset=-1, error=KafkaError(KafkaError.NOT_LEADER_FOR_PARTITION))


@pytest.fixture
def of_dying_leader(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[BoundedConsumer, SimpleNamespace]]:
    """A consumer, and the client below it, whose answers a test chooses."""
    consumer = BoundedConsumer(
        {"bootstrap.servers": "none:1", "group.id": "g", "auto.offset.reset": "latest"}
    )
    client = SimpleNamespace(close=consumer._consumer.close)
    monkeypatch.setattr(consumer, "_consumer", client)
    yield consumer, client
    consumer.close()


@pytest.mark.parametrize("ends", [None, (0, -1001), (-1001, 9)])
def test_a_log_whose_leader_does_not_report_it_has_no_end(
    of_dying_leader: tuple[BoundedConsumer, SimpleNamespace], ends: tuple[int, int] | None
) -> None:
    consumer, client = of_dying_leader
    client.get_watermark_offsets = lambda *_, **__: ends
    with pytest.raises(KafkaException, match="t-0: its leader did not report the log"):
        consumer.get_watermark_offsets(TopicPartition(*PLACE), 1.0)
    consumer._unplaced = {PLACE: -1001}
    consumer._place()
    assert consumer.next_offset(PLACE) == -1, "not at that end: records would be read twice or missed"


def test_a_time_without_an_answer_is_not_the_end_of_the_log(
    of_dying_leader: tuple[BoundedConsumer, SimpleNamespace],
) -> None:
    consumer, client = of_dying_leader
    client.offsets_for_times = lambda *_, **__: [UNANSWERED]
    with pytest.raises(KafkaException):
        consumer.offsets_for_times([TopicPartition(*PLACE, 1_000)], 1.0)
    after_all = SimpleNamespace(offset=-1, error=None)
    client.offsets_for_times = lambda *_, **__: [after_all]
    assert consumer.offsets_for_times([TopicPartition(*PLACE, 1_000)], 1.0) == [after_all]
