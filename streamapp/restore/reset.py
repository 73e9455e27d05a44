"""The way out for a partition that cannot be restored: what it learned is given up, explicitly.

A reset is a record of the journal. It is written while the group has no members, so that no worker has a task
that would go on as if nothing had happened.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from streamapp.errors import StreamappError
from streamapp.group import is_occupied, members_of
from streamapp.journal.entry import (
    Entry,
    Positions,
    Record,
    Reset,
    Skip,
    decode,
    source_topics,
)
from streamapp.journal.skips import outstanding
from streamapp.restore.errors import NotYetError
from streamapp.restore.identity import UNKNOWN, Identity
from streamapp.restore.log_reader import LogReader, Offset
from streamapp.restore.together import write_together
from topics.definitions import TopicNames


class ResetError(StreamappError):
    """A partition that may not be reset now; says what to do first."""


class Stand(NamedTuple):
    """Where a partition goes on, which is committed."""

    positions: Positions
    incarnation: int  # the highest of its journal
    is_end: bool  # of the journal, whose offsets were gone: nothing has to be given up
    skips: tuple[Skip, ...] = ()  # that lie ahead; to be written behind a reset, before which nothing counts


def reset(kafka: Mapping[str, Any], group: str, names: TopicNames, partition: int) -> Positions:
    """Give a partition new models from its committed offsets on; return these."""
    check_nobody_is_there(kafka, group)
    with LogReader(kafka, group, lambda: False) as reader:
        stands = stand(reader, Identity(kafka), names, partition)
    records: list[Record] = [Reset(stands.incarnation, stands.positions), *stands.skips]
    write_together(kafka, group, names.journal, partition, records)
    return stands.positions


def stand(reader: LogReader, identity: Identity, names: TopicNames, partition: int) -> Stand:
    """Find out where a partition goes on, commit that and return it.

    In each source at its committed offset. Without offsets where the journal ends. In a topic that was made
    anew at its first record, for none of them was processed; where retention took records, behind them; where
    a log has lost its end, at what is its end now.
    """
    topics = source_topics(names)
    try:
        offsets = reader.offsets(topics, partition)
        topic_ids = identity.topic_ids(topics)
        logs = [reader.of(topic, partition).range() for topic in topics]
        incarnation, ends, skips = _journal(reader, names.journal, partition)
    except NotYetError as error:
        message = f"partition {partition}: a transaction is open, or a broker away ({error}); try again later"
        raise ResetError(message) from error
    without_offsets = all(offset.position is None for offset in offsets)
    positions = tuple(
        _position(log, offset, end, topic_ids[topic], may_be_kept=without_offsets)
        for topic, log, offset, end in zip(topics, logs, offsets, ends or (None,) * len(topics), strict=True)
    )
    reader.commit(dict(zip(topics, positions, strict=True)), partition, topic_ids)
    ahead = outstanding(skips, positions, [topic_ids[topic] for topic in topics])
    return Stand(positions, incarnation, without_offsets and positions == ends, ahead)


def _position(
    log: tuple[int, int], offset: Offset, journalled: int | None, topic_id: str, *, may_be_kept: bool
) -> int:
    """Return where to go on in a log (first offset, end); `journalled`: where the journal ends in it.

    `may_be_kept`: the group has no offsets at all; where it lacks this one only, it went with the topic.
    """
    first, end = log
    if UNKNOWN not in (offset.topic_id, topic_id) and offset.topic_id != topic_id:
        return first
    if offset.position is not None:
        return min(max(first, offset.position), max(first, end))
    if may_be_kept and journalled is not None and journalled <= end:
        return max(first, journalled)
    return first


def check_nobody_is_there(kafka: Mapping[str, Any], group: str) -> None:
    """Raise ResetError while a group has members."""
    members = members_of(kafka, group)
    if members:
        raise ResetError(is_occupied(group, members))


def _journal(reader: LogReader, topic: str, partition: int) -> tuple[int, Positions | None, list[Skip]]:
    """Return the highest incarnation in a journal, where it ends, and what was ever to be skipped.

    What cannot be read does not count.
    """
    reader.open(topic, partition)
    highest, end, skips = 0, None, list[Skip]()
    for raw in reader.to_end():
        for value in raw.values:
            try:
                record = decode(value or b"", topic, partition)
            except StreamappError:
                continue  # of another release: that may be why it is reset
            highest = max(highest, record.incarnation)
            if isinstance(record, Skip):
                skips.append(record)
            elif isinstance(record, Entry | Reset):  # a snapshot is of an earlier point
                end = record.after if isinstance(record, Entry) else record.positions
    return highest, end, skips
