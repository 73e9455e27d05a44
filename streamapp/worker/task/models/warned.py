"""Warned models: the slots of models whose unknown features an operator was warned of."""

from __future__ import annotations

from collections.abc import Iterator


class WarnedModels:
    """Slots; a run that is undone leaves them as they were."""

    def __init__(self) -> None:
        self._slots: set[int] = set()
        self._before: set[int] | None = None  # None: unchanged since `checkpoint`

    def __len__(self) -> int:
        return len(self._slots)

    def __contains__(self, slot: int) -> bool:
        return slot in self._slots

    def __iter__(self) -> Iterator[int]:
        return iter(self._slots)

    def add(self, slot: int) -> None:
        """Add a slot."""
        self._will_change()
        self._slots.add(slot)

    def discard(self, slot: int) -> None:
        """Remove a slot: its model is gone, or is another model now."""
        if slot in self._slots:
            self._will_change()
            self._slots.remove(slot)

    def checkpoint(self) -> None:
        """Make all changes so far final."""
        self._before = None

    def rollback(self) -> None:
        """Undo the changes since `checkpoint`."""
        if self._before is not None:
            self._slots, self._before = self._before, None

    def _will_change(self) -> None:
        if self._before is None:
            self._before = set(self._slots)
