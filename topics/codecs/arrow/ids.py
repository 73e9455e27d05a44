"""Arrow ids: a column of strings, passed from the block that is read to the block that answers it.

A list of a thousand Python strings costs more than everything else that is done for a block, and few readers
need the strings. So given ids stay an Arrow column; generated ids, `<head>-0`, `<head>-1`, …, are written as
bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from topics.columns.records import Ints32

Bytes = npt.NDArray[np.uint8]


class Ids(Sequence[str]):
    """n strings, none of them null or empty, that compare and index like a list."""

    __slots__ = ("_column",)

    def __init__(self, column: pa.Array | pa.ChunkedArray) -> None:
        """`column` has the type string."""
        self._column = column

    @property
    def column(self) -> pa.Array:
        column = self._column
        return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column

    def longest(self) -> int:
        return int(pc.max(pc.binary_length(self._column)).as_py() or 0)

    def __len__(self) -> int:
        return len(self._column)

    @overload
    def __getitem__(self, at: int) -> str: ...

    @overload
    def __getitem__(self, at: slice) -> Ids: ...

    def __getitem__(self, at: int | slice) -> str | Ids:
        """Return one string, or the ids of a slice without copying them."""
        if isinstance(at, slice):
            return Ids(self._column[at])
        name: str = self._column[at].as_py()
        return name

    def __iter__(self) -> Iterator[str]:
        """Iterate over Python strings, made all at once."""
        return iter(self._column.to_pylist())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        """Show the strings as a list would."""
        return repr(list(self))


def given(column: pa.Array) -> Ids | None:
    """Return the ids of a column that can stay as it is; None if its cells have to be checked one by one."""
    if not pa.types.is_string(column.type) or column.null_count:
        return None
    return Ids(column) if pc.min(pc.binary_length(column)).as_py() else None


def numbered(head: str, row: Ints32) -> Ids:
    """Return `<head>-<row>` for each row (int32[n], ascending from 0, n > 0); `head` is ASCII."""
    last = int(row[-1])
    column = _counted(head.encode(), last + 1)
    return Ids(column if last + 1 == len(row) else column.take(pa.array(row)))


def joined(parts: Sequence[Sequence[str]]) -> Sequence[str]:
    """Return the ids of all blocks, concatenated."""
    if len(parts) == 1:
        return parts[0]
    columns = [part.column for part in parts if isinstance(part, Ids)]
    if parts and len(columns) == len(parts):
        return Ids(pa.chunked_array(columns, pa.string()))
    return [name for part in parts for name in part]


class _Frame(NamedTuple):
    """The bytes of `<head>-0` … `<head>-<n - 1>`, with room for the head."""

    text: Bytes
    offsets: npt.NDArray[np.int32]  # int32[n + 1]: start of each string
    heads: tuple[tuple[int, int, int], ...]  # first row, end, bytes per string, by number of digits


@lru_cache(maxsize=32)
def _frame(head_bytes: int, n: int) -> _Frame:
    borders = [0, *(10**digits for digits in range(1, 10) if 10**digits < n), n]
    heads = tuple(
        (first, end, head_bytes + 1 + digits) for digits, (first, end) in enumerate(pairwise(borders), 1)
    )
    lengths = np.concatenate([np.full(end - first, size) for first, end, size in heads])
    text = "".join(" " * head_bytes + f"-{row}" for row in range(n)).encode()
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    return _Frame(np.frombuffer(text, dtype=np.uint8), offsets, heads)


def _counted(head: bytes, n: int) -> pa.Array:
    frame = _frame(len(head), 1 << (n - 1).bit_length())  # sizes are powers of two, so few frames are cached
    size = int(frame.offsets[n])
    text, bytes_of_head = frame.text[:size].copy(), np.frombuffer(head, dtype=np.uint8)
    for first, end, width in frame.heads:
        start, stop = frame.offsets[first], frame.offsets[min(end, n)]
        text[start:stop].reshape(-1, width)[:, : len(head)] = bytes_of_head
        if end >= n:
            break
    return pa.StringArray.from_buffers(n, pa.py_buffer(frame.offsets[: n + 1]), pa.py_buffer(text))
