"""Content types: the format of a record, by its `content-type` header or its first byte."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Final, Literal

from topics.columns.headers import UNDECODABLE
from topics.columns.records import Format, Headers
from topics.columns.spans import Spans, any_headers, distinct_headers

JSON: Final = "application/json"
PACKED: Final = "application/vnd.grove.packed"
ARROW: Final = "application/vnd.apache.arrow.stream"
CLOUDEVENT: Final = "application/cloudevents+json"

CONTENT_TYPES: Final[dict[Format, str]] = {"json": JSON, "packed": PACKED, "arrow": ARROW}

# The encoding of a value. The last two are JSON inside an envelope (envelopes.py).
Wire = Literal["json", "packed", "arrow", "cloudevent", "framed"]

_WIRES: dict[str, Wire] = {
    JSON: "json",
    "text/json": "json",
    PACKED: "packed",
    ARROW: "arrow",
    CLOUDEVENT: "cloudevent",
}
_HEADER = "content-type"

BY_SCHEMA: Final = frozenset(
    {
        "application/avro",
        "application/vnd.apache.avro+binary",
        "application/x-avro",
        "application/x-avro-binary",
        "avro/binary",
        "application/protobuf",
        "application/vnd.google.protobuf",
        "application/x-protobuf",
        "application/schema+json",
        "application/octet-stream",
    }
)
"""Content types of values by a schema, if a registry is in use; serializers mostly send none."""

# JSON begins with none of these bytes: the magic of packed is not UTF-8, an Arrow stream begins with its
# continuation mark 0xFFFFFFFF, and 0x00 begins the frame of Confluent's serializers.
PACKED_FIRST_BYTE: Final = 0xD6
ARROW_FIRST_BYTE: Final = 0xFF
FRAME_FIRST_BYTE: Final = 0x00
_FIRST_BYTES: dict[int, Wire] = {
    PACKED_FIRST_BYTE: "packed",
    ARROW_FIRST_BYTE: "arrow",
    FRAME_FIRST_BYTE: "framed",
}


def content_type(headers: Headers) -> bytes | None:
    """Return the value of the last `content-type` header; None if there is none, or an empty one."""
    found = None
    for name, value in headers:
        if name == _HEADER or (len(name) == len(_HEADER) and name.lower() == _HEADER):
            found = value
    return found or None


def is_undecodable(headers: Headers) -> bool:
    """Whether a name was not UTF-8 on the wire (topics/columns/headers.py), or contains U+FFFD."""
    return any(not name.isascii() and UNDECODABLE in name for name, _ in headers)


def may_be_by_schema(value: bytes | None) -> bool:
    """Whether a record with this content type may have a schema; None: it has no such header."""
    return value is None or _name(value) in BY_SCHEMA or wire_of_content_type(value) == "json"


def wire_of_content_type(value: bytes) -> Wire | None:
    """Return the encoding of a content type, ignoring case and parameters; None if it is not supported."""
    name = _name(value)
    wire = _WIRES.get(name)
    if wire is None and name.startswith("application/") and name.endswith("+json"):
        return "json"
    return wire


def _name(value: bytes) -> str:
    return value.split(b";", 1)[0].strip().lower().decode("latin-1")


def wire_of_value(value: bytes) -> Wire:
    """Return the encoding of a value without content type, by its first byte; JSON by default."""
    return _FIRST_BYTES.get(value[0], "json") if value else "json"


def first_bytes(values: Iterable[bytes | None]) -> set[int] | None:
    """Return the set of first bytes; None if a value is null or empty."""
    if isinstance(values, Spans):
        return values.first_bytes()
    try:
        return set(map(itemgetter(0), values))  # type: ignore[arg-type]
    except (TypeError, IndexError):
        return None


def uniform_wire(values: Iterable[bytes | None], headers: Sequence[Headers]) -> Wire | None:
    """Return the encoding that all records of a batch share; None if they have to be examined one by one."""
    if any_headers(headers):
        headers = distinct_headers(headers)
        if not all(map(str.isascii, {name for each in headers for name, _ in each})):
            return None
        kinds = {content_type(each) for each in headers}
        if None not in kinds:
            wires = {wire_of_content_type(each) for each in kinds if each is not None}
            return wires.pop() if len(wires) == 1 else None
        if len(kinds) > 1:
            return None
    first = first_bytes(values)
    if first is None:
        return None
    wires = {_FIRST_BYTES.get(byte, "json") for byte in first}
    return wires.pop() if len(wires) == 1 else None
