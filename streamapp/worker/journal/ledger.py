"""Ledger: the records that a partition has processed since its last commit; its next journal entries."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from core.model.snapshot import platform_tag
from core.state_version import ALIKE_SINCE
from streamapp.worker.journal.entry import Entry, JournalError, Ranges, Step
from streamapp.worker.task.effects.effects import Effects
from streamapp.worker.task.parts import parts
from streamapp.worker.task.sources import SOURCES, Positions, SourceName
from topics.columns.records import RawRecords
from topics.definitions import TopicNames
from topics.errors import Reason
from topics.fetching.refused import NO_REFUSED, RefusedBatch

TRACELESS: Final = (Reason.PROCESSING_ERROR, Reason.SKIPPED, Reason.UNKNOWN_SCHEMA)
"""Dead letters that change no state."""
NOT_DEAD: Final = (*TRACELESS, Reason.TOO_MANY_MODELS, Reason.OUTPUT_TOO_LARGE)
"""Dead letters of controls that are listed as skipped or without room, or that were carried out."""

MAX_RANGES: Final = 10_000  # of dead letters in one step
STEP_BYTES: Final = 48  # of a step with neither controls nor ranges
ENTRY_BYTES: Final = 512  # of an entry without steps and configuration, and the record around it


class LedgerError(RuntimeError):
    """Records were handed out in an order that is not the order of their log."""


class Ledger:
    """Steps of one partition; `cut` closes them into entries."""

    def __init__(
        self,
        positions: Positions,
        incarnation: int,
        config: str,
        most: int = TopicNames.journal.max_message_bytes or 0,
    ) -> None:
        """`positions`: of the task; `config`: of the task, as JSON; `most`: bytes of an entry at most."""
        self.positions = dict(positions)
        self.starts = False  # its first positions are to be committed, although nothing has happened yet
        self.incarnation = incarnation
        self._config: str | None = config  # None once an entry holds it
        self._room = room_for_steps(config, most)
        self._before: Positions = dict(positions)
        self._steps: list[Step] = []

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to commit: nothing happened since the last cut."""
        return not self._steps and not self.starts

    def note(self, step: Step) -> None:
        """Add processed records; records of the same source extend its last step.

        Raise LedgerError for a step back: the commit would not match what was processed.
        """
        if step.to == self.positions[step.source]:
            return
        if step.to < self.positions[step.source]:
            message = (
                f"{step.source}: processed up to {self.positions[step.source]}, and then up to "
                f"{step.to}; this is a bug of streamgrove, nothing of it is committed"
            )
            raise LedgerError(message)
        at = self.positions[step.source]
        lost = step.skipped == ((at, step.to),)  # retention deleted them: they cannot be read
        self.positions[step.source] = step.to
        last = self._steps[-1] if self._steps and not lost else None
        if last is None or last.source != step.source:
            self._steps += _by_record(step)
        elif (before := _plain_count(last)) is not None and (n := _plain_count(step)) is not None:
            self._steps[-1] = Step(step.source, step.to, count=before + n)
        elif _can_grow(last) and step.records is None:
            self._steps[-1] = replace(
                step,
                skipped=joined(last.skipped, step.skipped),
                refused=joined(last.refused, step.refused),
                unread=joined(last.unread, step.unread),
                count=None if last.count is None or step.count is None else last.count + step.count,
            )
        else:
            self._steps += _by_record(step)

    def note_plain(self, source: SourceName, to: int, count: int) -> None:
        """Add processed records up to a position of which a step lists nothing but their number."""
        last = self._steps[-1] if self._steps else None
        if last is None or last.source != source or to <= last.to or (n := _plain_count(last)) is None:
            self.note(Step(source, to, count=count))
            return
        self.positions[source] = to
        self._steps[-1] = Step(source, to, count=n + count)

    def cut(self, state_version: int = ALIKE_SINCE) -> list[Entry]:
        """Return what happened since the last cut as one entry, or several if it is large, and start over.

        `state_version`: of the task, which has processed all of it.
        """
        entries: list[Entry] = []
        steps: list[Step] = []
        size = 0
        for step in self._steps:
            more = step_bytes(step)
            if steps and size + more > self._room:
                entries.append(self._entry(steps, state_version))
                steps, size = [], 0
            steps.append(step)
            size += more
        entries.append(self._entry(steps, state_version))
        self._steps, self.starts = [], False
        return entries

    def _entry(self, steps: Sequence[Step], state_version: int) -> Entry:
        before = self._before
        self._before = {**before, **{step.source: step.to for step in steps}}
        config, self._config = self._config, None
        return Entry(
            self.incarnation, state_version, platform_tag(), before, self._before, tuple(steps), config
        )


