"""Lives of models: each model that begins under a key has the next number, its incarnation.

A cut removes the unit of a life that ended, if an earlier cut may have stored it. Lives that ended in a run
that is undone may be listed nevertheless: `begin_cut` leaves them out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from streamapp.worker.task.unit import UnitName


class Lives:
    """Lives that have begun, and lives in the last cut that have ended since."""

    def __init__(self) -> None:
        self.begun = 0
        self._begun_before = 0
        self._at_cut = 0  # lives that had begun at the last cut
        self._ended: dict[UnitName, None] = {}

    def begin(self) -> int:
        """Return the number of a new life."""
        self.begun += 1
        return self.begun

    def end(self, name: UnitName) -> None:
        """Note that a life ends; name: the unit that a cut may have stored of it."""
        if name.incarnation <= self._at_cut:
            self._ended[name] = None

    def load(self, begun: int) -> None:
        """Continue the numbers of a stored cut; begun: lives that had begun at it."""
        self.begun = self._at_cut = begun

    def begin_cut(self, goes_on: Callable[[UnitName], bool]) -> dict[UnitName, None]:
        """Return the lives that ended since the last cut; goes_on: returns whether a life has not ended."""
        self._at_cut = self.begun
        ended, self._ended = self._ended, {}
        return {name: None for name in ended if not goes_on(name)}

    def abandon_cut(self, ended: Mapping[UnitName, None]) -> None:
        """List lives (the result of `begin_cut`) again in the next cut."""
        self._ended = {**ended, **self._ended}

    def checkpoint(self) -> None:
        """Make all lives so far final."""
        self._begun_before = self.begun

    def rollback(self) -> None:
        """Give out the numbers since `checkpoint` again."""
        self.begun = self._begun_before
