"""Header columns: the headers of records to be sent, as arrays in which each name is stored once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter
from typing import Any, Final, overload

import numpy as np

from topics.columns.headers import Headers
from topics.columns.spans import Ints64, Spans

_NAME: Final = itemgetter(0)
_CONTENT: Final = itemgetter(1)


@dataclass(frozen=True, slots=True, eq=False)
class HeaderColumns(Sequence[Headers]):
    """The headers of n records, m in total; a sequence of headers per record, whose slices share all arrays
    but `first`.
    """

    names: Sequence[str]  # the different names
    name: Ints64  # int64[m], the name of each header by its place in `names`
    values: Spans  # m
    first: Ints64  # int64[n + 1]: record i has the headers first[i] to first[i + 1]

    @staticmethod
    def of(headers: Sequence[Headers]) -> HeaderColumns:
        """Return the columns of headers that are given as one list per record."""
        if isinstance(headers, HeaderColumns):
            return headers
        first = np.zeros(len(headers) + 1, dtype=np.int64)
        np.cumsum(np.fromiter(map(len, headers), dtype=np.int64, count=len(headers)), out=first[1:])
        flat: list[Any] = list(chain.from_iterable(headers))
        places = _Places()
        name = np.fromiter(map(places.__getitem__, map(_NAME, flat)), dtype=np.int64, count=len(flat))
        return HeaderColumns(list(places), name, Spans.of(list(map(_CONTENT, flat))), first)

    @staticmethod
    def uniform(names: Sequence[str], values: Sequence[Spans]) -> HeaderColumns:
        """Return headers that all n records have; `values` holds n values for each name."""
        n, m = len(values[0]), len(names)
        starts, lengths = np.empty((n, m), dtype=np.int64), np.empty((n, m), dtype=np.int64)
        buffers, end = [], 0
        for at, column in enumerate(values):
            np.add(column.starts, end, out=starts[:, at])
            lengths[:, at] = column.lengths
            buffers.append(column.buffer)
            end += len(column.buffer)
        together = Spans(b"".join(buffers), starts.reshape(-1), lengths.reshape(-1))
        name = np.tile(np.arange(m, dtype=np.int64), n)
        return HeaderColumns(names, name, together, np.arange(n + 1, dtype=np.int64) * m)

    @staticmethod
    def joined(parts: Sequence[HeaderColumns]) -> HeaderColumns:
        """Return the headers of all parts (at least one), concatenated."""
        places = _Places()
        names, values, first, end = [], [], [], 0
        for part in parts:
            own = slice(int(part.first[0]), int(part.first[-1]))
            numbers = np.array([places[name] for name in part.names], dtype=np.int64)
            names.append(numbers[part.name[own]])
            values.append(part.values[own])
            first.append(part.first[:-1] + (end - own.start))
            end += own.stop - own.start
        first.append(np.array([end]))
        return HeaderColumns(list(places), np.concatenate(names), Spans.joined(values), np.concatenate(first))

    def followed_by(self, others: HeaderColumns) -> HeaderColumns:
        """Return for each record its headers here, followed by its headers there."""
        n = len(self)
        order = np.arange(2 * n).reshape(2, n).T.reshape(-1)  # here, then in `others`, record by record
        both = HeaderColumns.joined([self, others]).where(order)
        return HeaderColumns(both.names, both.name, both.values, both.first[::2])

    def where(self, records: Ints64) -> HeaderColumns:
        """Return the headers of the records with these numbers."""
        counts = np.diff(self.first)[records]
        first = np.zeros(len(records) + 1, dtype=np.int64)
        np.cumsum(counts, out=first[1:])
        chosen = np.repeat(self.first[records] - first[:-1], counts) + np.arange(first[-1])
        return HeaderColumns(self.names, self.name[chosen], self.values.where(chosen), first)

    def __len__(self) -> int:
        return len(self.first) - 1

    @overload
    def __getitem__(self, at: int) -> Headers: ...
    @overload
    def __getitem__(self, at: slice) -> HeaderColumns: ...
    def __getitem__(self, at: int | slice) -> Headers | HeaderColumns:
        """Return the headers of one record, or of a slice with step 1."""
        if isinstance(at, slice):
            first, end, step = at.indices(len(self))
            if step != 1:
                message = f"step={step} must be 1: a slice is a part of the records"
                raise ValueError(message)
            return HeaderColumns(self.names, self.name, self.values, self.first[first : max(first, end) + 1])
        at = range(len(self))[at]
        own: Iterable[int] = range(int(self.first[at]), int(self.first[at + 1]))
        return [(self.names[self.name[header]], self.values[header]) for header in own]


class _Places(dict[str, int]):
    """The index of each name, in order of first occurrence."""

    def __missing__(self, name: str) -> int:
        self[name] = place = len(self)
        return place
