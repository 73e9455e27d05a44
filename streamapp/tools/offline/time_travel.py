"""Time travel: the task of a partition as it was at a point of its journal, by snapshot and replay.

    newest usable snapshot not after the point ─> journal entries before it ─> the entry with it, cut there

There are two kinds of points: positions at which a commit ended, and a record of one source. A journal
entry is cut at a record, because a task's results never depend on how its records were cut into runs. If
the journal was trimmed too far, or does not reach the point yet, the error lists the points that exist.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from streamapp.tools.offline.errors import OfflineError
from streamapp.worker.journal.entry import Entry, Manifest, Reset, Step
from streamapp.worker.journal.ledger import clipped
from streamapp.worker.restore.errors import RestoreError
from streamapp.worker.restore.journal_replay import Replay
from streamapp.worker.restore.rebuild import Committed, agree, carries_one_of
from streamapp.worker.restore.tail import Tail, TailReader, entries_behind
from streamapp.worker.snapshots.chunks import DamagedError
from streamapp.worker.snapshots.stored import Get
from streamapp.worker.task.sources import Positions, in_words
from streamapp.worker.task.task import Task
from streamapp.worker.task.task_config import TaskConfig

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Arrived:
    """A task at a point of its journal."""

    task: Task
    positions: Positions
    records: int  # number of replayed records
    dead_lettered: str | None = (
        None  # why the record at the point was not processed; None: it was processed, or there is none
    )


BaseKind = Literal["beginning", "snapshot", "reset"]
"""Where a replay begins: at the beginning of the journal, at a snapshot, or at a reset."""


@dataclass(frozen=True, slots=True)
class Departure:
    """A replay that stands at a point of its journal, and the entries after that point."""

    replay: Replay
    entries: Sequence[Entry]
    base: BaseKind

    def go_on(self) -> None:
        """Replay the rest of the journal; OfflineError if that cannot be done."""
        for entry in self.entries:
            apply(self.replay, entry)


def apply(replay: Replay, entry: Entry) -> None:
    """Replay one entry; OfflineError if that cannot be done."""
    try:
        replay.apply(entry)
    except RestoreError as error:
        message = f"partition {replay.partition}: {error.reason}"
        raise OfflineError(message) from error


class TimeTravel:
    """Rebuilds the task of one partition."""

    def __init__(
        self,
        partition: int,
        tails: TailReader,
        get: Get,
        new_replay: Callable[[], Replay],
        config: TaskConfig,
    ) -> None:
        """`get`: returns chunks of snapshots; `config`: settings of a task that begins after a reset."""
        self._partition = partition
        self._tails = tails
        self._get = get
        self._new_replay = new_replay
        self._config = config

    def to_committed(self, committed: Committed) -> Arrived | None:
        """Return the task at offsets that the group committed; None if the journal ends before them.

        This may be so for a moment after the commit: the broker shows the offsets before the records.
        """
        for read in (self._tails.newest, lambda: self._tails.since(0)):
            tail = read()
            if not _reaches(tail.end, committed):
                return None
            arrived = self._from_base(tail, committed)
            if arrived is not None:
                return arrived
        raise OfflineError(self._no_base("its committed offsets"))

    def to_record(self, offset: int, *, behind: bool = False) -> Arrived:
        """Return the task right before the record of `instances` at an offset (`behind`: right after it)."""
        departure, entry, aside = self._at_record(offset)
        replay = departure.replay
        if behind:
            apply(replay, following(departure.entries[0], entry, offset))
        assert replay.task is not None
        assert replay.positions is not None
        return Arrived(replay.task, replay.positions, replay.records, aside)

    def from_record(self, offset: int) -> Departure:
        """Return a replay right before a record of `instances`, and the rest of the journal."""
        departure, entry, _ = self._at_record(offset)
        before, *later = departure.entries
        return replace(departure, entries=[remainder(before, entry, offset), *later])

    def from_earliest(self) -> Departure:
        """Return a replay at the earliest point that can be rebuilt, and the rest of the journal."""
        tail = self._tails.since(0)
        if tail.end is None:
            message = f"partition {self._partition}: nothing was processed yet, so nothing can be replayed"
            raise OfflineError(message)
        for base, replay in self._earliest(tail):
            return Departure(replay, _entries(self._tails, tail, base), _kind(base))
        raise OfflineError(self._no_base("any offset"))

    # -- details --------------------------------------------------------------------------------------------

    def _at_record(self, offset: int) -> tuple[Departure, Entry, str | None]:
        """Return a replay right before a record of `instances`, the entry with the record, and why the record
        was not processed (None: it was).

        The first entry of the departure is the part of that entry before the record.
        """
        tail = self._tails.since(0)
        end = tail.end
        if end is None or offset >= end["instances"]:
            reach = self._range(tail) if end is not None else "nothing was processed of this partition yet"
            message = f"instances {self._partition}:{offset} was not processed yet; {reach}"
            raise OfflineError(message)
        for base, replay in self._whole(tail, lambda base: base.positions["instances"] <= offset):
            entries = _entries(self._tails, tail, base)
            for number, entry in enumerate(entries):
                if entry.after["instances"] <= offset:
                    apply(replay, entry)
                    continue
                before, aside = shortened(entry, offset)
                apply(replay, before)
                return Departure(replay, [before, *entries[number + 1 :]], _kind(base)), entry, aside
            message = (
                f"partition {self._partition}: its journal does not hold how instances {offset} was processed"
            )
            raise OfflineError(message)
        message = f"the state before instances {self._partition}:{offset} cannot be had: {self._range(tail)}"
        raise OfflineError(message)

    def _earliest(self, tail: Tail) -> Iterator[tuple[Manifest | Reset | None, Replay]]:
        """Yield the bases that a replay can begin from, earliest first, each with its replay."""
        bases = _bases(tail, lambda base: True)  # noqa: ARG005 - the caller's
        snapshots = [base for base in bases if isinstance(base, Manifest)]
        for base in reversed(bases):
            if isinstance(base, Reset) and carries_one_of(base, snapshots):
                continue  # only a replay from this base has a state with its positions
            replay = self._stand_at(base, tail)
            if replay is not None:
                yield base, replay

    def _from_base(self, tail: Tail, end: Committed) -> Arrived | None:
        for base, replay in self._whole(tail, lambda base: _reaches(end, base.positions)):
            for entry in _entries(self._tails, tail, base):
                if replay.positions is not None and agree(end, replay.positions):
                    break
                apply(replay, entry)
            if replay.task is None or replay.positions is None or not agree(end, replay.positions):
                message = (
                    f"partition {self._partition}: its journal has no commit at {in_words(end)}; the group's "
                    "offsets were reset, or the journal is another topic"
                )
                raise OfflineError(message)
            return Arrived(replay.task, replay.positions, replay.records)
        return None

    def _whole(
        self, tail: Tail, usable: Callable[[Manifest | Reset], bool]
    ) -> Iterator[tuple[Manifest | Reset | None, Replay]]:
        """Yield the complete bases, best first, each with a replay that begins there.

        OfflineError at a reset with an incomplete snapshot: a worker would not begin with new models there
        either.
        """
        damaged: list[Manifest] = []
        for base in _bases(tail, usable):
            if isinstance(base, Reset) and carries_one_of(base, damaged):
                message = (
                    f"partition {self._partition}: the snapshot that 'grove models restore' let it go on "
                    "from is not whole"
                )
                raise OfflineError(message)
            replay = self._stand_at(base, tail)
            if replay is not None:
                yield base, replay
            elif isinstance(base, Manifest):
                damaged.append(base)

    def _stand_at(self, base: Manifest | Reset | None, tail: Tail) -> Replay | None:
        """Return a replay that begins at a base (None: at the beginning); None if the base is incomplete."""
        replay = self._new_replay()
        if isinstance(base, Reset):
            replay.begin(base.positions, None, self._config)
        elif isinstance(base, Manifest):
            try:
                replay.begin_at(base, self._get)
            except DamagedError as error:
                logger.warning("partition %d: a snapshot cannot be used: %s", self._partition, error)
                return None
        elif not (tail.whole and tail.first == 0):
            return None
        return replay

    def _range(self, tail: Tail) -> str:
        end = tail.end
        assert end is not None
        for base, _ in self._earliest(tail):
            first = 0 if base is None else base.positions["instances"]
            if first == end["instances"]:
                return f"journal and snapshots begin at {first}, where nothing was processed yet"
            return f"journal and snapshots reach from {first} to {end['instances'] - 1}"
        return self._no_base("any offset")

    def _no_base(self, what: str) -> str:
        return (
            f"partition {self._partition}: the state at {what} cannot be had: no snapshot is whole, and the "
            "journal does not reach back to the beginning"
        )


def shortened(entry: Entry, offset: int) -> tuple[Entry, str | None]:
    """Return the part of an entry right before a record of `instances` that it processed.

    Also return why that record became a dead letter: None if it was processed, or is a hole in the log.
    """
    at, steps = dict(entry.before), []
    for step in entry.steps:
        if step.source == "instances" and step.to > offset:
            if offset > at["instances"]:
                steps.append(_cut(step, offset))
            at["instances"] = offset
            return replace(entry, steps=tuple(steps), after=at), _aside(step, offset)
        steps.append(step)
        at[step.source] = step.to
    message = f"entry must process instances {offset}, it ends at {in_words(entry.after)}"
    raise ValueError(message)


def following(before: Entry, entry: Entry, offset: int) -> Entry:
    """Return the entry of one record, which follows the entry that `shortened` returned."""
    step = next(step for step in entry.steps if step.source == "instances" and step.to > offset)
    after: Positions = {**before.after, "instances": offset + 1}
    cut_step = replace(_cut(step, offset + 1), skipped=clipped(step.skipped, offset, offset + 1))
    return replace(entry, before=before.after, after=after, steps=(cut_step,), config=None)


def remainder(before: Entry, entry: Entry, offset: int) -> Entry:
    """Return the entry of the record and all after it, which follows the entry that `shortened` returned."""
    number = next(n for n, step in enumerate(entry.steps) if step.source == "instances" and step.to > offset)
    step = entry.steps[number]
    rest = replace(
        step,
        skipped=clipped(step.skipped, offset, step.to),
        refused=clipped(step.refused, offset, step.to),
        unread=tuple((first, end) for first, end in step.unread if end > offset),
        count=None,
    )
    return replace(entry, before=before.after, steps=(rest, *entry.steps[number + 1 :]), config=None)


def _cut(step: Step, to: int) -> Step:
    skipped, refused = clipped(step.skipped, 0, to), clipped(step.refused, 0, to)
    unread = tuple((first, end) for first, end in step.unread if first < to)  # a batch is skipped as a whole
    return replace(step, to=to, skipped=skipped, refused=refused, unread=unread, count=None)


def _aside(step: Step, offset: int) -> str | None:
    if any(a <= offset < b for a, b in step.skipped):
        return "it is a dead letter (processing-error, skipped), or was lost to retention: it left no trace"
    if any(a <= offset < b for a, b in step.unread):
        return "its batch is a dead letter (batch-too-large, bad-batch): none of its records was read"
    if any(a <= offset < b for a, b in step.refused):
        return "rows of it are dead letters (too-many-models)"
    return None


def _bases(tail: Tail, usable: Callable[[Manifest | Reset], bool]) -> list[Manifest | Reset | None]:
    """Return the bases from which a replay may begin, best first; None: the beginning of the journal.

    These are usable snapshots and resets, up to the newest usable reset.
    """
    bases: list[Manifest | Reset | None] = []
    for _, record in reversed(tail.records):
        if isinstance(record, Manifest | Reset) and usable(record):
            bases.append(record)
            if isinstance(record, Reset):
                return bases
    return [*bases, None]


def _kind(base: Manifest | Reset | None) -> BaseKind:
    if base is None:
        return "beginning"
    return "snapshot" if isinstance(base, Manifest) else "reset"


def _entries(tails: TailReader, tail: Tail, base: Manifest | Reset | None) -> list[Entry]:
    if isinstance(base, Manifest) and base.start < tail.start:
        tail = tails.since(base.start)
    return entries_behind(tail, base)


def _reaches(end: Committed | None, positions: Committed) -> bool:
    """Whether an end is at or after positions, in every source that has both."""
    if end is None:
        return False
    pairs = ((at, positions[source]) for source, at in end.items())
    return all(at is None or position is None or at >= position for at, position in pairs)
