"""Records of the journal: entries of commits, snapshots, resets, skips (docs/journal.md).

The state of a partition is a function of its journal and of the instances and labels that the journal refers
to. An entry holds everything else on which a run depended: its order, the configuration, the controls
themselves, and the records that became dead letters.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Final

import msgpack

from streamapp.errors import StreamappError
from streamapp.worker.task.sources import SOURCES, Positions, SourceName, named, positions_of
from topics.columns.records import RawRecords

FORMAT_VERSION: Final = 5
"""The newest version. A record is written in the oldest version that can hold it, so that earlier releases
can read it.
"""

_WITHOUT_UNREAD: Final = 3
"""The last version whose steps cannot list unread batches."""

_WITHOUT_DEAD: Final = 4
"""The last version whose steps cannot list the controls that were refused."""

Ranges = tuple[tuple[int, int], ...]
"""Offsets as half-open ranges, ascending."""


class JournalError(StreamappError):
    """A journal that does not determine what happened; its partition cannot be restored."""


@dataclass(slots=True)
class Step:
    """Consecutive records of one source that were processed; nothing changes a step."""

    source: SourceName
    to: int  # position after them; they begin at the source's position before
    skipped: Ranges = ()  # dead letters `processing-error`, `skipped`: they left no trace in the state
    refused: Ranges = ()  # dead letters `too-many-models`: the worker had no room then
    records: RawRecords | None = None  # of a journalled source only: the records themselves
    count: int | None = None  # of records, unless they are journalled; None: not known
    unread: Ranges = ()  # batches `batch-too-large`, `bad-batch`: none of their records is in `count`
    dead: Ranges = ()  # controls with another dead letter: a replay refuses them, whatever its rules are


@dataclass(frozen=True, slots=True)
class Entry:
    """The records that one commit processed, step by step, for one partition."""

    incarnation: int  # of the task: one more than the highest before, whenever it was restored
    state_version: int
    platform: str
    before: Positions
    after: Positions
    steps: tuple[Step, ...]
    config: str | None = None  # of the task (JSON), in the first entry of an incarnation


@dataclass(frozen=True, slots=True)
class Manifest:
    """A complete snapshot: the cut it was taken at, and how to find and verify it in the table."""

    incarnation: int  # of the task that was cut
    sequence: int  # of the snapshot within the incarnation
    state_version: int
    platform: str
    positions: Positions  # where the cut was
    start: int  # offset in the journal at or before the first entry after the cut
    config: str  # of the task at the cut
    units: int
    size: int  # bytes of all units, compressed
    index_chunks: int
    index_crc: int
    index_size: int


@dataclass(frozen=True, slots=True)
class Reset:
    """A partition gave up what its models had learned: new models begin at these positions."""

    incarnation: int  # the highest so far
    positions: Positions


@dataclass(frozen=True, slots=True)
class Skip:
    """A record that becomes a dead letter unread, because an operator chose so (`grove dlq skip`).

    It holds until the partition has passed the record. A worker writes it again after each snapshot: a reader
    that begins at the newest snapshot then finds every skip that lies ahead.
    """

    incarnation: int  # the highest so far
    source: SourceName
    offset: int
    topic_id: str  # of the source's topic: a topic that was created again has other records; "": not known


Record = Entry | Manifest | Reset | Skip

_KINDS: Final[tuple[type[Record], ...]] = (Entry, Manifest, Reset, Skip)
_KINDS_OF_VERSION: Final = {1: 3, 2: 4, 3: 4, 4: 4, 5: 4}
"""The number of kinds of records in each version of the format."""

_POSITIONS: Final = frozenset({"before", "after", "positions"})
"""Fields that are positions."""

_BY_NAME: Final = 3
"""The first version that names the sources."""

_COUNT_AND_UNREAD: Final = 2
"""Members of a step after its ranges, if it passed over batches."""

_COLUMNS: Final = 5
"""Columns of the records in a step of controls."""

_NUMBERED: Final[tuple[SourceName, ...]] = ("controls", "instances", "labels")
"""The sources of earlier versions, which refer to them by number."""


def encode(record: Record) -> bytes:
    """Return the value of a journal record."""
    kind = _KINDS.index(type(record))
    fields = [_body(field.name, getattr(record, field.name)) for field in dataclasses.fields(record)]
    return bytes(msgpack.packb([_oldest_version(record), kind, *fields]))


def decode(value: bytes, topic: str = "", partition: int = -1) -> Record:
    """Return the journal record of a value; JournalError if this release cannot read it."""
    where = f"topic={topic} partition={partition}"
    try:
        body = msgpack.unpackb(value, use_list=False)
        version, kind, *fields = body
    except (ValueError, TypeError, msgpack.UnpackException) as error:
        message = f"{where}: a record is no journal entry ({error}); something else wrote to this topic"
        raise JournalError(message) from error
    if kind not in range(_KINDS_OF_VERSION.get(version, 0) if isinstance(version, int) else 0):
        message = (
            f"{where}: journal format version={version} kind={kind} must be a version from 1 to "
            f"{FORMAT_VERSION} and a kind below {len(_KINDS)}; run the release that wrote it, or a newer one"
        )
        raise JournalError(message)
    names = [field.name for field in dataclasses.fields(_KINDS[kind])]
    try:
        values = [_read(name, field, version, partition) for name, field in zip(names, fields, strict=True)]
        record: Record = _KINDS[kind](*values)
    except _UnknownSourceError as error:
        message = (
            f"{where}: source {error} must be one of {', '.join(SOURCES)}; run the release that wrote it, or "
            "a newer one"
        )
        raise JournalError(message) from error
    except (ValueError, TypeError, IndexError, AttributeError) as error:
        message = f"{where}: a record is no journal entry ({error}); something else wrote to this topic"
        raise JournalError(message) from error
    return record


def _oldest_version(record: Record) -> int:
    """Return the oldest version of the format that can hold a record."""
    steps = record.steps if isinstance(record, Entry) else ()
    if any(step.dead for step in steps):
        return FORMAT_VERSION
    return _WITHOUT_DEAD if any(step.unread for step in steps) else _WITHOUT_UNREAD


class _UnknownSourceError(Exception):
    """A source that this release does not have."""


def _body(field: str, value: Any) -> Any:
    """Return the JSON form of a field of a record."""
    if field in _POSITIONS:
        return dict(named(value))
    return [_step_body(step) for step in value] if field == "steps" else value


def _read(field: str, value: Any, version: int, partition: int) -> Any:
    """Return a field of a record from its JSON form: the inverse of `_body`."""
    if field in _POSITIONS:
        at = value if version >= _BY_NAME else dict(zip(_NUMBERED, value, strict=True))
        return positions_of({_known(name): position for name, position in at.items()})
    if field == "steps":
        return tuple(_step(step, version, partition) for step in value)
    return _source(value, version) if field == "source" else value


def _source(value: Any, version: int) -> SourceName:
    return _known(value if version >= _BY_NAME else _NUMBERED[value])


def _known(name: Any) -> SourceName:
    if name not in SOURCES:
        raise _UnknownSourceError(repr(name))
    source: SourceName = name
    return source


def _step_body(step: Step) -> list[Any]:
    body: list[Any] = [step.source, step.to]
    if step.records is not None:
        raw = step.records
        columns = (raw.offsets, raw.timestamps, raw.keys, raw.values, map(list, raw.headers))
        body += [step.skipped, step.refused, raw.topic, *map(list, columns)]
        body += [step.dead] if step.dead else []
    elif step.count is not None:
        body += [step.skipped, step.refused, step.count]
        body += [step.unread] if step.unread else []
    elif step.skipped or step.refused:
        body += [step.skipped, step.refused]
    return body


def _step(body: tuple[Any, ...], version: int, partition: int) -> Step:
    named, to, *rest = body
    source = _source(named, version)
    if not rest:
        return Step(source, to)
    skipped, refused, *more = rest
    if len(more) <= 1:
        return Step(source, to, skipped, refused, count=more[0] if more else None)
    if len(more) == _COUNT_AND_UNREAD:
        return Step(source, to, skipped, refused, count=more[0], unread=more[1])
    topic, *columns = more
    offsets, timestamps, keys, values, headers = map(list, columns[:_COLUMNS])
    raw = RawRecords(topic, partition, offsets, timestamps, keys, values, headers)
    (dead,) = columns[_COLUMNS:] or ((),)
    return Step(source, to, skipped, refused, raw, dead=dead)
