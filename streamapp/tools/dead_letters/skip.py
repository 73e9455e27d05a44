"""Skipping a record: lets a partition go on that is stopped by one record.

A skip is a record of the journal. Like a reset, it is written while the group has no members: each worker
reads the journal when it gets the partition, before it comes to the skipped record.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from streamapp.errors import NotYetError, StreamappError
from streamapp.worker.journal.entry import Skip
from streamapp.worker.journal.skips import outstanding
from streamapp.worker.restore.identity import Identity
from streamapp.worker.restore.journal_write import write_together
from streamapp.worker.restore.log_reader import LogReader, Offset
from streamapp.worker.restore.rebuild import EndMismatchError, check_end
from streamapp.worker.restore.reset import check_group_is_empty, check_group_stayed_empty
from streamapp.worker.restore.restorer import check_identity
from streamapp.worker.restore.tail import TailReader
from streamapp.worker.task.sources import SOURCES, SourceName, source_topics
from topics.columns.records import RawRecords
from topics.definitions import TopicNames


class SkipError(StreamappError):
    """A record cannot be skipped; the text has the reason."""


@dataclass(frozen=True, slots=True)
class Skippable:
    """A record that a partition has not processed yet."""

    topic: str
    partition: int
    skip: Skip
    key: bytes | None
    size: int | None  # bytes of the value; None: it has no value
    timestamp: int  # ms
    next: int  # the committed position
    already: bool  # an earlier skip covers it
    committed: Mapping[str, int] = field(default_factory=dict)  # committed offsets of the partition, by topic
    topic_ids: Mapping[str, str] = field(default_factory=dict)


def find(
    kafka: Mapping[str, Any], group: str, names: TopicNames, partition: int, source: SourceName, offset: int
) -> Skippable:
    """Return the record of a source at an offset, if it can be skipped; SkipError, RestoreError, ResetError.

    `kafka`: client properties under Kafka's names; `group`: whose offsets count, it must have no members.
    """
    check_group_is_empty(kafka, group)
    try:
        with LogReader(kafka, group, lambda: False) as reader:
            return look_up(reader, Identity(kafka), names, partition, source, offset)
    except NotYetError as error:
        message = f"partition {partition}: a transaction is open, or a broker away ({error}); try again later"
        raise SkipError(message) from error
    except EndMismatchError as error:
        message = (
            f"partition {partition}: {error}; it cannot be restored, which comes first: see 'grove models "
            "restore' and 'grove models reset'"
        )
        raise SkipError(message) from error


def skip(kafka: Mapping[str, Any], group: str, names: TopicNames, record: Skippable) -> None:
    """Skip a record when its partition is next processed; a second skip of it changes nothing.

    The record is looked up again, because a worker may have run since it was found. The errors of `find`,
    BrokerError.
    """
    now = find(kafka, group, names, record.partition, record.skip.source, record.skip.offset)
    if now.skip.topic_id != record.skip.topic_id:
        message = f"topic {record.topic} was created again since: its record at this place is another record"
        raise SkipError(message)
    if now.already:
        return
    if now.committed:  # so that no worker keeps its task
        with LogReader(kafka, group, lambda: False) as reader:
            reader.commit(now.committed, now.partition, now.topic_ids)
    write_together(kafka, group, names.journal, now.partition, [now.skip])
    check_group_stayed_empty(kafka, group, names, now.partition)


def look_up(
    reader: LogReader, identity: Identity, names: TopicNames, partition: int, source: SourceName, offset: int
) -> Skippable:
    """Return the record of a source at an offset; the errors of `find`, NotYetError."""
    if not SOURCES[source].may_be_dead_letter:
        message = f"a record of {source} must be processed: none of them may be a dead letter"
        raise SkipError(message)
    topics = source_topics(names)
    offsets = reader.offsets(topics.values(), partition)
    ids = identity.topic_ids(topics.values())
    check_identity(partition, ids, offsets)
    tail = TailReader(reader.of(names.journal, partition), names.journal, partition).newest()
    committed = {name: offsets[topic].position for name, topic in topics.items()}
    check_end(tail.end, committed)
    position, raw = _read(reader, topics[source], partition, offset, offsets[topics[source]])
    waiting = outstanding(
        tail.skips,
        {name: at or 0 for name, at in committed.items()},
        {name: ids[topic] for name, topic in topics.items()},
    )
    return Skippable(
        topics[source],
        partition,
        Skip(tail.incarnation, source, offset, ids[topics[source]]),
        raw.keys[0],
        None if raw.values[0] is None else len(raw.values[0]),
        raw.timestamps[0],
        position,
        already=any((earlier.source, earlier.offset) == (source, offset) for earlier in waiting),
        committed={topics[name]: at for name, at in committed.items() if at is not None},
        topic_ids=ids,
    )


def _read(reader: LogReader, topic: str, partition: int, offset: int, at: Offset) -> tuple[int, RawRecords]:
    """Return the position and the record at an offset; SkipError if no record there will be processed."""
    here = f"topic {topic} partition {partition} offset {offset}"
    first, end = reader.of(topic, partition).range()
    if at.position is not None and offset < at.position:
        message = f"{here} was processed already: {at.position} is the next one, see grove topics describe"
        raise SkipError(message)
    if offset < first:
        message = f"{here} is deleted: retention has left the records from {first} on"
        raise SkipError(message)
    if offset >= end:
        message = (
            f"{here} is not there yet: the log ends at {end}; only a record that is there can be skipped"
        )
        raise SkipError(message)
    reader.open(topic, partition, offset)
    for raw in reader.up_to(offset + 1):
        return first if at.position is None else at.position, raw
    message = f"{here} has no record (a marker, or compaction removed it); workers pass it without a command"
    raise SkipError(message)
