"""Snapshot schedule: when a partition's snapshot is due."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

REST: Final = 20
"""Seconds without a snapshot after each second of work on one: at most 5 % of the time goes into snapshots.
"""


@dataclass(frozen=True, slots=True)
class SnapshotLimits:
    """Limits of the work that a restore repeats (settings `snapshot.*`)."""

    replay_seconds: float
    replay_bytes: int
    interval: float  # seconds from the first change to the snapshot


@dataclass(slots=True)
class SnapshotSchedule:
    """The changes of a partition since its last cut."""

    limits: SnapshotLimits
    compute: float = 0.0  # seconds
    bytes: int = 0  # of records
    dirty_since: float | None = None
    not_before: float = 0.0
    unsaved_since: float | None = None
    """When the first change was made that the newest complete snapshot lacks; None: it lacks none."""

    def note(self, seconds: float, size: int, now: float) -> None:
        self.compute += seconds
        self.bytes += size
        if self.dirty_since is None:
            self.dirty_since = now
        if self.unsaved_since is None:
            self.unsaved_since = now

    @property
    def is_dirty(self) -> bool:
        """Whether anything was processed since the last cut."""
        return self.dirty_since is not None

    def is_due(self, now: float, *, at_once: bool = False) -> bool:
        """Return whether the next cut is to be kept; `at_once`: keep it if there is any change."""
        if at_once and self.is_dirty:
            return True
        if self.dirty_since is None or now < self.not_before:
            return False
        return (
            self.compute >= self.limits.replay_seconds
            or self.bytes >= self.limits.replay_bytes
            or now - self.dirty_since >= self.limits.interval
        )

    def cut(self) -> None:
        """Start over: the snapshot has everything up to now."""
        self.compute, self.bytes, self.dirty_since = 0.0, 0, None

    def written(self, work: float, now: float) -> None:
        """Note that a snapshot is complete, which took `work` seconds of this process."""
        self.not_before = now + REST * work
        self.unsaved_since = self.dirty_since
