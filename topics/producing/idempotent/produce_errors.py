"""Produce errors: what follows from the broker's answer for a batch without a transaction.

The actions are those of Kafka's Java client (`Sender`, `TransactionManager`) from version 2.5 on, with two
exceptions: a record that is refused fails alone, and an identity that no broker accepts is replaced.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from typing import Final

from confluent_kafka import KafkaError as Codes

from topics.producing.step_errors import Verdict, verdict_on


class Action(Enum):
    """The consequence of an error code for a batch."""

    DELIVERED = auto()
    REPEAT = auto()
    LOOK_UP = auto()  # look up the leader, then repeat
    NEXT_EPOCH = auto()  # the broker has lost the place of the partition's last batch: begin a new count
    NEW_IDENTITY = auto()  # the broker does not accept the producer id or its epoch
    SPLIT = auto()  # smaller batches may be taken
    LEAVE_OUT = auto()  # some of its records are refused
    FAIL = auto()  # none of its records is taken


MAY_BE_APPENDED: Final = frozenset({Codes.REQUEST_TIMED_OUT, Codes.NOT_ENOUGH_REPLICAS_AFTER_APPEND})
"""Codes after which the leader may have the batch."""

_ACTIONS: Final[Mapping[int, Action]] = {
    Codes.OUT_OF_ORDER_SEQUENCE_NUMBER: Action.NEXT_EPOCH,
    Codes.UNKNOWN_PRODUCER_ID: Action.NEXT_EPOCH,
    Codes.INVALID_PRODUCER_ID_MAPPING: Action.NEW_IDENTITY,
    Codes.INVALID_PRODUCER_EPOCH: Action.NEW_IDENTITY,
    Codes.PRODUCER_FENCED: Action.NEW_IDENTITY,
    Codes.MSG_SIZE_TOO_LARGE: Action.SPLIT,
    Codes.RECORD_LIST_TOO_LARGE: Action.SPLIT,
    Codes.INVALID_RECORD: Action.LEAVE_OUT,
    Codes.INVALID_TIMESTAMP: Action.LEAVE_OUT,
}

_OTHERS: Final[Mapping[Verdict, Action]] = {
    Verdict.DONE: Action.DELIVERED,
    Verdict.RETRY: Action.REPEAT,
    Verdict.LOOK_UP: Action.LOOK_UP,
}


def action_on(code: int) -> Action:
    """Return the consequence of an error code; 0: the broker has the batch."""
    if code == 0:
        return Action.DELIVERED
    if code in _ACTIONS:
        return _ACTIONS[code]
    return _OTHERS.get(verdict_on("Produce", [code])[0], Action.FAIL)
