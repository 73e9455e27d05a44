"""Values: what records hold, one behind the other in a buffer; bytes objects are made for whoever asks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import overload

import numpy as np
import numpy.typing as npt

from streamapp.columnar.answers import gather
from topics.records import Ints64

Bytes = npt.NDArray[np.uint8]


class Values(Sequence[bytes | None]):
    """n values, compared and looked at like those of a list."""

    __slots__ = ("_buffer", "_cells", "_starts")

    def __init__(
        self, buffer: Bytes | None, starts: Ints64 | None, cells: list[bytes | None] | None = None
    ) -> None:
        """Take a buffer (uint8, contiguous) and where in it each value begins: int64[n + 1], the first is 0.

        `cells`: the values as objects, null as None; then buffer and starts are made for whoever asks.
        """
        self._buffer = buffer
        self._starts = starts
        self._cells = cells

    @staticmethod
    def of(cells: Sequence[bytes | None]) -> Values:
        """Return values that are bytes objects already."""
        return Values(None, None, list(cells))

    @property
    def are_cells(self) -> bool:
        """Whether they are bytes objects already."""
        return self._cells is not None

    @property
    def buffer(self) -> Bytes:
        """All values, one behind the other: uint8, contiguous. A null takes no bytes."""
        if self._buffer is None:
            joined = bytearray().join(filter(None, self._cells or ()))
            self._buffer = np.frombuffer(joined, dtype=np.uint8)
        return self._buffer

    @property
    def starts(self) -> Ints64:
        """int64[n + 1]: where in the buffer each begins, and the last one ends."""
        if self._starts is None:
            sizes = [len(cell or b"") for cell in self._cells or ()]
            self._starts = np.cumsum([0, *sizes], dtype=np.int64)
        return self._starts

    @property
    def has_nulls(self) -> bool:
        """Whether some are null, which the buffer does not say."""
        return self._cells is not None and None in self._cells

    @property
    def total(self) -> int:
        """Bytes of all values."""
        if self._cells is not None:
            return sum(map(len, filter(None, self._cells)))
        return int(self.starts[-1])

    @property
    def longest(self) -> int:
        """Bytes of the longest value."""
        if self._cells is not None:
            return max((len(cell or b"") for cell in self._cells), default=0)
        return int(np.diff(self.starts).max(initial=0))

    def size(self, at: int) -> int:
        """Return the bytes of a value."""
        if self._cells is not None:
            return len(self._cells[at] or b"")
        return int(self.starts[at + 1] - self.starts[at])

    def taken(self, order: Ints64) -> Values:
        """Return some of the values in the given order (int64[m])."""
        if self._cells is not None:
            return Values.of([self._cells[at] for at in order.tolist()])
        sizes = np.diff(self.starts)[order]
        out, starts = np.empty(int(sizes.sum()), dtype=np.uint8), np.empty(len(order) + 1, dtype=np.int64)
        gather(self.buffer, self.starts, order, out, starts)
        return Values(out, starts)

    @staticmethod
    def joined(parts: Sequence[Values]) -> Values:
        """Return the values of all parts, one after the other."""
        if any(part.are_cells for part in parts):
            return Values.of([cell for part in parts for cell in part])
        begins = np.cumsum([0, *(part.total for part in parts)])
        starts = [part.starts[:-1] + begin for part, begin in zip(parts, begins.tolist(), strict=False)]
        return Values(np.concatenate([part.buffer for part in parts]), np.concatenate([*starts, begins[-1:]]))

    def __len__(self) -> int:
        return len(self._cells) if self._cells is not None else len(self.starts) - 1

    def __iter__(self) -> Iterator[bytes | None]:
        """Iterate over bytes objects, made all at once."""
        return iter(self._all())

    @overload
    def __getitem__(self, at: int) -> bytes | None: ...

    @overload
    def __getitem__(self, at: slice) -> Values: ...

    def __getitem__(self, at: int | slice) -> bytes | Values | None:
        """Return one value, or those of a slice."""
        if isinstance(at, slice):
            start, stop, step = at.indices(len(self))
            if self._cells is not None or step != 1:
                return Values.of(self._all()[at])
            begins = self.starts[start : max(start, stop) + 1]
            return Values(self.buffer[begins[0] : begins[-1]], begins - begins[0])
        if self._cells is not None:
            return self._cells[at]
        at = range(len(self))[at]
        value: bytes = self.buffer[self.starts[at] : self.starts[at + 1]].tobytes()
        return value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        """Show the values as a list would."""
        return repr(self._all())

    def _all(self) -> list[bytes | None]:
        if self._cells is not None:
            return self._cells
        text = self.buffer.tobytes()
        return [text[start:stop] for start, stop in pairwise(self.starts.tolist())]
