"""The way out for a partition that cannot be restored: what it learned is given up, explicitly.

A reset is a record of the journal. It is written while the group has no members, so that no worker has a task
that would go on as if nothing had happened.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from streamapp.errors import StreamappError
from streamapp.group import is_occupied, members_of
from streamapp.journal.entry import Positions, Record, Reset, decode, encode, source_topics
from streamapp.restore.errors import NotYetError
from streamapp.restore.log_reader import LogReader
from topics.definitions import TopicNames
from topics.sender import Sender


class ResetError(StreamappError):
    """A partition that may not be reset now; says what to do first."""


def reset(kafka: Mapping[str, Any], group: str, names: TopicNames, partition: int) -> Positions:
    """Give a partition new models from its committed offsets on; return these."""
    check_nobody_is_there(kafka, group)
    with LogReader(kafka, group, lambda: False) as reader:
        positions, incarnation = stand(reader, names, partition)
    write(kafka, names.journal, partition, [Reset(incarnation, positions)])
    return positions


def stand(reader: LogReader, names: TopicNames, partition: int) -> tuple[Positions, int]:
    """Return where a partition goes on, which is committed then, and the highest incarnation of its journal.

    Where a source was never read, its log's first record is next, or (a position that retention has taken)
    the first one that is left.
    """
    topics = source_topics(names)
    try:
        committed = reader.committed(topics, partition)
    except NotYetError as error:
        message = f"partition {partition}: a transaction is still open ({error}); try again later"
        raise ResetError(message) from error
    positions = tuple(
        reader.of(topic, partition).range()[0] if at is None else at
        for topic, at in zip(topics, committed, strict=True)
    )
    # The journal and the committed offsets must agree, also where offsets have expired.
    reader.commit(dict(zip(topics, positions, strict=True)), partition)
    return positions, _incarnation(reader, names.journal, partition)


def write(kafka: Mapping[str, Any], topic: str, partition: int, records: Sequence[Record]) -> None:
    """Write records to the journal of a partition that nobody has."""
    n = len(records)
    sender = Sender(kafka)
    sender.send_run(topic, partition, [encode(record) for record in records], [None] * n, [0] * n)
    sender.flush()
    sender.close()


def check_nobody_is_there(kafka: Mapping[str, Any], group: str) -> None:
    """Raise ResetError while a group has members."""
    members = members_of(kafka, group)
    if members:
        raise ResetError(is_occupied(group, members))


def _incarnation(reader: LogReader, topic: str, partition: int) -> int:
    """Return the highest incarnation in a journal; what cannot be read any more does not count."""
    reader.open(topic, partition)
    highest = 0
    for raw in reader.to_end():
        for value in raw.values:
            try:
                record = decode(value or b"", topic, partition)
            except StreamappError:
                continue  # of another release: that may be why it is reset
            highest = max(highest, record.incarnation)
    return highest
