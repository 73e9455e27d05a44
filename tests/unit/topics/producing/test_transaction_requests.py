"""Requests are on the wire what aiokafka's own classes and Kafka's descriptions of messages have."""

from __future__ import annotations

from typing import Any

from aiokafka.protocol import produce as theirs
from aiokafka.protocol import transaction

from topics.clients.group_member import GroupMember
from topics.producing.batch_encoder import WrittenBatch
from topics.producing.produce_request import Outcome, Produce
from topics.producing.transaction_requests import (
    AddOffsets,
    AddPartitions,
    EndTxn,
    InitProducerId,
    ProducerIdentity,
    codes_of,
)
from topics.producing.transactional_offsets import OffsetToCommit, TxnOffsetCommit

IDENTITY = ProducerIdentity(1 << 40, 3)
PLACES = [("a", 0), ("b", 1), ("a", 2)]
OLD, NEW = 2, 9
"""Highest version of each request in brokers of Kafka 2.5, and in later ones."""


def prepared(request: Any, version: int) -> Any:
    return request.prepare({request.API_KEY: (0, version)})


def test_steps_without_tags_are_those_of_aiokafka() -> None:
    pairs: list[tuple[Any, Any]] = [
        (
            AddPartitions("id", IDENTITY, PLACES),
            transaction.AddPartitionsToTxnRequest_v0("id", 1 << 40, 3, [("a", [0, 2]), ("b", [1])]),
        ),
        (
            AddOffsets("id", IDENTITY, "group"),
            transaction.AddOffsetsToTxnRequest_v0("id", 1 << 40, 3, "group"),
        ),
        (EndTxn("id", IDENTITY, committed=True), transaction.EndTxnRequest_v0("id", 1 << 40, 3, True)),
    ]
    for request, their in pairs:
        for version in (1, OLD):
            struct = prepared(request, version)
            assert (struct.API_VERSION, struct.encode()) == (version, their.encode())
        assert prepared(request, NEW).API_VERSION == OLD


def test_the_request_for_an_identity() -> None:
    struct = prepared(InitProducerId("id", 40_000), 3)
    assert struct.encode() == b"\3id" + b"\0\0\x9c\x40" + b"\xff" * 10 + b"\0"
    assert prepared(InitProducerId("id", 40_000), NEW).API_VERSION == 4
    answer = struct.RESPONSE_TYPE.decode(b"\0\0\0\7" + b"\0\0" + bytes(7) + b"\5" + b"\0\2" + b"\0")
    assert (answer.throttle_time_ms, answer.producer_id, answer.producer_epoch) == (7, 5, 2)
    assert codes_of(answer) == {None: 0}


def test_offsets_have_their_member() -> None:
    offsets = {("a", 1): OffsetToCommit(7, "x"), ("a", 2): OffsetToCommit(8)}
    member = GroupMember("group", 5, "member", "name")
    struct = prepared(TxnOffsetCommit("id", IDENTITY, member, offsets), NEW)
    first = b"\0\0\0\1" + bytes(7) + b"\7" + b"\xff" * 4 + b"\3x\0" + b"\0"
    second = b"\0\0\0\2" + bytes(7) + b"\x08" + b"\xff" * 4 + b"\1" + b"\0"
    identity = (1 << 40).to_bytes(8, "big") + b"\0\3"
    membership = b"\0\0\0\5" + b"\7member" + b"\5name"
    rows = b"\2\2a" + b"\3" + first + second + b"\0"
    assert struct.encode() == b"\3id" + b"\6group" + identity + membership + rows + b"\0"
    answer = struct.RESPONSE_TYPE.decode(b"\0\0\0\0" + b"\2\2a" + b"\2" + b"\0\0\0\1\0\x16\0" + b"\0\0")
    assert codes_of(answer) == {("a", 1): 22}


def test_a_produce_request_is_that_of_aiokafka() -> None:
    batches = [
        WrittenBatch("a", 0, 1, b"first"),
        WrittenBatch("b", 1, 1, b"second"),
        WrittenBatch("a", 2, 1, b""),
    ]
    their = theirs.ProduceRequest_v8(
        "id", -1, 30_000, [("a", [(0, b"first"), (2, b"")]), ("b", [(1, b"second")])]
    )
    struct = prepared(Produce("id", 30_000, batches), NEW)
    assert struct.encode() == their.encode()
    answer = theirs.ProduceResponse_v8(
        [
            ("a", [(0, 0, 5, -1, 0, [], None), (2, 87, -1, -1, 0, [(0, "too early")], "bad")]),
            ("b", [(1, 10, -1, -1, 0, [(0, None)], "large")]),
        ],
        9,
    )
    read = struct.RESPONSE_TYPE.decode(answer.encode())
    assert read.throttle_time_ms == 9
    assert read.outcomes == {
        ("a", 0): Outcome(0, ""),
        ("a", 2): Outcome(87, "too early", (0,)),
        ("b", 1): Outcome(10, "large", (0,)),
    }
