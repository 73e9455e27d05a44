"""Binary column: byte strings and nulls in one buffer, as Arrow lays them out; and columns of headers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from operator import itemgetter
from typing import Any, Final, overload

import numpy as np
import numpy.typing as npt

from topics.records import Headers

Bytes = npt.NDArray[np.uint8]
Starts = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_NAME: Final = itemgetter(0)
_CONTENT: Final = itemgetter(1)


@dataclass(frozen=True, slots=True, eq=False)
class BinaryColumn(Sequence["bytes | None"]):
    """n byte strings or nulls; a sequence of them, whose slices share the buffer."""

    buffer: Bytes  # uint8
    starts: Starts  # int64[n + 1]: string i is buffer[starts[i]:starts[i + 1]]
    is_null: Flags | None = None  # bool[n]; None: there is no null

    @staticmethod
    def of(values: Sequence[bytes | None]) -> BinaryColumn:
        """Return a column of these values; TypeError if one is neither bytes nor None."""
        if isinstance(values, BinaryColumn):
            return values
        values = list(values)  # a sequence that makes its values when they are asked for makes them once
        n = len(values)
        starts, is_null = np.zeros(n + 1, dtype=np.int64), None
        try:
            together = b"".join(values)  # type: ignore[arg-type] # there is seldom a None
        except TypeError:
            is_null = np.fromiter((value is None for value in values), dtype=np.bool_, count=n)
            values = [b"" if value is None else value for value in values]
            together = b"".join(values)  # type: ignore[arg-type]
        np.cumsum(np.fromiter(map(len, values), dtype=np.int64, count=n), out=starts[1:])  # type: ignore[arg-type]
        return BinaryColumn(np.frombuffer(together, dtype=np.uint8), starts, is_null)

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __iter__(self) -> Iterator[bytes | None]:
        """Iterate over the values, made all at once."""
        text, starts = self.buffer.tobytes(), self.starts.tolist()
        values: list[bytes | None] = [text[start:end] for start, end in pairwise(starts)]
        if self.is_null is not None:
            for at in np.flatnonzero(self.is_null):
                values[at] = None
        return iter(values)

    @overload
    def __getitem__(self, at: int) -> bytes | None: ...
    @overload
    def __getitem__(self, at: slice) -> BinaryColumn: ...
    def __getitem__(self, at: int | slice) -> bytes | BinaryColumn | None:
        """Return a value, or those of a slice of step 1."""
        if isinstance(at, slice):
            first, end = _ends(at, len(self))
            nulls = None if self.is_null is None else self.is_null[first:end]
            return BinaryColumn(self.buffer, self.starts[first : end + 1], nulls)
        at = range(len(self))[at]
        if self.is_null is not None and self.is_null[at]:
            return None
        return self.buffer[self.starts[at] : self.starts[at + 1]].tobytes()


@dataclass(frozen=True, slots=True, eq=False)
class HeaderColumns(Sequence[Headers]):
    """The headers of n records, m together; a sequence of them, whose slices share all but `first`."""

    names: Sequence[str]  # different ones
    name: Starts  # int64[m], the name of each header by its place in `names`
    values: BinaryColumn  # m
    first: Starts  # int64[n + 1]: record i has the headers first[i] to first[i + 1]

    @staticmethod
    def of(headers: Sequence[Headers]) -> HeaderColumns:
        """Return the columns of headers that are given record by record."""
        if isinstance(headers, HeaderColumns):
            return headers
        first = np.zeros(len(headers) + 1, dtype=np.int64)
        np.cumsum(np.fromiter(map(len, headers), dtype=np.int64, count=len(headers)), out=first[1:])
        flat: list[Any] = list(chain.from_iterable(headers))
        places = _Places()
        name = np.fromiter(map(places.__getitem__, map(_NAME, flat)), dtype=np.int64, count=len(flat))
        return HeaderColumns(list(places), name, BinaryColumn.of(list(map(_CONTENT, flat))), first)

    def __len__(self) -> int:
        return len(self.first) - 1

    @overload
    def __getitem__(self, at: int) -> Headers: ...
    @overload
    def __getitem__(self, at: slice) -> HeaderColumns: ...
    def __getitem__(self, at: int | slice) -> Headers | HeaderColumns:
        """Return the headers of a record, or those of a slice of step 1."""
        if isinstance(at, slice):
            first, end = _ends(at, len(self))
            return HeaderColumns(self.names, self.name, self.values, self.first[first : end + 1])
        at = range(len(self))[at]
        own: Iterable[int] = range(int(self.first[at]), int(self.first[at + 1]))
        return [(self.names[self.name[header]], self.values[header]) for header in own]


class _Places(dict[str, int]):
    """The place of each name, in the order in which they come first."""

    def __missing__(self, name: str) -> int:
        self[name] = place = len(self)
        return place


def _ends(at: slice, n: int) -> tuple[int, int]:
    """Return first and end of a slice of n; ValueError if its step is not 1."""
    first, end, step = at.indices(n)
    if step != 1:
        message = f"step={step} must be 1: a slice of a column is a part of it"
        raise ValueError(message)
    return first, max(first, end)
