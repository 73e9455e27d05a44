"""Error codes of a batch without a transaction lead to what Kafka's Java client does."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError

from topics.producing.idempotent.produce_errors import Action, action_on


@pytest.mark.parametrize(
    ("code", "action"),
    [
        (0, Action.DELIVERED),
        (KafkaError.DUPLICATE_SEQUENCE_NUMBER, Action.DELIVERED),
        (KafkaError.REQUEST_TIMED_OUT, Action.REPEAT),
        (KafkaError.NOT_ENOUGH_REPLICAS, Action.REPEAT),
        (KafkaError.INVALID_MSG, Action.REPEAT),
        (KafkaError.NOT_LEADER_FOR_PARTITION, Action.LOOK_UP),
        (KafkaError.UNKNOWN_TOPIC_OR_PART, Action.LOOK_UP),
        (KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER, Action.NEXT_EPOCH),
        (KafkaError.UNKNOWN_PRODUCER_ID, Action.NEXT_EPOCH),
        (KafkaError.INVALID_PRODUCER_ID_MAPPING, Action.NEW_IDENTITY),
        (KafkaError.INVALID_PRODUCER_EPOCH, Action.NEW_IDENTITY),
        (KafkaError.MSG_SIZE_TOO_LARGE, Action.SPLIT),
        (KafkaError.INVALID_RECORD, Action.LEAVE_OUT),
        (KafkaError.INVALID_TIMESTAMP, Action.LEAVE_OUT),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, Action.FAIL),
        (KafkaError.UNKNOWN, Action.FAIL),
    ],
)
def test_consequence(code: int, action: Action) -> None:
    assert action_on(code) is action
