"""Offset tracker: which consumed requests are finished, so that no commit precedes its answer."""

from __future__ import annotations


class OffsetTracker:
    """Offsets of one partition: begun in ascending order, finished in any."""

    def __init__(self) -> None:
        self._open: dict[int, None] = {}  # in ascending order
        self._next = -1  # behind the highest offset begun
        self._committed = -1

    def begin(self, offset: int) -> None:
        """Note a consumed record."""
        self._open[offset] = None
        self._next = offset + 1

    def finish(self, offset: int) -> None:
        """Note that nothing more is to be done about a record."""
        del self._open[offset]

    def committable(self) -> int | None:
        """Return the offset to commit: the first record not dealt with; None if it is committed."""
        offset = next(iter(self._open), self._next)
        if offset < 0 or offset == self._committed:
            return None
        return offset

    def committed(self, offset: int) -> None:
        self._committed = offset
