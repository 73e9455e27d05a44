"""Avro by its specification, one value at a time: bytes to values and back, and values to JSON objects."""

import json
import struct
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "string", "bytes")


class NotAValue(Exception):
    """Bytes that are not a value of the schema."""


class Record(dict[str, Any]):
    """A record, which a map is not."""


class Types:
    """A schema and the types that it names."""

    def __init__(self, schema: Any) -> None:
        self.root = schema
        self._named: dict[str, Any] = {}
        self._find(schema)

    def _find(self, node: Any) -> None:
        if isinstance(node, list):
            for branch in node:
                self._find(branch)
        elif isinstance(node, dict):
            if "name" in node:
                self._named[node["name"]] = node
            for part in ("type", "items", "values"):
                self._find(node.get(part))
            for field in node.get("fields", ()):
                self._find(field["type"])

    def of(self, node: Any) -> Any:
        return self._named[node] if isinstance(node, str) and node not in PRIMITIVES else node

    def name(self, node: Any) -> str:
        kind = self.of(node)
        return "union" if isinstance(kind, list) else kind if isinstance(kind, str) else kind["type"]


def write(types: Types, node: Any, value: Any) -> bytes:
    """Return a value in bytes; a union takes a pair: the number of the branch, and the value."""
    kind, name = types.of(node), types.name(node)
    if name == "union":
        return _written_long(value[0]) + write(types, kind[value[0]], value[1])
    if name == "record":
        return b"".join(write(types, field["type"], value[field["name"]]) for field in kind["fields"])
    if name == "array":
        items = b"".join(write(types, kind["items"], item) for item in value)
        return (_written_long(len(value)) + items if value else b"") + b"\0"
    if name == "map":
        items = b"".join(_blob(key.encode()) + write(types, kind["values"], v) for key, v in value.items())
        block = _written_long(-len(value)) + _written_long(len(items)) + items
        return (block if value else b"") + b"\0"
    if name in ("int", "long"):
        return _written_long(value)
    if name == "enum":
        return _written_long(kind["symbols"].index(value))
    if name == "string":
        return _blob(value.encode())
    if name == "bytes":
        return _blob(value)
    if name == "fixed":
        return bytes(value)
    if name == "boolean":
        return bytes([value])
    return b"" if name == "null" else struct.pack("<f" if name == "float" else "<d", value)


def _written_long(number: int) -> bytes:
    zigzag = (number << 1) ^ (number >> 63)
    out = bytearray()
    while zigzag > 127:
        out.append(zigzag & 127 | 128)
        zigzag >>= 7
    return bytes([*out, zigzag])


def _blob(content: bytes) -> bytes:
    return _written_long(len(content)) + content


