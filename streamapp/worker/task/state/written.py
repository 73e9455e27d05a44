"""Written units: which units of a task the store has after the last finished cut."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from streamapp.worker.task.state.pending_unit import Marks, PendingBlock
from streamapp.worker.task.unit import UnitName


class WrittenUnits:
    """Names and checksums; empty before the first cut, or all units from which a task was restored."""

    def __init__(self) -> None:
        self.blocks: list[PendingBlock] = []  # of pending instances
        self.marks = Marks()  # of those instances
        self.turned = 0  # how often the clock had been turned back, in this process
        self.lists: dict[str, Any] = {}  # by kind: the contents of its units
        self._checksums: dict[str, dict[UnitName, int]] = {}  # by kind
        self._sum = 0

    def checksum(self, name: UnitName) -> int | None:
        """Return the checksum of a unit, None if there is no such unit."""
        return self._checksums.get(name.kind, {}).get(name)

    def of_kind(self, kind: str) -> list[UnitName]:
        """Return the names of a kind."""
        return list(self._checksums.get(kind, ()))

    def replace(self, units: Mapping[UnitName, int], removed: Iterable[UnitName]) -> None:
        """Note the units that a finished cut wrote, with checksums, and those it removed."""
        for name in removed:
            self._sum -= self._checksums[name.kind].pop(name)
        for name, checksum in units.items():
            self._sum += checksum - (self.checksum(name) or 0)
            self._checksums.setdefault(name.kind, {})[name] = checksum

    def census(self, units: Mapping[UnitName, int], removed: Iterable[UnitName]) -> dict[str, Any]:
        """Return how many units of each kind there will be, and the sum of their checksums.

        The sum reveals a unit that is missing, there twice, or left over from an earlier cut.
        """
        kinds, total = {kind: len(checksums) for kind, checksums in self._checksums.items()}, self._sum
        for name in removed:
            total -= self._checksums[name.kind][name]
            kinds[name.kind] -= 1
        for name, checksum in units.items():
            before = self.checksum(name)
            if before is None:
                kinds[name.kind] = kinds.get(name.kind, 0) + 1
            total += checksum - (before or 0)
        return {"kinds": {kind: n for kind, n in kinds.items() if n}, "checksums": total}
