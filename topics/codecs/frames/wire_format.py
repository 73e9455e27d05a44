"""Wire format of Confluent's serializers: how a record names the schema of its value.

    value:    0x00 | id, 4 bytes big-endian | body
    header:   __value_schema_id = 0x00 | id, 4 bytes, or 0x01 | GUID, 16 bytes; the value is the body

A body of Protobuf begins with the indexes of its message; if the id is in a header, they follow the id there.
"""

from __future__ import annotations

import struct
from typing import Final
from uuid import UUID

from topics.columns.headers import Headers
from topics.registry.registered_schema import SchemaId

MAGIC: Final = 0x00
MAGIC_GUID: Final = 0x01
ID_HEADER: Final = "__value_schema_id"
PREFIX_BYTES: Final = 5
GUID_BYTES: Final = 17

_ID: Final = struct.Struct(">BI")


def framed(schema_id: int, body: bytes) -> bytes:
    """Return a value whose schema has an id; `body` is the value by the schema.

    >>> framed(7, b"x").hex()
    '000000000778'
    """
    return _ID.pack(MAGIC, schema_id) + body


def id_before_body(value: bytes) -> int | None:
    """Return the schema id at the beginning of a value; None if it does not begin with one."""
    if len(value) < PREFIX_BYTES or value[0] != MAGIC:
        return None
    return int(_ID.unpack_from(value)[1])


def id_header(headers: Headers) -> bytes | None:
    """Return the value of the last header with a schema id; None if there is none, or an empty one."""
    content = None
    for name, value in headers:
        if name == ID_HEADER:
            content = value
    return content or None


def id_in_header(content: bytes) -> tuple[SchemaId, bytes] | None:
    """Return the id in a header, and the bytes after it; None if it has none."""
    if content[0] == MAGIC and len(content) >= PREFIX_BYTES:
        return int(_ID.unpack_from(content)[1]), content[PREFIX_BYTES:]
    if content[0] == MAGIC_GUID and len(content) >= GUID_BYTES:
        return UUID(bytes=content[1:GUID_BYTES]), content[GUID_BYTES:]
    return None
