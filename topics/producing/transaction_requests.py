"""Transaction requests: the steps of a transaction in versions that brokers from Kafka 2.5 to 4 have.

Brokers before 2.7 report PRODUCER_FENCED as INVALID_PRODUCER_EPOCH; the later versions of the requests differ
in that alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import (
    Array,
    Boolean,
    CompactString,
    Int16,
    Int32,
    Int64,
    Schema,
    String,
    TaggedFields,
)

Place = tuple[str, int]
"""Topic and partition."""

NO_PRODUCER: Final = -1
NO_EPOCH: Final = -1

_TEXT: Final = String("utf-8")
_COMPACT: Final = CompactString("utf-8")


@dataclass(frozen=True, slots=True)
class ProducerIdentity:
    """The id and epoch that brokers give to a producer."""

    producer: int = NO_PRODUCER
    epoch: int = NO_EPOCH


NOBODY: Final = ProducerIdentity()
"""The identity before the first InitProducerId."""


# -- InitProducerId --------------------------------------------------------------------------------------


class _InitProducerIdResponse3(Response):  # type: ignore[misc] # aiokafka has no types
    API_KEY = 22
    API_VERSION = 3
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        ("error_code", Int16),
        ("producer_id", Int64),
        ("producer_epoch", Int16),
        ("tags", TaggedFields),
    )


class _InitProducerIdResponse4(_InitProducerIdResponse3):
    API_VERSION = 4


class _InitProducerId3(RequestStruct):  # type: ignore[misc]
    API_KEY = 22
    API_VERSION = 3
    FLEXIBLE_VERSION = True
    RESPONSE_TYPE = _InitProducerIdResponse3
    SCHEMA = Schema(
        ("transactional_id", _COMPACT),
        ("transaction_timeout_ms", Int32),
        ("producer_id", Int64),
        ("producer_epoch", Int16),
        ("tags", TaggedFields),
    )


class _InitProducerId4(_InitProducerId3):
    API_VERSION = 4
    RESPONSE_TYPE = _InitProducerIdResponse4


class InitProducerId(Request[_InitProducerId3 | _InitProducerId4]):  # type: ignore[misc]
    """Request an identity with a higher epoch, which ends the transactions of earlier producers of the id.

    Without a transactional id any broker gives a new producer id, with epoch 0.
    """

    API_KEY = 22

    def __init__(self, transactional_id: str | None, timeout_ms: int) -> None:
        self._fields: tuple[Any, ...] = (transactional_id, timeout_ms, NOBODY.producer, NOBODY.epoch, {})

    def build(self, request_struct_class: type[Any]) -> Any:
        return request_struct_class(*self._fields)


# -- steps at the transaction coordinator ----------------------------------------------------------------


class _AddPartitionsResponse1(Response):  # type: ignore[misc]
    API_KEY = 24
    API_VERSION = 1
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "topics",
            Array(("topic", _TEXT), ("partitions", Array(("partition", Int32), ("error_code", Int16)))),
        ),
    )


class _AddPartitionsResponse2(_AddPartitionsResponse1):
    API_VERSION = 2


class _AddPartitions1(RequestStruct):  # type: ignore[misc]
    API_KEY = 24
    API_VERSION = 1
    RESPONSE_TYPE = _AddPartitionsResponse1
    SCHEMA = Schema(
        ("transactional_id", _TEXT),
        ("producer_id", Int64),
        ("producer_epoch", Int16),
        ("topics", Array(("topic", _TEXT), ("partitions", Array(Int32)))),
    )


class _AddPartitions2(_AddPartitions1):
    API_VERSION = 2
    RESPONSE_TYPE = _AddPartitionsResponse2


class AddPartitions(Request[_AddPartitions1 | _AddPartitions2]):  # type: ignore[misc]
    """AddPartitionsToTxn: make partitions a part of the transaction."""

    API_KEY = 24

    def __init__(self, transactional_id: str, identity: ProducerIdentity, places: Sequence[Place]) -> None:
        by_topic: dict[str, list[int]] = {}
        for topic, partition in places:
            by_topic.setdefault(topic, []).append(partition)
        self._fields = (transactional_id, identity.producer, identity.epoch, list(by_topic.items()))

    def build(self, request_struct_class: type[Any]) -> Any:
        return request_struct_class(*self._fields)


class _CodeResponse(Response):  # type: ignore[misc]
    API_KEY: ClassVar[int]
    API_VERSION = 1
    SCHEMA = Schema(("throttle_time_ms", Int32), ("error_code", Int16))


class _AddOffsetsResponse1(_CodeResponse):
    API_KEY = 25


class _AddOffsetsResponse2(_CodeResponse):
    API_KEY = 25
    API_VERSION = 2


class _AddOffsets1(RequestStruct):  # type: ignore[misc]
    API_KEY = 25
    API_VERSION = 1
    RESPONSE_TYPE = _AddOffsetsResponse1
    SCHEMA = Schema(
        ("transactional_id", _TEXT), ("producer_id", Int64), ("producer_epoch", Int16), ("group_id", _TEXT)
    )


class _AddOffsets2(_AddOffsets1):
    API_VERSION = 2
    RESPONSE_TYPE = _AddOffsetsResponse2


class AddOffsets(Request[_AddOffsets1 | _AddOffsets2]):  # type: ignore[misc]
    """AddOffsetsToTxn: make the offsets of a group a part of the transaction."""

    API_KEY = 25

    def __init__(self, transactional_id: str, identity: ProducerIdentity, group: str) -> None:
        self._fields = (transactional_id, identity.producer, identity.epoch, group)

    def build(self, request_struct_class: type[Any]) -> Any:
        return request_struct_class(*self._fields)


class _EndTxnResponse1(_CodeResponse):
    API_KEY = 26


class _EndTxnResponse2(_CodeResponse):
    API_KEY = 26
    API_VERSION = 2


class _EndTxn1(RequestStruct):  # type: ignore[misc]
    API_KEY = 26
    API_VERSION = 1
    RESPONSE_TYPE = _EndTxnResponse1
    SCHEMA = Schema(
        ("transactional_id", _TEXT), ("producer_id", Int64), ("producer_epoch", Int16), ("committed", Boolean)
    )


class _EndTxn2(_EndTxn1):
    API_VERSION = 2
    RESPONSE_TYPE = _EndTxnResponse2


class EndTxn(Request[_EndTxn1 | _EndTxn2]):  # type: ignore[misc]
    """Commit or abort the transaction."""

    API_KEY = 26

    def __init__(self, transactional_id: str, identity: ProducerIdentity, *, committed: bool) -> None:
        self._fields = (transactional_id, identity.producer, identity.epoch, committed)

    def build(self, request_struct_class: type[Any]) -> Any:
        return request_struct_class(*self._fields)


def codes_of(response: Any) -> dict[Place | None, int]:
    """Return the error codes of a step by partition; None: of the step itself."""
    if hasattr(response, "error_code"):
        return {None: response.error_code}
    return {(topic, row[0]): row[1] for topic, partitions, *_ in response.topics for row in partitions}
