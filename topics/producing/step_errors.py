"""Step errors: what follows from the error codes of each step of a transaction.

The classes are those of Kafka's Java client (`TransactionManager`, `Sender`), with one exception:
INVALID_PRODUCER_EPOCH always counts as fenced, which ends in a new epoch either way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Final

from confluent_kafka import KafkaError as Codes

from topics.errors import AbortedError


class Verdict(IntEnum):
    """The consequence of an error code; of several codes the highest counts."""

    DONE = 0
    RETRY = 1
    LOOK_UP = 2  # look up the coordinator or the leader, then retry
    ABORT = 3  # the transaction must be aborted; the producer can go on
    FATAL = 4  # the producer needs a new identity
    FENCED = 5  # another producer has the transactional id, or the broker has ended the transaction


class UnfinishedError(AbortedError):
    """A step that was not answered in time: whether the broker has taken it is unknown."""


class FailedProducerError(AbortedError):
    """A producer whose identity the broker does not accept any more."""


_FENCED: Final = {Codes.INVALID_PRODUCER_EPOCH: Verdict.FENCED, Codes.PRODUCER_FENCED: Verdict.FENCED}
_AT_COORDINATOR: Final = {
    **_FENCED,
    Codes.COORDINATOR_NOT_AVAILABLE: Verdict.LOOK_UP,
    Codes.NOT_COORDINATOR: Verdict.LOOK_UP,
    Codes.COORDINATOR_LOAD_IN_PROGRESS: Verdict.RETRY,
    Codes.CONCURRENT_TRANSACTIONS: Verdict.RETRY,
    Codes.TRANSACTION_ABORTABLE: Verdict.ABORT,
}
_WITH_IDENTITY: Final = {
    **_AT_COORDINATOR,
    Codes.UNKNOWN_PRODUCER_ID: Verdict.ABORT,
    Codes.INVALID_PRODUCER_ID_MAPPING: Verdict.ABORT,
}

_STEPS: Final[Mapping[str, tuple[Mapping[int, Verdict], Verdict]]] = {
    "InitProducerId": (_AT_COORDINATOR, Verdict.FATAL),
    "AddPartitionsToTxn": (
        {
            **_WITH_IDENTITY,
            Codes.UNKNOWN_TOPIC_OR_PART: Verdict.RETRY,
            Codes.OPERATION_NOT_ATTEMPTED: Verdict.RETRY,  # another partition has the reason
            Codes.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: Verdict.FATAL,
            Codes.INVALID_TXN_STATE: Verdict.FATAL,
        },
        Verdict.ABORT,
    ),
    "AddOffsetsToTxn": (
        {**_WITH_IDENTITY, Codes.GROUP_AUTHORIZATION_FAILED: Verdict.ABORT},
        Verdict.FATAL,
    ),
    "TxnOffsetCommit": (
        {
            **_WITH_IDENTITY,
            Codes.REQUEST_TIMED_OUT: Verdict.LOOK_UP,
            Codes.UNKNOWN_TOPIC_OR_PART: Verdict.RETRY,
            Codes.GROUP_AUTHORIZATION_FAILED: Verdict.ABORT,
            Codes.FENCED_INSTANCE_ID: Verdict.ABORT,
            Codes.UNKNOWN_MEMBER_ID: Verdict.ABORT,
            Codes.ILLEGAL_GENERATION: Verdict.ABORT,
        },
        Verdict.FATAL,
    ),
    "EndTxn": (_WITH_IDENTITY, Verdict.FATAL),
    "FindCoordinator": (
        {
            Codes.COORDINATOR_NOT_AVAILABLE: Verdict.RETRY,
            Codes.COORDINATOR_LOAD_IN_PROGRESS: Verdict.RETRY,
            Codes.GROUP_AUTHORIZATION_FAILED: Verdict.ABORT,
        },
        Verdict.FATAL,
    ),
    "Produce": (
        {
            **_FENCED,
            Codes.DUPLICATE_SEQUENCE_NUMBER: Verdict.DONE,  # the answer to an earlier attempt was lost
            Codes.INVALID_MSG: Verdict.RETRY,
            Codes.REQUEST_TIMED_OUT: Verdict.RETRY,
            Codes.NOT_ENOUGH_REPLICAS: Verdict.RETRY,
            Codes.NOT_ENOUGH_REPLICAS_AFTER_APPEND: Verdict.RETRY,
            Codes.COORDINATOR_LOAD_IN_PROGRESS: Verdict.RETRY,  # of the check whether the partition was added
            Codes.COORDINATOR_NOT_AVAILABLE: Verdict.RETRY,
            Codes.NOT_COORDINATOR: Verdict.RETRY,
            Codes.CONCURRENT_TRANSACTIONS: Verdict.RETRY,
            Codes.THROTTLING_QUOTA_EXCEEDED: Verdict.RETRY,
            Codes.UNKNOWN_TOPIC_OR_PART: Verdict.LOOK_UP,
            Codes.LEADER_NOT_AVAILABLE: Verdict.LOOK_UP,
            Codes.NOT_LEADER_FOR_PARTITION: Verdict.LOOK_UP,
            Codes.REPLICA_NOT_AVAILABLE: Verdict.LOOK_UP,
            Codes.NETWORK_EXCEPTION: Verdict.LOOK_UP,
            Codes.KAFKA_STORAGE_ERROR: Verdict.LOOK_UP,
            Codes.FENCED_LEADER_EPOCH: Verdict.LOOK_UP,
            Codes.UNKNOWN_LEADER_EPOCH: Verdict.LOOK_UP,
        },
        Verdict.ABORT,  # OUT_OF_ORDER_SEQUENCE_NUMBER and others: a batch is lost
    ),
}
"""By the name of the request: the verdicts on its error codes, and the verdict on all others."""


def verdict_on(step: str, codes: Iterable[int]) -> tuple[Verdict, int]:
    """Return the highest verdict on the error codes of a step, and a code that led to it."""
    table, others = _STEPS[step]
    worst = (Verdict.DONE, 0)
    for code in codes:
        if code:
            worst = max(worst, (table.get(code, others), code))
    return worst
