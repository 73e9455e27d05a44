"""Schema ids of a run: which schemas its values are by, before they are looked up and read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from topics.codecs.content_types import content_type, may_be_by_schema
from topics.codecs.frames.wire_format import (
    ID_HEADER,
    MAGIC,
    PREFIX_BYTES,
    id_before_body,
    id_header,
    id_in_header,
)
from topics.columns.headers import Headers
from topics.columns.records import Ints64, RawRecords
from topics.columns.spans import Spans, any_headers, distinct_headers
from topics.registry.registered_schema import SchemaId

NO_ID: Final = -1


def schema_id(value: bytes | None, headers: Headers) -> SchemaId | None:
    """Return the id of the schema that a record names; None if it names none."""
    if value is None:
        return None
    content = id_header(headers)
    if content is not None:
        in_header = id_in_header(content)
        return None if in_header is None else in_header[0]
    return id_before_body(value) if may_be_by_schema(content_type(headers)) else None


def schema_ids(raw: RawRecords) -> list[SchemaId | None]:
    """Return the id of the schema that each record names, None where it names none."""
    if are_before_bodies(raw.headers):
        ids = ids_before_bodies(raw.spans.values).tolist()
        return [None if number == NO_ID else number for number in ids]
    return [schema_id(value, headers) for value, headers in zip(raw.values, raw.headers, strict=True)]


def distinct_schema_ids(raw: RawRecords) -> set[SchemaId]:
    """Return the ids of the schemas that records of a run name."""
    if are_before_bodies(raw.headers):
        return {number for number in distinct_ids(ids_before_bodies(raw.spans.values)) if number != NO_ID}
    return {number for number in schema_ids(raw) if number is not None}


def are_before_bodies(headers: Sequence[Headers]) -> bool:
    """Whether every record that names a schema has its id before the body."""
    if not any_headers(headers):
        return True
    return all(
        may_be_by_schema(content_type(own)) and all(name.isascii() and name != ID_HEADER for name, _ in own)
        for own in distinct_headers(headers)
    )


def ids_before_bodies(values: Spans) -> Ints64:
    """Return int64[n], the schema id before each body; NO_ID for a value that does not begin with one."""
    buffer = values.bytes
    if len(buffer) < PREFIX_BYTES:
        return np.full(len(values), NO_ID, dtype=np.int64)
    is_long = values.lengths >= PREFIX_BYTES
    places = np.where(is_long, values.starts, 0)
    # The four bytes after each byte of the buffer as one number: one look for a value instead of four.
    numbers = np.ndarray(len(buffer) - PREFIX_BYTES + 1, ">u4", buffer, offset=1, strides=(1,))
    return np.where(is_long & (buffer[places] == MAGIC), numbers[places], np.int64(NO_ID))


def distinct_ids(ids: Ints64) -> list[int]:
    """Return the numbers among ids, in their order; most runs have one, and need no sorting."""
    if len(ids) and (ids == ids[0]).all():
        return [int(ids[0])]
    numbers: list[int] = np.unique(ids).tolist()
    return numbers


def bodies(values: Spans) -> Spans:
    """Return the bodies of values that all begin with a schema id."""
    return Spans(values.buffer, values.starts + PREFIX_BYTES, values.lengths - PREFIX_BYTES)
