"""Reset: a partition that cannot be restored starts over with new models.

A reset is a record of the journal. It is written while the group has no members, so that no worker has a task
that would continue in spite of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from streamapp.errors import NotYetError, StreamappError
from streamapp.worker.journal.entry import Entry, Record, Reset, Skip, decode
from streamapp.worker.journal.offset_metadata import UNKNOWN
from streamapp.worker.journal.skips import outstanding
from streamapp.worker.restore.identity import Identity
from streamapp.worker.restore.journal_write import write_together
from streamapp.worker.restore.log_reader import LogReader, Offset
from streamapp.worker.task.sources import Positions, positions_of, source_topics
from topics.clients.cluster import Cluster
from topics.clients.consumer_group import is_occupied, members_of
from topics.definitions import TopicNames


class ResetError(StreamappError):
    """A partition that cannot be reset now; the text holds the step to take first."""


class StartingPoint(NamedTuple):
    """The positions from which a partition continues, after they were committed."""

    positions: Positions
    incarnation: int  # the highest of its journal
    is_end: bool  # the journal ended there, and its committed offsets were lost: nothing has to be given up
    skips: tuple[Skip, ...] = ()  # that lie ahead; written again after a reset


def reset(kafka: Mapping[str, Any], group: str, names: TopicNames, partition: int) -> Positions:
    """Give a partition new models from its committed offsets on; return these."""
    check_group_is_empty(kafka, group)
    with LogReader(kafka, group, lambda: False) as reader:
        count = Cluster(kafka).partition_count(names.instances)
        begin = starting_point(reader, Identity(kafka), names, partition, count)
    records: list[Record] = [Reset(begin.incarnation, begin.positions), *begin.skips]
    write_together(kafka, group, names.journal, partition, records, count)
    check_group_stayed_empty(kafka, group, names, partition)
    return begin.positions


def starting_point(
    reader: LogReader, identity: Identity, names: TopicNames, partition: int, count: int | None = None
) -> StartingPoint:
    """Determine where a partition continues, commit these positions and return them.

    `count`: number of partitions that new models belong to; None: keep the number noted with the earlier
    offsets.

    In each source it continues at the committed offset; without offsets, where the journal ends. In a topic
    that was created again it begins at the first record, because none was processed. Where retention deleted
    records, it continues after them. A log that has lost its end continues at its current end.
    """
    topics = source_topics(names)
    try:
        offsets = reader.offsets(topics.values(), partition)
        ids = identity.topic_ids(topics.values())
        logs = {source: reader.of(topic, partition).range() for source, topic in topics.items()}
        incarnation, ends, skips = _journal(reader, names.journal, partition)
    except NotYetError as error:
        message = f"partition {partition}: a transaction is open, or a broker away ({error}); try again later"
        raise ResetError(message) from error
    without_offsets = all(offset.position is None for offset in offsets.values())
    positions = positions_of(
        {
            source: _position(
                logs[source],
                offsets[topic],
                None if ends is None else ends[source],
                ids[topic],
                may_be_kept=without_offsets,
            )
            for source, topic in topics.items()
        }
    )
    reader.commit({topic: positions[source] for source, topic in topics.items()}, partition, ids, count)
    ahead = outstanding(skips, positions, {source: ids[topic] for source, topic in topics.items()})
    return StartingPoint(positions, incarnation, without_offsets and positions == ends, ahead)


def _position(
    log: tuple[int, int], offset: Offset, journalled: int | None, topic_id: str, *, may_be_kept: bool
) -> int:
    """Return where to continue in a log (first offset, end); `journalled`: where the journal ends in it.

    `may_be_kept`: the group has no offsets at all; if only this source has none, they were lost with the
    topic.
    """
    first, end = log
    if UNKNOWN not in (offset.topic_id, topic_id) and offset.topic_id != topic_id:
        return first
    if offset.position is not None:
        return min(max(first, offset.position), max(first, end))
    if may_be_kept and journalled is not None and journalled <= end:
        return max(first, journalled)
    return first


def check_group_is_empty(kafka: Mapping[str, Any], group: str) -> None:
    """Raise ResetError while a group has members."""
    members = members_of(kafka, group)
    if members:
        raise ResetError(is_occupied(group, members))


def check_group_stayed_empty(kafka: Mapping[str, Any], group: str, names: TopicNames, partition: int) -> None:
    """Raise ResetError if a worker may have restored a partition before its journal was written to.

    Offsets committed while a partition has no owner are marked as such; offsets that a worker committed later
    are not.
    """
    members = members_of(kafka, group)
    try:
        with LogReader(kafka, group, lambda: False) as reader:
            offsets = reader.offsets(source_topics(names).values(), partition)
        went_on = any(offset.position is not None and not offset.anew for offset in offsets.values())
    except NotYetError:  # a worker's transaction with offsets is open
        went_on = True
    if members or went_on:
        who = ", ".join(members) or "a worker that has left again"
        message = (
            f"partition {partition}: {who} joined during the command, and may have read the journal before "
            "this was written to it; stop the workers ('grove worker drain') and run it again"
        )
        raise ResetError(message)


def _journal(reader: LogReader, topic: str, partition: int) -> tuple[int, Positions | None, list[Skip]]:
    """Return the highest incarnation in a journal, where the journal ends, and all its skips.

    Records that cannot be read are ignored.
    """
    reader.open(topic, partition)
    highest, end, skips = 0, None, list[Skip]()
    for raw in reader.to_end():
        for value in raw.values:
            try:
                record = decode(value or b"", topic, partition)
            except StreamappError:
                continue  # of another release: this may be the reason for the reset
            highest = max(highest, record.incarnation)
            if isinstance(record, Skip):
                skips.append(record)
            elif isinstance(record, Entry | Reset):  # a snapshot belongs to an earlier point
                end = record.after if isinstance(record, Entry) else record.positions
    return highest, end, skips