class Reader:
    """Reads one value, and refuses whatever the specification does not allow."""

    def __init__(self, types: Types, content: bytes) -> None:
        self._types, self._content, self._at = types, content, 0

    def all(self) -> Any:
        value = self._value(self._types.root)
        if self._at != len(self._content):
            raise NotAValue("bytes are left")
        return value

    def _take(self, n: int) -> bytes:
        if n < 0 or n > len(self._content) - self._at:
            raise NotAValue(f"{n} bytes")
        self._at += n
        return self._content[self._at - n : self._at]

    def _long(self) -> int:
        number = shift = 0
        while True:
            (byte,) = self._take(1)
            number |= (byte & 127) << shift
            shift += 7
            if number >= 1 << 64 or shift > 70:
                raise NotAValue("more than 64 bits")
            if byte < 128:
                return (number >> 1) ^ -(number & 1)

    def _value(self, node: Any) -> Any:  # noqa: C901 - one case for each type
        kind, name = self._types.of(node), self._types.name(node)
        if name == "null":
            return None
        if name == "union":
            branch = self._long()
            if not 0 <= branch < len(kind):
                raise NotAValue("no branch")
            return self._value(kind[branch])
        if name == "record":
            return Record({field["name"]: self._value(field["type"]) for field in kind["fields"]})
        if name in ("array", "map"):
            return self._items(kind, name)
        if name == "boolean":
            (byte,) = self._take(1)
            if byte > 1:
                raise NotAValue("no boolean")
            return byte == 1
        if name in ("int", "long"):
            number = self._long()
            if name == "int" and not -(2**31) <= number < 2**31:
                raise NotAValue("no int")
            return number
        if name == "enum":
            number = self._long()
            if not 0 <= number < len(kind["symbols"]):
                raise NotAValue("no symbol")
            return kind["symbols"][number]
        if name in ("float", "double"):
            return struct.unpack("<f" if name == "float" else "<d", self._take(4 if name == "float" else 8))[
                0
            ]
        content = self._take(kind["size"] if name == "fixed" else self._long())
        if name == "string":
            try:
                return content.decode()
            except UnicodeDecodeError as error:
                raise NotAValue("not UTF-8") from error
        if isinstance(kind, dict) and kind.get("logicalType") == "decimal":
            unscaled = int.from_bytes(content, "big", signed=True)
            return float(Fraction(unscaled, 10 ** kind.get("scale", 0)))
        return content.decode("latin-1")

    def _items(self, kind: Mapping[str, Any], name: str) -> Any:
        found: list[Any] = []
        while count := self._long():
            if count < 0:
                count = -count
                size = self._long()
                if not 0 <= size <= len(self._content) - self._at:
                    raise NotAValue("no size")
            if count > len(self._content):  # no item of the tests' schemas is empty
                raise NotAValue("too many")
            for _ in range(count):
                if name == "array":
                    found.append(self._value(kind["items"]))
                else:
                    key = self._value("string")
                    found.append((key, self._value(kind["values"])))
        return found if name == "array" else dict(found)


def json_of(types: Types, value: Record, members: tuple[str, ...], flat: bool) -> str:
    """Return a record as the JSON object that has the same columns."""
    fields = {field["name"]: field["type"] for field in types.of(types.root)["fields"]}
    document = {name: _odd(value[name]) for name in members if name in value}
    if "features" in fields:
        cells = value["features"]
        document["features"] = _dotted(types, fields["features"], cells) if type(cells) is Record else cells
    elif flat:
        rest = [{"name": name, "type": kind} for name, kind in fields.items() if name not in members]
        document["features"] = _dotted(types, {"type": "record", "name": "flat", "fields": rest}, value)
    if isinstance(document.get("features"), dict):
        document["features"] = {name: _cell(cell) for name, cell in document["features"].items()}
    elif isinstance(document.get("features"), list):
        document["features"] = [_cell(cell) for cell in document["features"]]
    return json.dumps(document, ensure_ascii=False)


def _odd(value: Any) -> Any:
    """Return a member; the number that is not finite as another that is refused for the same reason."""
    return -0.5 if isinstance(value, float) and value - value != 0 else value


def _cell(value: Any) -> Any:
    if isinstance(value, dict):
        return {}  # its content does not matter
    if isinstance(value, list):
        return []
    return None if isinstance(value, float) and value != value else value


def _dotted(
    types: Types, node: Any, value: Any, prefix: str = "", above: tuple[str, ...] = ("Root",)
) -> dict[str, Any]:
    """Return the features of a record, of which a nested one may be null; all names come from the schema."""
    branches = node if isinstance(node, list) else [node]
    (record,) = (types.of(branch) for branch in branches if types.name(branch) == "record")
    cells: dict[str, Any] = {}
    for field in record["fields"]:
        name, kind = prefix + field["name"], field["type"]
        cell = value[field["name"]] if isinstance(value, dict) else None
        options = kind if isinstance(kind, list) else [kind]
        names = [types.name(option) for option in options]
        inner = [types.of(option)["name"] for option in options if types.name(option) == "record"]
        nests = len(inner) == 1 and "map" not in names and inner[0] not in (*above, record["name"])
        if not nests or set(names) - {"record", "null"}:
            cells[name] = None if nests and type(cell) is Record else cell
        if nests:
            cells |= _dotted(
                types, kind, cell if type(cell) is Record else None, f"{name}.", (*above, record["name"])
            )
    return cells