def step_of(
    source: SourceName,
    raw: RawRecords,
    position: int,
    effects: Effects,
    batches: Mapping[int, RefusedBatch] = NO_REFUSED,
) -> Step:
    """Return the journal step of a run.

    `position`: the offset after the run; `batches`: refused batches, by the offset of the record that stands
    for each.
    """
    journalled = SOURCES[source].journalled
    if not (effects.dead_letters or batches or journalled):
        return Step(source, position, count=len(raw))
    aside = effects.dead_lettered(*TRACELESS)
    skipped = ranges_of(raw, aside)
    refused = ranges_of(raw, effects.dead_lettered(Reason.TOO_MANY_MODELS))
    if journalled:  # a replay does not read its topic
        kept = _without(raw, {*aside, *batches})
        return Step(source, position, skipped, refused, kept, dead=_dead(raw, effects, batches))
    unread = joined((), ((batch.first, batch.last + 1) for batch in batches.values()))
    return Step(source, position, skipped, refused, None, len(raw) - len(batches), unread)


def _dead(raw: RawRecords, effects: Effects, batches: Collection[int]) -> Ranges:
    """Return the records that a replay has to refuse again, without those that no step holds."""
    offsets = {letter.origin.offset for letter in effects.dead_letters if letter.reason not in NOT_DEAD}
    return ranges_of(raw, offsets.difference(batches))


def _without(raw: RawRecords, offsets: Collection[int]) -> RawRecords | None:
    """Return the records of a run without those at the given offsets; None if none are left."""
    kept = [record for record, offset in enumerate(raw.offsets) if offset not in offsets]
    if len(kept) == len(raw):
        return raw
    return raw.chosen(kept) if kept else None


def check_controls(raw: RawRecords, effects: Effects, room: int) -> None:
    """Raise JournalError for a control that is too large for an entry with `room` bytes for steps."""
    aside = set(effects.dead_lettered(*TRACELESS))
    for record, offset in enumerate(raw.offsets):
        size = STEP_BYTES + control_bytes(raw, record)
        if size > room and offset not in aside:
            message = (
                f"a control of {size} bytes must have at most {room}, the room of a journal entry; raise "
                "max.message.bytes of the topic 'journal' and message.max.bytes, or send a smaller one"
            )
            raise JournalError(message)


def step_bytes(step: Step) -> int:
    """Return the most bytes that a step takes in the journal."""
    raw = step.records
    n_ranges = len(step.skipped) + len(step.refused) + len(step.unread) + len(step.dead)
    size = STEP_BYTES + 20 * n_ranges
    return size if raw is None else size + sum(control_bytes(raw, record) for record in range(len(raw)))


def control_bytes(raw: RawRecords, record: int) -> int:
    """Return the most bytes that a control takes in the journal."""
    headers = sum(16 + len(name.encode()) + len(value or b"") for name, value in raw.headers[record])
    return 64 + len(raw.topic) + len(raw.keys[record] or b"") + len(raw.values[record] or b"") + headers


def room_for_steps(config: str, most: int) -> int:
    """Return the bytes that an entry of at most `most` bytes has for its steps."""
    return most - ENTRY_BYTES - len(config.encode())


def _by_record(step: Step) -> list[Step]:
    """Return a step of controls as steps of one control each, because controls may be large."""
    raw = step.records
    if raw is None or len(raw) == 1:
        return [step]
    ends = [*raw.offsets[1:], step.to]
    spans = zip([0, *ends], ends, parts(raw, range(len(raw))), strict=False)
    return [
        replace(
            step,
            to=to,
            records=single,
            skipped=clipped(step.skipped, start, to),
            refused=clipped(step.refused, start, to),
            dead=clipped(step.dead, start, to),
        )
        for start, to, (_, single) in spans
    ]


def _plain_count(step: Step) -> int | None:
    """Return the number of records of a step if it has nothing else; None if it has."""
    has_more = step.skipped or step.refused or step.unread or step.dead or step.records is not None
    return None if has_more else step.count


def _can_grow(step: Step) -> bool:
    """Whether later records of the source may be added to a step: not if it has controls or lost records."""
    if step.records is not None or len(step.skipped) + len(step.refused) + len(step.unread) > MAX_RANGES:
        return False
    return not (len(step.skipped) == 1 and step.skipped[0][1] == step.to)


def joined(ranges: Ranges, more: Iterable[tuple[int, int]]) -> Ranges:
    """Return ranges extended by later ranges, with neighbours merged."""
    result = list(ranges)
    for first, end in more:
        if result and result[-1][1] == first:
            result[-1] = (result[-1][0], end)
        else:
            result.append((first, end))
    return tuple(result)


def clipped(ranges: Ranges, start: int, end: int) -> Ranges:
    """Return the part of ranges from `start` to before `end`."""
    return tuple((max(a, start), min(b, end)) for a, b in ranges if a < end and b > start)


def ranges_of(raw: RawRecords, offsets: Iterable[int]) -> Ranges:
    """Return records of a run as ranges; offsets that the log does not have count as part of a range."""
    chosen = set(offsets)
    if not chosen:
        return ()
    ranges: list[tuple[int, int]] = []
    open_at: int | None = None
    for offset in raw.offsets:
        if offset in chosen and open_at is None:
            open_at = offset
        elif offset not in chosen and open_at is not None:
            ranges.append((open_at, offset))
            open_at = None
    if open_at is not None:
        ranges.append((open_at, raw.offsets[-1] + 1))
    return tuple(ranges)
