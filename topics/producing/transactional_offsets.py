"""Transactional offsets: offsets of a group's member, stored by the group's coordinator for a transaction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import CompactArray, CompactString, Int16, Int32, Int64, Schema, TaggedFields

from topics.clients.group_member import GroupMember
from topics.producing.transaction_requests import Place, ProducerIdentity

NO_LEADER_EPOCH: Final = -1

END_OF_TEXT: Final = "\0"
"""Ends the metadata of an offset: confluent-kafka writes it, and reads on until it comes."""

_COMPACT: Final = CompactString("utf-8")


@dataclass(frozen=True, slots=True)
class OffsetToCommit:
    """A position of a partition, with what is noted with it."""

    position: int
    metadata: str = ""


class _TxnOffsetCommitResponse3(Response):  # type: ignore[misc]
    API_KEY = 28
    API_VERSION = 3
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "topics",
            CompactArray(
                ("topic", _COMPACT),
                (
                    "partitions",
                    CompactArray(("partition", Int32), ("error_code", Int16), ("tags", TaggedFields)),
                ),
                ("tags", TaggedFields),
            ),
        ),
        ("tags", TaggedFields),
    )


class _TxnOffsetCommit3(RequestStruct):  # type: ignore[misc]
    API_KEY = 28
    API_VERSION = 3  # the first one with the member of the group
    FLEXIBLE_VERSION = True
    RESPONSE_TYPE = _TxnOffsetCommitResponse3
    SCHEMA = Schema(
        ("transactional_id", _COMPACT),
        ("group_id", _COMPACT),
        ("producer_id", Int64),
        ("producer_epoch", Int16),
        ("generation_id", Int32),
        ("member_id", _COMPACT),
        ("group_instance_id", _COMPACT),
        (
            "topics",
            CompactArray(
                ("topic", _COMPACT),
                (
                    "partitions",
                    CompactArray(
                        ("partition", Int32),
                        ("offset", Int64),
                        ("leader_epoch", Int32),
                        ("metadata", _COMPACT),
                        ("tags", TaggedFields),
                    ),
                ),
                ("tags", TaggedFields),
            ),
        ),
        ("tags", TaggedFields),
    )


class TxnOffsetCommit(Request[_TxnOffsetCommit3]):  # type: ignore[misc]
    """Store offsets that count once the transaction is committed."""

    API_KEY = 28

    def __init__(
        self,
        transactional_id: str,
        identity: ProducerIdentity,
        member: GroupMember,
        offsets: Mapping[Place, OffsetToCommit],
    ) -> None:
        topics: dict[str, list[Any]] = {}
        for (topic, partition), offset in offsets.items():
            note = offset.metadata and offset.metadata + END_OF_TEXT
            row: tuple[Any, ...] = (partition, offset.position, NO_LEADER_EPOCH, note, {})
            topics.setdefault(topic, []).append(row)
        self._fields: tuple[Any, ...] = (
            transactional_id,
            member.group,
            identity.producer,
            identity.epoch,
            member.generation,
            member.member,
            member.instance,
            [(topic, rows, {}) for topic, rows in topics.items()],
            {},
        )

    def build(self, request_struct_class: type[Any]) -> Any:
        return request_struct_class(*self._fields)
