"""Screening: keys, sizes and formats of a run, before any value is parsed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from topics.codecs.batch import Batch
from topics.codecs.content_types import (
    FRAME_FIRST_BYTE,
    content_type,
    is_undecodable,
    may_be_by_schema,
    uniform_wire,
    wire_of_content_type,
    wire_of_value,
)
from topics.codecs.envelopes import unwrap
from topics.codecs.flaws import Flaw, malformed
from topics.codecs.frames.schema_ids import (
    NO_ID,
    are_before_bodies,
    bodies,
    distinct_ids,
    ids_before_bodies,
)
from topics.codecs.frames.wire_format import (
    ID_HEADER,
    PREFIX_BYTES,
    id_before_body,
    id_header,
    id_in_header,
)
from topics.codecs.json_schema import check_of
from topics.codecs.limits import Limits
from topics.columns.records import Format, Headers, Ints32, Malformed, RawRecords, Schemas
from topics.columns.spans import Spans
from topics.errors import Reason
from topics.registry.registered_schema import RegisteredSchema

ALL_FORMATS: tuple[Format, ...] = ("json", "packed", "arrow")

Form = Format | RegisteredSchema
"""The format of a record's value, or the schema of Avro or Protobuf that it is by."""
Batches = dict[Form, Batch]


def screen(
    raw: RawRecords,
    limits: Limits,
    formats: tuple[Format, ...] = ALL_FORMATS,
    max_values: int | None = None,
    read_keys: ReadKeys | None = None,
) -> tuple[Batches, list[Malformed]]:
    """Return the records that may be parsed, by format, and the outcomes of the other records.

    If a schema registry is in use (`raw.schemas`), records that name a schema are without their frames. Those
    with a JSON schema are JSON, for every topic.

    `max_values` bounds the JSON in an envelope, which is parsed here (None: the bound of an instance or
    label). `read_keys` replaces `model_keys`, the default. A run of good records in one format is recognised
    without a loop in Python.
    """
    keys, key, flaws = (read_keys or model_keys)(raw.keys, limits)
    if not flaws and len(raw):
        batches = _all_by_schema(raw, limits, keys, key) if raw.schemas else None
        if batches is not None:
            return batches, []
        wire = None if may_name_schema(raw) else uniform_wire(raw.values, raw.headers)
        for form in formats:
            if wire == form and fit(raw.values, limits):
                record = np.arange(len(raw), dtype=np.int32)
                return {form: Batch(raw.partition, record, raw.offsets, raw.values, keys, key)}, []  # type: ignore[arg-type]
    return _sort(raw, limits, formats, max_values or limits.json_max_values, keys, key, flaws)


def may_name_schema(raw: RawRecords) -> bool:
    """Whether some record may name a schema, in a header or before its value."""
    return raw.schemas is not None and (bool(raw.schemas) or not are_before_bodies(raw.headers))


def _all_by_schema(raw: RawRecords, limits: Limits, keys: list[str], key: Ints32) -> Batches | None:
    """Return the records by schema if each has the id of a schema before its value, else None."""
    if not are_before_bodies(raw.headers) or not fit(raw.values, limits):
        return None
    values = raw.spans.values
    ids = ids_before_bodies(values)
    numbers = distinct_ids(ids)
    if NO_ID in numbers:
        return None
    schemas = {number: (raw.schemas or {}).get(number) for number in numbers}
    record = np.arange(len(raw), dtype=np.int32)
    contents = bodies(values)
    batch = Batch(raw.partition, record, raw.offsets, contents, keys, key)  # type: ignore[arg-type]
    forms: dict[Form, list[int]] = {}
    for number, schema in schemas.items():
        if schema is None:
            return None
        if schema.kind == "JSON" and not check_of(schema).fit(contents.where(ids == number)):
            return None  # the flaws are found one by one
        forms.setdefault(_form(schema), []).append(number)
    if len(forms) == 1:
        return dict.fromkeys(forms, batch)
    return {form: batch.where(np.isin(ids, numbers)) for form, numbers in forms.items()}


def _form(schema: RegisteredSchema) -> Form:
    return "json" if schema.kind == "JSON" else schema


ModelKeys = tuple[list[str], Ints32, dict[bytes | None, Flaw]]
ReadKeys = Callable[[Sequence[bytes | None], Limits], ModelKeys]


def model_keys(keys: Sequence[bytes | None], limits: Limits) -> ModelKeys:
    """Return the distinct keys as text, int32[n], indices into them (-1: bad), and the flaws of bad keys."""
    distinct: list[str] = []
    codes: dict[bytes | None, int] = {}
    flaws: dict[bytes | None, Flaw] = {}
    for key in dict.fromkeys(keys):
        text = key_text(key, limits.text_max_bytes)
        if isinstance(text, str):
            codes[key] = len(distinct)
            distinct.append(text)
        else:
            codes[key] = -1
            flaws[key] = text
    return distinct, np.fromiter(map(codes.__getitem__, keys), np.int32, len(keys)), flaws


