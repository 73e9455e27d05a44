"""Documents: values that fastavro has read, as the JSON objects that the other readers take."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from io import BytesIO
from typing import Any

import fastavro

from topics.codecs.avro.avro_schema import AvroSchema
from topics.codecs.avro.layout import FEATURES, Cell, Layout
from topics.codecs.flaws import Flaw, Flaws, quote
from topics.codecs.json.compiled.shape import Members
from topics.codecs.json.documents import Document
from topics.errors import Reason


def values(schema: AvroSchema, records: Iterable[bytes]) -> list[Any]:
    """Return the value of each record; all of them have been checked to be values of the schema."""
    root = schema.root
    return [fastavro.schemaless_reader(BytesIO(record), root, None) for record in records]


def documents(layout: Layout, members: Members, contents: list[Any], flaws: Flaws) -> list[Document]:
    """Return n values as documents; infinite features are noted as flaws."""
    features = layout.features
    rows: list[Document] = []
    for row, value in enumerate(contents):
        document: Document = {name: plain(value[name]) for name in members.roles if name in value}
        if layout.is_open:
            document[FEATURES] = _finite_cells(plain(value[FEATURES]), row, flaws)
        elif layout.has_features and (layout.is_flat or value[FEATURES] is not None):
            cells = {cell.name: plain(_at(value, cell)) for cell in features}
            document[FEATURES] = _finite_cells(cells, row, flaws)
        rows.append(document)
    return rows


def plain(value: Any) -> Any:
    """Return a value as JSON has it: bytes as the characters of their numbers, as in Avro's JSON encoding."""
    if isinstance(value, bytes):
        return value.decode("latin-1")
    # Loops, not comprehensions, which take a second frame of the stack for each level of a value.
    if isinstance(value, dict):
        members = {}
        for name, part in value.items():
            members[name] = plain(part)
        return members
    if isinstance(value, list):
        items = []
        for part in value:
            items.append(plain(part))
        return items
    return value


def without_nulls(value: Any) -> Any:
    """Return a value without its null fields: a field that Avro cannot leave out is null."""
    if isinstance(value, dict):
        members = {}
        for name, part in value.items():
            if part is not None:
                members[name] = without_nulls(part)
        return members
    if isinstance(value, list):
        items = []
        for part in value:
            items.append(without_nulls(part))
        return items
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _at(value: Mapping[str, Any], cell: Cell) -> Any:
    """Return the content of a cell; None if a record around it is null, or of another type."""
    content: Any = value
    for name in cell.path:
        content = content.get(name) if isinstance(content, dict) else None
    return None if cell.is_parted and isinstance(content, dict) else content


def _finite_cells(cells: Any, row: int, flaws: Flaws) -> Any:
    """Return features with null for NaN; note the row if one is infinite."""
    if isinstance(cells, dict):
        named = [(quote(name), cell) for name, cell in cells.items()]
    elif isinstance(cells, list):
        named = [(str(column), cell) for column, cell in enumerate(cells)]
    else:
        return cells
    for name, cell in named:
        if isinstance(cell, float) and math.isinf(cell):
            detail = f"feature {name} is infinite; NaN and null stand for a missing value"
            flaws.setdefault(row, Flaw(Reason.NOT_FINITE, detail))
    if isinstance(cells, dict):
        return {name: _number(cell) for name, cell in cells.items()}
    return [_number(cell) for cell in cells]


def _number(cell: Any) -> Any:
    return None if isinstance(cell, float) and not math.isfinite(cell) else cell
