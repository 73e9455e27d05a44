"""Programs: a writer schema as instructions in one int64 array, each an operation and its operands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from topics.codecs.avro.avro_schema import DECIMAL, UUID, AvroSchema, logical, name_of
from topics.codecs.avro.layout import FEATURES, Layout, Path, record_of
from topics.codecs.json.compiled.shape import TEXTS
from topics.columns.records import Ints64
from topics.errors import SchemaError

(
    RETURN,
    JUMP,
    CALL,
    BRANCH,
    ITEMS,
    NEXT,
    BOOLEAN,
    INT,
    LONG,
    FLOAT,
    DOUBLE,
    STRING,
    BYTES,
    FIXED,
    ENUM,
    DECIMAL_BYTES,
    DECIMAL_FIXED,
    DIGITS,
    COMPOSITE,
    LEAVE,
) = range(20)
"""Operations, with their operands:

RETURN; JUMP place; CALL place; BRANCH count, then the place of each branch; ITEMS end, 1 if each item has a
key; NEXT; BOOLEAN, INT, LONG, FLOAT, DOUBLE, STRING, BYTES cell; FIXED cell, bytes; ENUM cell, count, then
start and bytes of each symbol; DECIMAL_BYTES cell, scale; DECIMAL_FIXED cell, scale, bytes; DIGITS cell,
number among the cells with digits, 1 if it is an int; COMPOSITE cell; LEAVE, for a record that the library
reads. The cell -1 means that the value is passed over.
"""
NO_CELL: Final = -1
START, MAX_ITEMS, N_CELLS, SYMBOL_BYTES, N_DIGITS, N_MEMBERS, HEADER = range(7)
"""Words before the instructions: the place of the first one, the items that a record may have, the cells to
set to null before each record (0: each record sets all), the bytes of all symbols, the cells with digits, and
the cells before the features.
"""
MAX_WORDS: Final = 1 << 20

_NUMBERS: Final = {"boolean": BOOLEAN, "int": INT, "long": LONG, "float": FLOAT, "double": DOUBLE}
_BLOBS: Final = {"string": STRING, "bytes": BYTES}


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """The instructions of a schema, and what they refer to."""

    code: Ints64
    symbols: bytes
    """The symbols of all enums, which lie after the records in memory."""
    fields: Mapping[int, str]
    """The field that an instruction reads, by the place of the instruction."""
    n_cells: int

    def bounded(self, max_items: int) -> Program:
        """Return the same program for records whose arrays and maps have at most `max_items` items."""
        code = self.code.copy()
        code[MAX_ITEMS] = max_items
        return replace(self, code=code)

    @property
    def n_digits(self) -> int:
        """Cells of a record whose whole numbers are written as digits."""
        return int(self.code[N_DIGITS])


def compiled(schema: AvroSchema, layout: Layout) -> Program:
    """Return the program of a schema, still without a bound for arrays and maps (`Program.bounded`).

    Raise SchemaError if the schema has too many types.
    """
    return _Builder(schema, layout).program()


class _Builder:
    def __init__(self, schema: AvroSchema, layout: Layout) -> None:
        self._schema = schema
        self._layout = layout
        self._cells = {cell.path: number for number, cell in enumerate(layout.cells)}
        self._above = {cell.path[:length] for cell in layout.cells for length in range(1, len(cell.path))}
        self._is_text = [cell.role in TEXTS for cell in layout.cells]
        self._code = [0] * HEADER
        self._fields: dict[int, str] = {}
        self._symbols = bytearray()
        self._symbol_places: dict[str, int] = {}
        self._digits = 0
        self._has_nulls = False
        self._passing: dict[str, int] = {}  # subroutines that pass over a named type, by its name
        self._wanted: list[tuple[int, str]] = []  # calls of subroutines that are not written yet

    def program(self) -> Program:
        self._code[START] = HEADER
        self._value(self._schema.root, (), "the record")
        self._emit(RETURN)
        while self._wanted:
            place, name = self._wanted.pop()
            if name not in self._passing:
                self._passing[name] = len(self._code)
                self._fields_of(self._schema.named[name], None, name)
                self._emit(RETURN)
            self._code[place] = self._passing[name]
        self._emit(0)  # an instruction is read together with the word after it
        n = len(self._layout.cells)
        self._code[N_MEMBERS] = n - len(self._layout.features)
        self._code[N_CELLS] = n if self._has_nulls else 0
        self._code[SYMBOL_BYTES], self._code[N_DIGITS] = len(self._symbols), self._digits
        return Program(np.array(self._code, dtype=np.int64), bytes(self._symbols), self._fields, n)

    def _emit(self, *words: int, field: str = "") -> int:
        """Append an instruction; return its place."""
        place = len(self._code)
        if place + len(words) > MAX_WORDS:
            message = "the schema has too many types; divide it into several records"
            raise SchemaError(message)
        self._code += words
        if field:
            self._fields[place] = field
        return place

    def _value(self, node: Any, path: Path | None, field: str) -> None:
        """Append the instructions of a value; a path of None: its content is passed over."""
        kind = self._schema.type_of(node)
        name = name_of(kind)
        if name == "union":
            self._union(kind, path, field)
        elif name in ("record", "error"):
            self._record(kind, path, field)
        elif name in ("array", "map"):
            self._items(kind, name, path, field)
        elif name == "null":
            self._has_nulls = True
        else:
            self._leaf(kind, name, NO_CELL if path is None else self._cells.get(path, NO_CELL), field)

    def _union(self, branches: list[Any], path: Path | None, field: str) -> None:
        self._has_nulls = True
        place = self._emit(BRANCH, len(branches), *[0] * len(branches), field=field)
        inner = record_of(self._schema, branches)
        ends = []
        for number, branch in enumerate(branches):
            self._code[place + 2 + number] = len(self._code)
            kind = self._schema.type_of(branch)
            # The fields of a record are cells only if it is the one record that the layout has taken apart.
            own = path if name_of(kind) != "record" or kind is inner else None
            if own is None and path is not None:
                self._composite(path)
            self._value(branch, own, field)
            if branch == "null" and path == (FEATURES,):
                self._emit(LEAVE)  # a record without features, not one whose features are all missing
            ends.append(self._emit(JUMP, 0))
        for end in ends:
            self._code[end + 1] = len(self._code)

    def _record(self, kind: Mapping[str, Any], path: Path | None, field: str) -> None:
        if path is not None and (not path or path in self._above):
            self._fields_of(kind, path, field)
            return
        if path is not None:
            self._composite(path)
        self._wanted.append((self._emit(CALL, 0, field=field) + 1, kind["name"]))

    def _fields_of(self, kind: Mapping[str, Any], path: Path | None, field: str) -> None:
        for part in kind["fields"]:
            name = part["name"] if path == () else f"{field}.{part['name']}"
            self._value(part["type"], None if path is None else (*path, part["name"]), name)

    def _items(self, kind: Mapping[str, Any], name: str, path: Path | None, field: str) -> None:
        if path is not None:
            self._composite(path)
        place = self._emit(ITEMS, 0, int(name == "map"), field=field)
        self._value(kind["items"] if name == "array" else kind["values"], None, field)
        self._emit(NEXT, field=field)
        self._code[place + 1] = len(self._code)

    def _composite(self, path: Path) -> None:
        if (cell := self._cells.get(path, NO_CELL)) != NO_CELL:
            self._emit(COMPOSITE, cell)

    def _leaf(self, kind: Any, name: str, cell: int, field: str) -> None:
        is_text = cell != NO_CELL and self._is_text[cell]
        if name in ("int", "long") and is_text:
            self._emit(DIGITS, cell, self._digits, int(name == "int"), field=field)
            self._digits += 1
        elif name in _NUMBERS:
            self._emit(_NUMBERS[name], NO_CELL if is_text else cell, field=field)
            if is_text:
                self._emit(LEAVE)  # the class 1.0, the class true
        elif logical(kind) == DECIMAL:
            self._decimal(kind, name, NO_CELL if is_text else cell, field)
            if is_text:
                self._emit(LEAVE)
        elif name in _BLOBS:
            self._emit(_BLOBS[name], cell, field=field)
        elif name == "fixed":
            is_uuid = cell != NO_CELL and logical(kind) == UUID
            self._emit(FIXED, NO_CELL if is_uuid else cell, int(kind["size"]), field=field)
            if is_uuid:
                self._emit(LEAVE)
        else:
            self._enum(kind, cell, field)

    def _decimal(self, kind: Mapping[str, Any], name: str, cell: int, field: str) -> None:
        scale = int(kind.get("scale", 0))
        if name == "bytes":
            self._emit(DECIMAL_BYTES, cell, scale, field=field)
        else:
            self._emit(DECIMAL_FIXED, cell, scale, int(kind["size"]), field=field)

    def _enum(self, kind: Mapping[str, Any], cell: int, field: str) -> None:
        symbols = [symbol.encode() for symbol in kind["symbols"]]
        if kind["name"] not in self._symbol_places:
            self._symbol_places[kind["name"]] = len(self._symbols)
            self._symbols += b"".join(symbols)
        at = self._symbol_places[kind["name"]]
        spans = []
        for symbol in symbols:
            spans += [at, len(symbol)]
            at += len(symbol)
        self._emit(ENUM, cell, len(symbols), *spans, field=field)
