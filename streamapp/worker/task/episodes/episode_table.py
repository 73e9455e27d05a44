"""Table of the open episodes of a partition: bounded in number and bytes, with deadlines in event time.

As with pending instances, every decision uses the clock at its record, and `rollback` undoes a run.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Final, NamedTuple

from streamapp.worker.task.episodes.episode import Episode
from streamapp.worker.task.pending.event_time import NO_TIME
from streamapp.worker.task.pending.name_columns import Name

MAX_COUNT: Final = 10_000
MAX_BYTES: Final = 64 << 20


class EpisodesImage(NamedTuple):
    """The open episodes as they were at a moment."""

    next: int = 0  # serial of the next episode
    episodes: tuple[Episode, ...] = ()  # oldest first

    def __bool__(self) -> bool:
        """Return whether there ever was one."""
        return self.next > 0


class Episodes:
    """The open episodes, oldest first."""

    def __init__(self, max_count: int = MAX_COUNT, max_bytes: int = MAX_BYTES) -> None:
        self._max_count, self._max_bytes = max_count, max_bytes
        self._open: dict[Name, Episode] = {}
        self._next = 0
        self._deadlines: list[tuple[int, int, Name]] | None = []  # heap; None: to be built again
        self._before: dict[Name, Episode | None] = {}  # undo: the episode of a name at the checkpoint
        self._mark = (0, 0, 0)
        self.bytes = 0
        self.dropped = 0  # their model was deleted or reset

    def __len__(self) -> int:
        """Return the number of open episodes."""
        return len(self._open)

    def __contains__(self, name: Name) -> bool:
        """Return whether an instance has an open episode."""
        return name in self._open

    def configure(self, max_count: int, max_bytes: int) -> None:
        """Change the bounds."""
        self._max_count, self._max_bytes = max_count, max_bytes

    def get(self, name: Name) -> Episode | None:
        """Return the open episode of an instance."""
        return self._open.get(name)

    @property
    def next_serial(self) -> int:
        """Return the number of the next episode."""
        return self._next

    def has_room(self, size: int) -> bool:
        """Return whether one more episode of `size` bytes fits."""
        return len(self._open) < self._max_count and self.bytes + size <= self._max_bytes

    def oldest(self) -> Episode:
        """Return the open episode that was opened first."""
        return next(iter(self._open.values()))

    def put(self, episode: Episode) -> None:
        """Open an episode, or replace its earlier state."""
        name = episode.name
        old = self._open.get(name)
        self._before.setdefault(name, old)
        self._open[name] = episode
        self.bytes += episode.size - (0 if old is None else old.size)
        if old is None:
            self._next = max(self._next, episode.serial + 1)
            if self._deadlines is not None:
                heapq.heappush(self._deadlines, (episode.deadline, episode.serial, name))

    def remove(self, name: Name) -> None:
        """Close an episode."""
        old = self._open.pop(name)
        self._before.setdefault(name, old)
        self.bytes -= old.size

    def next_deadline(self) -> int | None:
        """Return the earliest deadline, None: nothing is open."""
        first = self._first()
        return None if first is None else first.deadline

    def is_due(self, clock: int) -> bool:
        """Return whether a deadline is over at `clock`."""
        return bool(self._open) and self.overdue(clock) is not None

    def overdue(self, clock: int) -> Episode | None:
        """Return the episode with the earliest deadline, if that is over at `clock`."""
        first = self._first()
        return first if first is not None and first.deadline < clock else None

    def turn(self, clock: int) -> None:
        """Set the opening time to `clock` for episodes of a wrong later clock, or from before it began."""
        for name, episode in self._open.items():
            if episode.opened > clock or episode.opened == NO_TIME:
                self._before.setdefault(name, episode)
                deadline = episode.deadline - (episode.opened - clock)
                self._open[name] = episode._replace(opened=clock, deadline=deadline)
                self._deadlines = None

    def of_model(self, key: str) -> list[Episode]:
        """Return the open episodes of a model, oldest first."""
        return [episode for name, episode in self._open.items() if name[0] == key]

    def forget_model(self, key: str) -> None:
        """Drop the episodes of a model that was reset or deleted: they cannot be answered."""
        for episode in self.of_model(key):
            self.remove(episode.name)
            self.dropped += 1

    def checkpoint(self) -> None:
        """Begin a run: what happened before is final."""
        self._before.clear()
        self._mark = (self._next, self.bytes, self.dropped)

    def rollback(self) -> None:
        """Undo everything since `checkpoint`."""
        for name, before in self._before.items():
            if before is None:
                self._open.pop(name, None)
            else:
                self._open[name] = before
        if self._before:
            self._open = dict(sorted(self._open.items(), key=lambda item: item[1].serial))
            self._deadlines = None
        self._before.clear()
        self._next, self.bytes, self.dropped = self._mark

    def image(self) -> EpisodesImage:
        """Return the open episodes as they are now."""
        return EpisodesImage(self._next, tuple(self._open.values()))

    def load(self, next_serial: int, episodes: Sequence[Episode]) -> None:
        """Take in the episodes of an image."""
        self._next = next_serial
        self._open = {episode.name: episode for episode in episodes}
        self.bytes = sum(episode.size for episode in episodes)
        self._deadlines = None
        self.checkpoint()

    def _first(self) -> Episode | None:
        """Return the open episode with the earliest deadline; among equal deadlines, the oldest."""
        if self._deadlines is None:
            self._deadlines = [
                (episode.deadline, episode.serial, name) for name, episode in self._open.items()
            ]
            heapq.heapify(self._deadlines)
        while self._deadlines:
            deadline, serial, name = self._deadlines[0]
            episode = self._open.get(name)
            if episode is not None and (episode.deadline, episode.serial) == (deadline, serial):
                return episode
            heapq.heappop(self._deadlines)  # it was closed
        return None