def key_text(key: bytes | None, limit: int) -> str | Flaw:
    """Return a model key as text, or its flaw; `limit` bounds its bytes."""
    if not key:
        return Flaw(Reason.MISSING_KEY, "the key is null or empty; it must be the model key in UTF-8")
    if len(key) > limit:
        detail = f"a key of {len(key):,} bytes must have at most text.max.bytes={limit:,}"
        return Flaw(Reason.TOO_LONG, detail)
    try:
        return key.decode()
    except UnicodeDecodeError as error:
        return Flaw(Reason.BAD_KEY, f"the key must be UTF-8; byte {error.start} is not")


def fit(values: Sequence[bytes | None], limits: Limits) -> bool:
    """Whether no value is null or too large."""
    if isinstance(values, Spans):
        return not values.any_null and values.longest <= limits.record_max_bytes
    try:
        return max(map(len, values)) <= limits.record_max_bytes  # type: ignore[arg-type]
    except TypeError:  # a null value
        return False


def _sort(
    raw: RawRecords,
    limits: Limits,
    formats: tuple[Format, ...],
    max_values: int,
    keys: list[str],
    key: Ints32,
    bad_keys: dict[bytes | None, Flaw],
) -> tuple[Batches, list[Malformed]]:
    rows: dict[Form, list[int]] = {form: [] for form in formats}
    texts: dict[Form, list[bytes]] = {form: [] for form in formats}
    outcomes: list[Malformed] = []
    for record, value in enumerate(raw.values):
        flaw = bad_keys.get(raw.keys[record])
        found = flaw or _check(value, raw.headers[record], limits, formats, max_values, raw.schemas)
        if isinstance(found, Flaw):
            outcomes.append(malformed(record, found))
        else:
            form, text = found
            rows.setdefault(form, []).append(record)
            texts.setdefault(form, []).append(text)
    batches: Batches = {}
    for form, chosen in rows.items():
        if chosen:
            record_numbers = np.array(chosen, dtype=np.int32)
            offsets = [raw.offsets[record] for record in chosen]
            batches[form] = Batch(
                raw.partition, record_numbers, offsets, texts[form], keys, key[record_numbers]
            )
    return batches, outcomes


def _check(
    value: bytes | None,
    headers: Headers,
    limits: Limits,
    formats: tuple[Format, ...],
    max_values: int,
    schemas: Schemas | None,
) -> tuple[Form, bytes] | Flaw:
    """Return the format of one record and the text to parse, or its flaw."""
    if value is None:
        return Flaw(Reason.NULL_VALUE, "the value is null; a record of this topic is never a tombstone")
    if len(value) > limits.record_max_bytes:
        return Flaw(Reason.TOO_LARGE, f"{len(value)} bytes; record.max.bytes={limits.record_max_bytes}")
    if is_undecodable(headers):
        return Flaw(Reason.BAD_HEADER, "the name of one of its headers is not UTF-8, which Kafka requires")
    given = content_type(headers)
    if schemas is not None:
        in_header = id_header(headers)
        if in_header is not None:
            return _by_header(value, in_header, schemas, max_values)
        if value[:1] == bytes([FRAME_FIRST_BYTE]) and may_be_by_schema(given):
            return _by_prefix(value, schemas, max_values)
    wire = wire_of_value(value) if given is None else wire_of_content_type(given)
    if wire is None:
        name = (given or b"").decode("latin-1")
        return Flaw(
            Reason.UNKNOWN_CONTENT_TYPE,
            f"content-type {name!r} is not read here; known: {', '.join(formats)}",
        )
    if wire == "cloudevent" or wire == "framed":
        text = unwrap(wire, value, max_values)
        return ("json", text) if isinstance(text, bytes) else text
    if wire not in formats:
        return Flaw(
            Reason.UNKNOWN_CONTENT_TYPE, f"{wire} is not read on this topic; known: {', '.join(formats)}"
        )
    return wire, value


def _by_header(value: bytes, content: bytes, schemas: Schemas, max_values: int) -> tuple[Form, bytes] | Flaw:
    """Return the schema that a header names, and the value by it."""
    named = id_in_header(content)
    if named is None:
        return Flaw(
            Reason.BAD_HEADER,
            f"the header {ID_HEADER} must be 0x00 and an id of 4 bytes, or 0x01 and a GUID of 16 bytes",
        )
    schema = schemas.get(named[0])
    if schema is None:
        return _unknown(named[0])
    if schema.kind == "PROTOBUF":
        return schema, named[1] + value
    return _body(schema, value, max_values)


def _by_prefix(value: bytes, schemas: Schemas, max_values: int) -> tuple[Form, bytes] | Flaw:
    """Return the schema whose id is before a value, and the value by it."""
    number = id_before_body(value)
    if number is None:
        return Flaw(
            Reason.BAD_VALUE, "a value that begins with 0x00 must have a schema id of 4 bytes after it"
        )
    schema = schemas.get(number)
    return _unknown(number) if schema is None else _body(schema, value[PREFIX_BYTES:], max_values)


def _body(schema: RegisteredSchema, body: bytes, max_values: int) -> tuple[Form, bytes] | Flaw:
    """Return a body, or the flaw of JSON that does not fit its schema; readers check the other kinds."""
    flaw = check_of(schema).flaw(body, max_values) if schema.kind == "JSON" else None
    return flaw or (_form(schema), body)


def _unknown(number: object) -> Flaw:
    return Flaw(Reason.UNKNOWN_SCHEMA, f"the schema registry does not have schema {number}")
