"""What a partition has processed since its last commit, in order: the journal entry that comes next."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from core.snapshot import STATE_VERSION, platform_tag
from streamapp.journal.entry import SOURCES, Entry, Positions, Ranges, Step
from streamapp.task.effects import Effects
from streamapp.task.task import Source
from topics.errors import Reason
from topics.records import RawRecords


class Ledger:
    """Steps of one partition; `cut` closes them into an entry."""

    def __init__(self, positions: Positions, incarnation: int, config: str) -> None:
        """`positions`: where the task stands; `config`: the task's, as JSON."""
        self.positions = list(positions)
        self.incarnation = incarnation
        self._config: str | None = config  # said once
        self._before = tuple(positions)
        self._steps: list[Step] = []

    @property
    def is_empty(self) -> bool:
        """Whether nothing happened since the last cut."""
        return not self._steps

    def note(self, step: Step) -> None:
        """Add what was processed; records that follow upon those of the same source extend its last step."""
        if step.to == self.positions[step.source]:
            return
        lost = step.skipped == (
            (self.positions[step.source], step.to),
        )  # retention took them: not to be read
        self.positions[step.source] = step.to
        last = self._steps[-1] if self._steps and not lost else None
        if last is not None and last.source == step.source and _can_grow(last) and step.records is None:
            self._steps[-1] = replace(
                step,
                skipped=joined(last.skipped, step.skipped),
                refused=joined(last.refused, step.refused),
            )
        else:
            self._steps.append(step)

    def cut(self) -> Entry:
        """Return the entry of what happened since the last cut, and begin the next one."""
        entry = Entry(
            self.incarnation,
            STATE_VERSION,
            platform_tag(),
            self._before,
            tuple(self.positions),
            tuple(self._steps),
            self._config,
        )
        self._before, self._steps, self._config = entry.after, [], None
        return entry


def step_of(source: Source, raw: RawRecords, position: int, effects: Effects) -> Step:
    """Return what the journal has to say of a run; `position`: behind it."""
    skipped = ranges_of(raw, effects.put_aside(Reason.PROCESSING_ERROR))
    refused = ranges_of(raw, effects.put_aside(Reason.TOO_MANY_MODELS))
    return Step(SOURCES.index(source), position, skipped, refused, raw if source == "controls" else None)


def _can_grow(step: Step) -> bool:
    """Whether later records of the source may be added to a step: not to controls, nor to what is lost."""
    return step.records is None and not (len(step.skipped) == 1 and step.skipped[0][1] == step.to)


def joined(ranges: Ranges, more: Ranges) -> Ranges:
    """Return ranges followed by later ones, as few as possible."""
    result = list(ranges)
    for first, end in more:
        if result and result[-1][1] == first:
            result[-1] = (result[-1][0], end)
        else:
            result.append((first, end))
    return tuple(result)


def ranges_of(raw: RawRecords, offsets: Iterable[int]) -> Ranges:
    """Return records of a run as ranges: offsets that the log does not have count as neighbours."""
    wanted = set(offsets)
    if not wanted:
        return ()
    found: list[tuple[int, int]] = []
    open_at: int | None = None
    for offset in raw.offsets:
        if offset in wanted and open_at is None:
            open_at = offset
        elif offset not in wanted and open_at is not None:
            found.append((open_at, offset))
            open_at = None
    if open_at is not None:
        found.append((open_at, raw.offsets[-1] + 1))
    return tuple(found)
