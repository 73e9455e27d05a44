"""Message values: messages of Protobuf as the JSON objects of the same names."""

from __future__ import annotations

import math
from collections.abc import Container
from typing import Any, Final

FEATURES: Final = "features"

_WRAPPED: Final = "google.protobuf."
_TIMESTAMP: Final = "google.protobuf.Timestamp"
_TIMESTAMP_FILE: Final = "google/protobuf/timestamp.proto"
_WRAPPERS_FILE: Final = "google/protobuf/wrappers.proto"
_WRAPPERS: Final = frozenset(
    _WRAPPED + name
    for name in (
        "BoolValue",
        "BytesValue",
        "DoubleValue",
        "FloatValue",
        "Int32Value",
        "Int64Value",
        "StringValue",
        "UInt32Value",
        "UInt64Value",
    )
)


class InfiniteError(ValueError):
    """A field is infinite, which JSON cannot hold; the message is the name of the field."""


def document(message: Any, members: Container[str] | None) -> dict[str, Any]:
    """Return a message as an object.

    A field `features` has the features of a record. Without it, all fields but `members` are features; None:
    there are no features. Fields of messages inside the features have dotted names. A field without a value
    is left out. Raise InfiniteError.
    """
    fields = plain(message)
    if FEATURES in message.DESCRIPTOR.fields_by_name or members is None:
        if isinstance(fields.get(FEATURES), dict):
            fields[FEATURES] = _dotted(fields[FEATURES])
        return fields
    features = {name: value for name, value in fields.items() if name not in members}
    others = {name: value for name, value in fields.items() if name in members}
    return {**others, FEATURES: _dotted(features)}


def plain(message: Any, prefix: str = "") -> dict[str, Any]:
    """Return the fields of a message, in the order of the schema."""
    fields: dict[str, Any] = {}
    for field in message.DESCRIPTOR.fields:
        if field.has_presence and not message.HasField(field.name):
            continue
        value, name = getattr(message, field.name), prefix + field.name
        kind = field.message_type
        if kind is not None and kind.GetOptions().map_entry:
            inner = kind.fields_by_name["value"]
            fields[field.name] = {
                _key(key): _cell(inner, value[key], f"{name}.{key}") for key in sorted(value, key=str)
            }
        elif field.is_repeated:
            fields[field.name] = [_cell(field, part, name) for part in value]
        else:
            fields[field.name] = _cell(field, value, name)
    return fields


def _key(key: Any) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)


def _cell(field: Any, value: Any, name: str) -> Any:
    if field.message_type is not None:
        full_name, file = field.message_type.full_name, field.message_type.file.name
        if full_name == _TIMESTAMP and file == _TIMESTAMP_FILE:
            return value.seconds * 1000 + value.nanos // 1_000_000
        is_wrapper = full_name in _WRAPPERS and file == _WRAPPERS_FILE  # and not a type of that name
        return _cell_of_wrapper(value, name) if is_wrapper else plain(value, f"{name}.")
    if field.enum_type is not None:
        member = field.enum_type.values_by_number.get(value)
        return value if member is None else member.name
    return _scalar(value, name)


def _cell_of_wrapper(value: Any, name: str) -> Any:
    return _scalar(value.value, name)


def _scalar(value: Any, name: str) -> Any:
    if isinstance(value, bytes):
        return value.decode("latin-1")  # as in Avro's JSON encoding
    if isinstance(value, float) and not math.isfinite(value):
        if math.isinf(value):
            raise InfiniteError(name)
        return None
    return value


def _dotted(fields: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in fields.items():
        if isinstance(value, dict):
            flat |= _dotted(value, f"{prefix}{name}.")
        else:
            flat[prefix + name] = value
    return flat
