"""Where a member of a group begins to read."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, TopicPartition

from topics.fetching.consumer import BoundedConsumer


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
