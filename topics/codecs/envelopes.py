"""Envelopes around JSON: CloudEvents in structured mode, and the frame of Confluent's serializers."""

from __future__ import annotations

import orjson

from topics.codecs.content_types import FRAME_FIRST_BYTE, Wire
from topics.codecs.crowding import crowding
from topics.codecs.flaws import Flaw, kind
from topics.errors import Reason

FRAME_BYTES = 5  # 0x00 and the schema id, 4 bytes big-endian


def unwrap(wire: Wire, value: bytes, max_values: int) -> bytes | Flaw:
    """Return the JSON text inside the envelope, or the flaw; `max_values` bounds the values of the record."""
    if wire == "cloudevent":
        return crowding(value, max_values) or _cloudevent(value)
    if value[:1] == bytes([FRAME_FIRST_BYTE]) and len(value) > FRAME_BYTES:
        return value[FRAME_BYTES:]
    return Flaw(
        Reason.NOT_JSON, "a value that begins with 0x00 must have a schema id of 4 bytes and JSON after it"
    )


def _cloudevent(value: bytes) -> bytes | Flaw:
    try:
        event = orjson.loads(value)
    except orjson.JSONDecodeError as error:
        return Flaw(Reason.NOT_JSON, str(error))
    if not isinstance(event, dict):
        return Flaw(Reason.WRONG_TYPE, f"a CloudEvent must be an object; got {kind(event)}")
    if "data" not in event:
        return Flaw(
            Reason.MISSING_FIELD, "data is missing: a structured CloudEvent must carry the record there"
        )
    return orjson.dumps(event["data"])
