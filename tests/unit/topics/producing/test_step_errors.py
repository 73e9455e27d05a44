"""Error codes of the steps of a transaction lead to what Kafka's Java client does."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError

from topics.producing.step_errors import Verdict, verdict_on

AT_COORDINATOR = ("InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn", "TxnOffsetCommit", "EndTxn")


@pytest.mark.parametrize("step", [*AT_COORDINATOR, "Produce"])
def test_a_fenced_producer_is_fenced_at_every_step(step: str) -> None:
    for code in (KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH):
        assert verdict_on(step, [0, KafkaError.REQUEST_TIMED_OUT, code]) == (Verdict.FENCED, code)


@pytest.mark.parametrize("step", AT_COORDINATOR)
def test_steps_follow_their_coordinator_and_wait_for_it(step: str) -> None:
    assert verdict_on(step, [KafkaError.NOT_COORDINATOR])[0] is Verdict.LOOK_UP
    assert verdict_on(step, [KafkaError.COORDINATOR_NOT_AVAILABLE])[0] is Verdict.LOOK_UP
    assert verdict_on(step, [KafkaError.COORDINATOR_LOAD_IN_PROGRESS])[0] is Verdict.RETRY
    assert verdict_on(step, [KafkaError.CONCURRENT_TRANSACTIONS])[0] is Verdict.RETRY
    assert verdict_on(step, [0, 0]) == (Verdict.DONE, 0)


@pytest.mark.parametrize(
    ("step", "codes", "verdict"),
    [
        ("AddPartitionsToTxn", [KafkaError.OPERATION_NOT_ATTEMPTED, 3], Verdict.RETRY),
        ("AddPartitionsToTxn", [KafkaError.OPERATION_NOT_ATTEMPTED, 29], Verdict.ABORT),
        ("AddPartitionsToTxn", [KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED], Verdict.FATAL),
        ("AddPartitionsToTxn", [KafkaError.INVALID_TXN_STATE], Verdict.FATAL),
        ("AddPartitionsToTxn", [KafkaError.UNKNOWN], Verdict.ABORT),
        ("AddOffsetsToTxn", [KafkaError.GROUP_AUTHORIZATION_FAILED], Verdict.ABORT),
        ("AddOffsetsToTxn", [KafkaError.UNKNOWN], Verdict.FATAL),
        ("TxnOffsetCommit", [0, KafkaError.ILLEGAL_GENERATION], Verdict.ABORT),
        ("TxnOffsetCommit", [KafkaError.UNKNOWN_MEMBER_ID], Verdict.ABORT),
        ("TxnOffsetCommit", [KafkaError.FENCED_INSTANCE_ID], Verdict.ABORT),
        ("TxnOffsetCommit", [KafkaError.REQUEST_TIMED_OUT], Verdict.LOOK_UP),
        ("TxnOffsetCommit", [KafkaError.OFFSET_METADATA_TOO_LARGE], Verdict.FATAL),
        ("EndTxn", [KafkaError.INVALID_TXN_STATE], Verdict.FATAL),
        ("EndTxn", [KafkaError.INVALID_PRODUCER_ID_MAPPING], Verdict.ABORT),
        ("InitProducerId", [KafkaError.CLUSTER_AUTHORIZATION_FAILED], Verdict.FATAL),
        ("FindCoordinator", [KafkaError.COORDINATOR_NOT_AVAILABLE], Verdict.RETRY),
        ("FindCoordinator", [KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED], Verdict.FATAL),
        ("Produce", [KafkaError.DUPLICATE_SEQUENCE_NUMBER], Verdict.DONE),
        ("Produce", [KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER], Verdict.ABORT),
        ("Produce", [KafkaError.NOT_LEADER_FOR_PARTITION], Verdict.LOOK_UP),
    ],
)
def test_further_codes(step: str, codes: list[int], verdict: Verdict) -> None:
    assert verdict_on(step, codes)[0] is verdict
