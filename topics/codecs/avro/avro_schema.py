"""Writer schemas: parsed and checked by fastavro, with the logical types that change a value."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import fastavro
import fastavro.read
import orjson
from fastavro.schema import SchemaParseException, UnknownType

from topics.errors import SchemaError

DECIMAL: Final = "streamgrove-decimal"
UUID: Final = "streamgrove-uuid"
"""Logical types that fastavro reads by functions of this module: its own decimals are rounded."""
NAME: Final = "streamgrove.name"
"""Property of a field: the name of its feature, where that is not a name of Avro."""
MAX_SCALE: Final = 1000
"""A decimal with more places after its point is read as bytes."""
MAX_SIZE: Final = 1 << 30
"""Bytes of a fixed, at most."""
MAX_NESTING: Final = 200
"""Definitions within each other, at most. Python's own bound depends on the depth of the caller, and a schema
must be refused by all threads or by none.
"""

PRIMITIVES: Final = frozenset({"null", "boolean", "int", "long", "float", "double", "string", "bytes"})


@dataclass(frozen=True, slots=True, eq=False)
class AvroSchema:
    """A writer schema with all types that it names."""

    root: Any
    named: Mapping[str, Any]

    @classmethod
    def of(cls, text: str | bytes, references: Sequence[str | bytes] = ()) -> AvroSchema:
        """Return the schema in a JSON text; `references` are the texts of schemas that it names, each after
        those that it names itself. Raise SchemaError if it is not a schema of Avro.
        """
        named: dict[str, Any] = {}
        try:
            for reference in references:
                fastavro.parse_schema(_marked(_document(reference), 0), named)
            root = fastavro.parse_schema(_marked(_document(text), 0), named)
        except (
            SchemaParseException,
            UnknownType,
            orjson.JSONDecodeError,
            LookupError,
            TypeError,
            ValueError,
            RecursionError,
        ) as error:
            message = f"the schema is not an Avro schema: {type(error).__name__}: {error}"
            raise SchemaError(message) from error
        return cls(root, named)

    def type_of(self, node: Any) -> Any:
        """Return the definition of a type that may be given by its name."""
        return self.named[node] if isinstance(node, str) and node not in PRIMITIVES else node


def name_of(node: Any) -> str:
    """Return the Avro type of a definition: "record", "int", "union" and so on."""
    if isinstance(node, str):
        return node
    if isinstance(node, list):
        return "union"
    kind = node["type"]
    return name_of(kind) if not isinstance(kind, str) else kind


def logical(node: Any) -> str | None:
    """Return the logical type of a definition, of those that change a value."""
    return node.get("logicalType") if isinstance(node, dict) else None


def _document(text: str | bytes) -> Any:
    """Return the parsed text; a bare name of a primitive type is a schema, too."""
    bare = (text.decode() if isinstance(text, bytes) else text).strip()
    return bare if bare in PRIMITIVES else orjson.loads(bare)


def _marked(node: Any, depth: int) -> Any:
    """Return a schema whose logical types are those of this module; others do not change a number.

    Raise SchemaError for a definition that fastavro accepts, but that is not one of Avro.
    """
    if depth > MAX_NESTING:
        message = f"the schema has more than {MAX_NESTING} definitions within each other; name inner types"
        raise SchemaError(message)
    if isinstance(node, list):
        return [_marked(branch, depth + 1) for branch in node]
    if not isinstance(node, dict):
        return node
    _check(node)
    marked = {
        name: _marked(part, depth + 1) if name in ("type", "items", "values") else part
        for name, part in node.items()
    }
    if "fields" in node:
        marked["fields"] = [_marked(part, depth + 1) for part in node["fields"]]
    kind = marked.pop("logicalType", None)
    storage = node.get("type")
    if kind == "decimal" and storage in ("bytes", "fixed") and 0 <= _scale(node) <= MAX_SCALE:
        marked["logicalType"] = DECIMAL
    elif kind == "uuid" and storage == "fixed" and node.get("size") == 16:
        marked["logicalType"] = UUID
    return marked


def _check(node: Mapping[str, Any]) -> None:
    size, symbols = node.get("size"), node.get("symbols")
    if node.get("type") == "fixed" and not (type(size) is int and 0 <= size <= MAX_SIZE):
        message = f"size {size!r} of a fixed must be a whole number from 0 to {MAX_SIZE:,}; correct it"
        raise SchemaError(message)
    if node.get("type") == "enum" and not isinstance(symbols, list):
        message = f"symbols of an enum must be an array of names; they are {type(symbols).__name__}"
        raise SchemaError(message)
    fields = node.get("fields") or ()
    for field in fields if isinstance(fields, list) else ():
        for name in ("name", NAME):
            value = field.get(name, "") if isinstance(field, dict) else ""
            if not isinstance(value, str):
                message = f"{name} {value!r} of a field must be a string; write it in quotes"
                raise SchemaError(message)


def _scale(node: Mapping[str, Any]) -> int:
    scale = node.get("scale", 0)
    return scale if type(scale) is int else -1


def _read_decimal(stored: Any, writer: dict[Any, Any] | None, _reader: Any = None) -> float:
    assert writer is not None
    unscaled = int.from_bytes(stored, "big", signed=True)
    try:
        return float(unscaled / 10 ** int(writer.get("scale", 0)))  # rounded once
    except OverflowError:
        return float("inf") if unscaled > 0 else float("-inf")


def _read_uuid(stored: bytes, _writer: Any, _reader: Any = None) -> str:
    return str(uuid.UUID(bytes=stored))


for _storage in ("bytes", "fixed"):
    fastavro.read.LOGICAL_READERS[f"{_storage}-{DECIMAL}"] = _read_decimal
fastavro.read.LOGICAL_READERS[f"fixed-{UUID}"] = _read_uuid
