"""Arrow metadata: the outline of a stream, read before any of it is unpacked.

A compressed body may unpack to a thousand times its size, so compression has to be detected before pyarrow
opens the stream, and pyarrow has no function for it. The few fields needed are read from the FlatBuffers of
the messages (https://arrow.apache.org/docs/format/Columnar.html, "Encapsulated message format";
format/Message.fbs).
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct, error
from typing import Final

from topics.codecs.flaws import Flaw
from topics.errors import Reason

CONTINUATION: Final = 0xFFFFFFFF

_PREFIX = Struct("<Ii")  # continuation mark, bytes of the metadata
_U8, _U16, _I32, _U32, _I64 = Struct("<B"), Struct("<H"), Struct("<i"), Struct("<I"), Struct("<q")

# Fields of the tables by position; kinds of message (Message.fbs, union MessageHeader).
_HEADER_TYPE, _HEADER, _BODY_LENGTH = 1, 2, 3
_BATCH_LENGTH, _BATCH_COMPRESSION = 0, 3
_DICTIONARY_DATA = 1
_SCHEMA_FIELDS = 1
_SCHEMA, _DICTIONARY_BATCH, _RECORD_BATCH = 1, 2, 3

MAX_MESSAGES: Final = 4096
"""Messages of a stream: its schema, one dictionary for each dictionary column, batches that may be empty."""


@dataclass(frozen=True, slots=True)
class StreamOutline:
    """The places of the messages of a stream, and their rows in total."""

    rows: int
    columns: int
    schema_stop: int  # the first message, without a body, is the schema
    batches: list[int]  # positions of the record batches


def inspect(value: bytes, max_rows: int, max_columns: int = 2**31) -> StreamOutline | Flaw:
    """Return the outline of the stream; a flaw if it is no stream, is compressed, or exceeds a limit."""
    try:
        outline = _outline(value)
    except (error, IndexError):  # an offset that points outside the record
        return Flaw(Reason.BAD_BLOCK, "the record must be an Arrow IPC stream; it is cut off or damaged")
    if isinstance(outline, Flaw):
        return outline
    if outline.rows > max_rows:
        return Flaw(Reason.TOO_MANY_ROWS, f"{outline.rows} rows; block.max.rows={max_rows}")
    if outline.columns > max_columns:
        detail = f"{outline.columns:,} columns; at most {max_columns:,} may be named"
        return Flaw(Reason.TOO_MANY_FEATURES, detail)
    if outline.rows < 1:
        return Flaw(Reason.BAD_BLOCK, "the block must have at least one row")
    return outline


def _outline(value: bytes) -> StreamOutline | Flaw:
    at, rows, columns, schema_stop, messages = 0, 0, 0, 0, 0
    batches: list[int] = []
    while at < len(value):
        mark, size = _PREFIX.unpack_from(value, at)
        if mark != CONTINUATION or size < 0:
            detail = (
                "the record must be an Arrow IPC stream: each message begins with 0xFFFFFFFF and its length"
            )
            return Flaw(Reason.BAD_BLOCK, detail)
        if size == 0:  # end of stream
            break
        messages += 1
        if messages > MAX_MESSAGES:
            return Flaw(Reason.BAD_BLOCK, f"the block must have at most {MAX_MESSAGES:,} messages")
        start = at + _PREFIX.size
        message = _table(value, start)
        kind = _number(value, message, _HEADER_TYPE, _U8)
        body = _number(value, message, _BODY_LENGTH, _I64)
        if body < 0 or start + size + body > len(value):
            raise IndexError(body)
        if kind == _SCHEMA:
            schema = _child(value, message, _HEADER)
            fields = None if schema is None else _child(value, schema, _SCHEMA_FIELDS)
            columns = 0 if fields is None else int(_U32.unpack_from(value, fields)[0])
        if kind in (_RECORD_BATCH, _DICTIONARY_BATCH):
            batch = _child(value, message, _HEADER)
            if kind == _DICTIONARY_BATCH and batch is not None:
                batch = _child(value, batch, _DICTIONARY_DATA)
            if batch is None:
                raise IndexError(kind)
            if _child(value, batch, _BATCH_COMPRESSION) is not None:
                detail = "a compressed body is refused; set compression.type of the producer instead"
                return Flaw(Reason.BAD_BLOCK, detail)
            length = _number(value, batch, _BATCH_LENGTH, _I64)
            if length < 0:
                raise IndexError(length)
            if kind == _RECORD_BATCH:
                rows += length
                batches.append(at)
        at = start + size + body
        schema_stop = schema_stop or at
    return StreamOutline(rows, columns, schema_stop, batches)


def _table(value: bytes, at: int) -> int:
    """Return the position of the table to which the offset at `at` points."""
    return at + int(_U32.unpack_from(value, at)[0])


def _field(value: bytes, table: int, field: int) -> int | None:
    """Return the position of a field, None if the table does not have it."""
    vtable = table - int(_I32.unpack_from(value, table)[0])
    if vtable < 0:
        raise IndexError(vtable)
    entry = 4 + 2 * field
    if entry >= _U16.unpack_from(value, vtable)[0]:
        return None
    offset = int(_U16.unpack_from(value, vtable + entry)[0])
    return table + offset if offset else None


def _number(value: bytes, table: int, field: int, kind: Struct) -> int:
    at = _field(value, table, field)
    return 0 if at is None else int(kind.unpack_from(value, at)[0])


def _child(value: bytes, table: int, field: int) -> int | None:
    at = _field(value, table, field)
    return None if at is None else _table(value, at)
