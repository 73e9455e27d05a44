"""Dictionary encoding: a column with few different values, each of which is stored once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar, overload

import numpy as np

from topics.columns.spans import Column, Ints64

T = TypeVar("T")


class Dictionary(Column[T]):
    """n values that compare and index like a list."""

    __slots__ = ("codes", "values")

    def __init__(self, values: Sequence[T], codes: Ints64) -> None:
        """`values` are the different values; `codes` is int64[n], indices into them."""
        self.values = values
        self.codes = codes

    @classmethod
    def of(cls, column: Sequence[T]) -> Dictionary[T]:
        """Return the dictionary encoding of a column of hashable values."""
        if isinstance(column, Dictionary):
            return column
        number = {value: code for code, value in enumerate(dict.fromkeys(column))}
        return cls([*number], np.fromiter(map(number.__getitem__, column), np.int64, len(column)))

    def __len__(self) -> int:
        return len(self.codes)

    def __iter__(self) -> Iterator[T]:
        return map(self.values.__getitem__, self.codes.tolist())

    @overload
    def __getitem__(self, at: int) -> T: ...
    @overload
    def __getitem__(self, at: slice) -> Dictionary[T]: ...
    def __getitem__(self, at: int | slice) -> T | Dictionary[T]:
        """Return the value at an index, or the column of a slice."""
        if isinstance(at, slice):
            return Dictionary(self.values, self.codes[at])
        return self.values[int(self.codes[at])]
