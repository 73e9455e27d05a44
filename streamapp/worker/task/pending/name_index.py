"""Name index: the names of stored rows as columns, and the serial that each leads to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, overload

import numpy as np
import numpy.typing as npt

from streamapp.worker.task.pending.name_columns import Name, Names
from streamapp.worker.task.pending.name_table import (
    EMPTY,
    HASH,
    KEY,
    LENGTH,
    START,
    WORDS,
    copy_ids,
    find_names,
    put_back,
    put_names,
    refill,
    strike_names,
    undo_puts,
)
from topics.columns.distinct import distinct
from topics.columns.records import Ints64
from topics.columns.spans import Column, Spans, Texts

SMALLEST: Final = 128
"""Places of a table."""
SPARE_KEYS: Final = 1024
"""The most model keys that are remembered although no name has them any more."""


class StoredNames(Column[Name]):
    """The names of consecutive rows at one moment; later additions do not change them."""

    __slots__ = ("_ids", "_keys", "_names")

    def __init__(self, keys: list[str], names: Ints64, ids: npt.NDArray[np.uint8]) -> None:
        """keys: only appended to; names: int64[n, WORDS]; ids: uint8, never overwritten where names lead."""
        self._keys, self._names, self._ids = keys, names, ids

    def __len__(self) -> int:
        return len(self._names)

    def __iter__(self) -> Iterator[Name]:
        return iter(self.part(0, len(self)))

    @overload
    def __getitem__(self, at: int) -> Name: ...
    @overload
    def __getitem__(self, at: slice) -> StoredNames: ...
    def __getitem__(self, at: int | slice) -> Name | StoredNames:
        if isinstance(at, slice):
            return StoredNames(self._keys, self._names[at], self._ids)
        row = self._names[at]
        start, length = int(row[START]), int(row[LENGTH])
        return self._keys[row[KEY]], Texts(Spans.of([self._ids[start : start + length].tobytes()]))[0]

    @property
    def lengths(self) -> Ints64:
        """int64[n]: bytes of each id."""
        return self._names[:, LENGTH]

    def part(self, start: int, stop: int) -> Names:
        """Return the names from `start` to before `stop`.

        Keys are in the order of their first occurrence; ids are contiguous.
        """
        rows = self._names[start:stop]
        first, end = (int(rows[0, START]), int(rows[-1, START] + rows[-1, LENGTH])) if len(rows) else (0, 0)
        ids = Spans(self._ids[first:end].tobytes(), rows[:, START] - first, rows[:, LENGTH].copy())
        seen, key = distinct(rows[:, KEY])
        keys = [self._keys[code] for code in rows[seen, KEY].tolist()]
        return Names(keys, key.astype(np.int32), Texts(ids))


class NameIndex(Mapping[Name, int]):
    """Names of rows with consecutive serials; a name leads to the serial of the last row put with it."""

    def __init__(self, base: int = 0) -> None:
        """`base`: serial of the first row."""
        self._base = base
        self._next = base
        self._names = np.empty((64, WORDS), dtype=np.int64)
        self._ids = np.empty(1024, dtype=np.uint8)
        self._id_bytes = 0
        self._table = np.full(SMALLEST, EMPTY, dtype=np.int64)
        self._led = 0
        self._keys: list[str] = []
        self._codes: dict[str, int] = {}

    # -- looking up -----------------------------------------------------------------------------------------

    def __len__(self) -> int:
        """Return how many names lead to a serial."""
        return self._led

    def __iter__(self) -> Iterator[Name]:
        return map(self.name, self._table[self._table != EMPTY].tolist())

    def __getitem__(self, name: Name) -> int:
        serial = int(self.serials(Names.of([name]))[0])
        if serial == EMPTY:
            raise KeyError(name)
        return serial

    def serials(self, names: Names) -> Ints64:
        """Return int64[n]: the serial that each name leads to, -1: none."""
        serials = np.full(len(names), EMPTY, dtype=np.int64)
        if self._led:
            codes = np.array([self._codes.get(key, EMPTY) for key in names.keys], dtype=np.int64)
            key, spans = np.ascontiguousarray(names.key, dtype=np.int32), names.spans
            stored = (self._table, self._names, self._ids, self._base)
            find_names(*stored, spans.bytes, spans.starts, spans.lengths, names.hashes, key, codes, serials)
        return serials

    def name(self, serial: int) -> Name:
        """Return the name of a row."""
        return self.stored(serial, serial + 1)[0]

    def stored(self, first: int, stop: int) -> StoredNames:
        """Return the names of the rows from serial `first` to before `stop`."""
        return StoredNames(self._keys, self._names[first - self._base : stop - self._base], self._ids)

    # -- changing -------------------------------------------------------------------------------------------

    def append(self, names: Names) -> Ints64:
        """Add rows, to which their names then lead; return int64[n]: the names' earlier serials, -1: none."""
        n, first = len(names), self._next
        older = np.empty(n, dtype=np.int64)
        self._store(names)
        self._make_places(self._led + n)
        self._led += int(put_names(self._table, self._names, self._ids, self._base, first, older))
        return older

    def strike(self, first: int, stop: int) -> npt.NDArray[np.bool_]:
        """Remove the names that lead to these serials; return bool[stop - first]: which names did."""
        struck = np.zeros(stop - first, dtype=np.uint8)
        self._led -= int(strike_names(self._table, self._names, self._base, first, struck))
        return struck.view(np.bool_)

    def undo(self, older: Ints64, struck: Ints64) -> None:
        """Remove the last rows, and restore the serials to which their names led before they were appended.

        older: int64[n], the result of `append` for these rows; struck: serials to which names led before and
        no longer lead, the last one first.
        """
        first = self._next - len(older)
        self._make_places(self._led + len(older) + len(struck))
        stored = (self._table, self._names, self._ids, self._base)
        self._led += int(undo_puts(*stored, first, np.ascontiguousarray(older)))
        self._led += int(put_back(*stored, struck))
        if len(older):
            self._id_bytes = int(self._names[first - self._base, START])
            self._next = first

    def forget(self, first: int) -> None:
        """Remove the rows before a serial, to which no name leads any more, and free their memory."""
        gone = first - self._base
        rows = self._names[gone : self._next - self._base]
        start = int(rows[0, START]) if len(rows) else self._id_bytes
        self._names = np.concatenate((rows, np.empty((gone, WORDS), dtype=np.int64)))
        self._names[: len(rows), START] -= start
        self._ids = np.concatenate((self._ids[start : self._id_bytes], np.empty(start, dtype=np.uint8)))
        self._id_bytes -= start
        self._base = first
        self._forget_keys(len(rows))
        if len(self._table) > max(SMALLEST, 8 * self._led):
            self._resize(4 * self._led)

    # -- inside ---------------------------------------------------------------------------------------------

    def _store(self, names: Names) -> None:
        n, spans, used = len(names), names.spans, self._next - self._base
        if used + n > len(self._names):
            self._names = _longer(self._names, used, used + n)
        ends = np.cumsum(spans.lengths) + self._id_bytes
        end = int(ends[-1]) if n else self._id_bytes
        if end > len(self._ids):
            self._ids = _longer(self._ids, self._id_bytes, end)
        rows = self._names[used : used + n]
        rows[:, HASH], rows[:, LENGTH] = names.hashes, spans.lengths
        rows[:, START] = ends - spans.lengths
        is_used = np.zeros(len(names.keys), dtype=np.bool_)
        is_used[names.key] = True
        codes = np.full(len(names.keys), EMPTY, dtype=np.int64)
        for key in np.flatnonzero(is_used).tolist():
            codes[key] = self._code(names.keys[key])
        rows[:, KEY] = codes[names.key]
        copy_ids(spans.bytes, spans.starts, spans.lengths, self._ids, self._id_bytes)
        self._id_bytes = end
        self._next += n

    def _code(self, key: str) -> int:
        code = self._codes.setdefault(key, len(self._keys))
        if code == len(self._keys):
            self._keys.append(key)
        return code

    def _forget_keys(self, n: int) -> None:
        """Forget the model keys that none of n rows has, if there are many."""
        if len(self._keys) <= SPARE_KEYS + n:
            return
        used, codes = np.unique(self._names[:n, KEY], return_inverse=True)
        self._names[:n, KEY] = codes
        self._keys = [self._keys[code] for code in used.tolist()]
        self._codes = {key: code for code, key in enumerate(self._keys)}

    def _make_places(self, n: int) -> None:
        """Resize so that at most half of the places are taken once there are n names."""
        if 2 * n > len(self._table):
            self._resize(4 * n)

    def _resize(self, n: int) -> None:
        old = self._table
        self._table = np.full(max(SMALLEST, 1 << (n - 1).bit_length()), EMPTY, dtype=np.int64)
        refill(self._table, old, self._names, self._base)


def _longer(column: npt.NDArray[Any], used: int, needed: int) -> npt.NDArray[Any]:
    """Return a column with room for `needed` elements, and as much again; an image keeps the old column."""
    longer = np.empty((max(2 * len(column), needed), *column.shape[1:]), dtype=column.dtype)
    longer[:used] = column[:used]
    return longer
