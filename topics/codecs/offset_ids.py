"""Offset ids: `<partition>-<offset>`, for instances without an id; strings are made on access."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

import numpy as np

from topics.columns.records import Ints64


class OffsetIds(Sequence[str]):
    """n ids that compare and index like a list."""

    __slots__ = ("_offsets", "head")

    def __init__(self, head: str, offsets: Sequence[int] | Ints64) -> None:
        """`head` is the ASCII text before each offset."""
        self.head = head
        self._offsets = offsets

    @property
    def offsets(self) -> Ints64:
        """int64[n]."""
        if not isinstance(self._offsets, np.ndarray):
            self._offsets = np.array(self._offsets, dtype=np.int64)
        return self._offsets

    @property
    def most_bytes(self) -> int:
        """Bytes of the longest id, at most."""
        return len(self.head) + len(str(-(2**63)))

    def taken(self, rows: Ints64) -> OffsetIds:
        """Return the ids of some rows (int64[m])."""
        return OffsetIds(self.head, self.offsets[rows])

    def __len__(self) -> int:
        return len(self._offsets)

    @overload
    def __getitem__(self, at: int) -> str: ...

    @overload
    def __getitem__(self, at: slice) -> OffsetIds: ...

    def __getitem__(self, at: int | slice) -> str | OffsetIds:
        """Return one id, or the ids of a slice."""
        if isinstance(at, slice):
            return OffsetIds(self.head, self._offsets[at])
        return f"{self.head}{self._offsets[at]}"

    def __iter__(self) -> Iterator[str]:
        """Iterate over Python strings."""
        offsets = self._offsets
        plain = offsets.tolist() if isinstance(offsets, np.ndarray) else offsets
        return iter([f"{self.head}{offset}" for offset in plain])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        """Show the strings as a list would."""
        return repr(list(self))


class RecordIds(Sequence[str]):
    """Ids `<partition>-<offset>` of n records of any partitions."""

    __slots__ = ("offsets", "partitions")

    def __init__(self, partitions: Ints64, offsets: Ints64) -> None:
        """Take the place of each record: int64[n] each."""
        self.partitions = partitions
        self.offsets = offsets

    @property
    def most_bytes(self) -> int:
        """Bytes of the longest id, at most."""
        return len("-") + 2 * len(str(-(2**63)))

    def taken(self, rows: Ints64) -> RecordIds:
        """Return the ids of some rows (int64[m])."""
        return RecordIds(self.partitions[rows], self.offsets[rows])

    def __len__(self) -> int:
        return len(self.offsets)

    @overload
    def __getitem__(self, at: int) -> str: ...

    @overload
    def __getitem__(self, at: slice) -> RecordIds: ...

    def __getitem__(self, at: int | slice) -> str | RecordIds:
        """Return one id, or the ids of a slice."""
        if isinstance(at, slice):
            return RecordIds(self.partitions[at], self.offsets[at])
        return f"{self.partitions[at]}-{self.offsets[at]}"
