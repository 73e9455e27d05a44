"""Produce request: one batch for each of several partitions, with the identity in the batches.

Version 8, which brokers from Kafka 2.4 on have, reports the reason for a refused record.
"""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from struct import Struct
from typing import Any, Final, NamedTuple, Self

from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import Schema

from topics.producing.batch_encoder import WrittenBatch
from topics.producing.transaction_requests import Place

ALL_REPLICAS: Final = -1

_SHORT: Final = Struct(">h")
_INT: Final = Struct(">i")
_ACKS_AND_TIMEOUT: Final = Struct(">hii")
_BATCH_HEAD: Final = Struct(">ii")
_OUTCOME: Final = Struct(">ihqqq")
"""Partition, error code, first offset, time of appending, start of the log."""


_PLAIN_OUTCOME: Final = Struct(">ihqqqih")
"""The same, number of refused records, length of the reason: an outcome ends here if they are 0 and -1."""


class Outcome(NamedTuple):
    """The broker's answer for one partition."""

    code: int
    detail: str  # the broker's reason, often empty
    records: tuple[
        int, ...
    ] = ()  # the places of the refused records in their batch, as far as they are given


APPENDED: Final = Outcome(0, "")


class _ProduceResponse8(Response):  # type: ignore[misc] # aiokafka has no types
    API_KEY = 0
    API_VERSION = 8
    SCHEMA = Schema()

    def __init__(self, outcomes: dict[Place, Outcome], throttle_time_ms: int) -> None:
        self.outcomes = outcomes
        self.throttle_time_ms = throttle_time_ms

    @classmethod
    def decode(cls, data: BytesIO | bytes) -> Self:
        """Read an answer; aiokafka's schemas would take some milliseconds for a hundred partitions."""
        raw = data if isinstance(data, bytes) else data.read()
        fields = _Fields(raw)
        outcomes = {}
        for _ in range(fields.number(_INT)):
            topic = fields.text() or ""
            for _ in range(fields.number(_INT)):
                partition, code, _, _, _, n_refused, size = fields.seen(_PLAIN_OUTCOME)
                if n_refused == 0 and size < 0:
                    fields.skip(_PLAIN_OUTCOME)
                    outcomes[topic, partition] = Outcome(code, "") if code else APPENDED
                    continue
                fields.skip(_OUTCOME)
                reasons, records = [], []
                for _ in range(fields.number(_INT)):
                    records.append(fields.number(_INT))
                    reasons.append(fields.text())
                reasons.append(fields.text())
                detail = next((text for text in reasons if text), "")
                outcomes[topic, partition] = Outcome(code, detail, tuple(records))
        return cls(outcomes, fields.number(_INT))


class _Produce8(RequestStruct):  # type: ignore[misc]
    API_KEY = 0
    API_VERSION = 8
    RESPONSE_TYPE = _ProduceResponse8
    SCHEMA = Schema()

    def __init__(self, body: bytes) -> None:
        self._body = body

    def encode(self) -> bytes:
        return self._body


class Produce(Request[_Produce8]):  # type: ignore[misc]
    """Append batches, at most one of a partition; brokers refuse a request with more (KIP-98)."""

    API_KEY = 0

    def __init__(
        self, transactional_id: str | None, timeout_ms: int, batches: Sequence[WrittenBatch]
    ) -> None:
        """`timeout_ms`: the time in which all replicas in sync must have the batches."""
        self.batches = batches
        by_topic: dict[str, list[WrittenBatch]] = {}
        for batch in batches:
            by_topic.setdefault(batch.topic, []).append(batch)
        pieces = [_text(transactional_id), _ACKS_AND_TIMEOUT.pack(ALL_REPLICAS, timeout_ms, len(by_topic))]
        for topic, own in by_topic.items():
            pieces += [_text(topic), _INT.pack(len(own))]
            for batch in own:
                pieces += [_BATCH_HEAD.pack(batch.partition, len(batch.wire)), batch.wire]
        self._body = b"".join(pieces)

    def build(self, request_struct_class: type[Any]) -> Any:
        return request_struct_class(self._body)


class _Fields:
    """Reads fields of a message one after another."""

    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self._at = 0

    def seen(self, layout: Struct) -> tuple[Any, ...]:
        return layout.unpack_from(self._raw, self._at)

    def skip(self, layout: Struct) -> None:
        self._at += layout.size

    def number(self, layout: Struct) -> int:
        (value,) = layout.unpack_from(self._raw, self._at)
        self._at += layout.size
        return int(value)

    def text(self) -> str | None:
        size = self.number(_SHORT)
        if size < 0:
            return None
        self._at += size
        return self._raw[self._at - size : self._at].decode(errors="replace")


def _text(text: str | None) -> bytes:
    if text is None:
        return _SHORT.pack(-1)
    encoded = text.encode()
    return _SHORT.pack(len(encoded)) + encoded
