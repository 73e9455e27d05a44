"""The way out for a partition that cannot be restored: what it learned is given up, explicitly.

A reset is a record of the journal. It is written while the group has no members, so that no worker has a task
that would go on as if nothing had happened.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from streamapp.errors import StreamappError
from streamapp.journal.entry import SOURCES, Positions, Reset, decode, encode
from streamapp.restore.errors import NotYetError
from streamapp.restore.log_reader import LogReader
from topics.definitions import TopicNames
from topics.errors import BrokerError
from topics.sender import Sender

REQUEST_S: Final = 10.0


class ResetError(StreamappError):
    """A partition that may not be reset now; says what to do first."""


def reset(kafka: Mapping[str, Any], group: str, names: TopicNames, partition: int) -> Positions:
    """Give a partition new models from its committed offsets on; return these.

    Where a source was never read, its log's first record is next, or (a position that retention has taken)
    the first one that is left.
    """
    _check_nobody_is_there(kafka, group)
    topics = tuple(getattr(names, source) for source in SOURCES)
    with LogReader(kafka, group, lambda: False) as reader:
        try:
            committed = reader.committed(topics, partition)
        except NotYetError as error:
            message = f"partition {partition}: a transaction is still open ({error}); try again later"
            raise ResetError(message) from error
        positions = tuple(
            at if (at := committed[topic]) is not None else reader.of(topic, partition).range()[0]
            for topic in topics
        )
        # The journal and the committed offsets must agree, also where offsets have expired.
        reader.commit(dict(zip(topics, positions, strict=True)), partition)
        incarnation = _incarnation(reader, names.journal, partition)
    sender = Sender(kafka)
    sender.send_run(names.journal, partition, [encode(Reset(incarnation, positions))], [None], [0])
    sender.flush()
    sender.close()
    return positions


def _check_nobody_is_there(kafka: Mapping[str, Any], group: str) -> None:
    client = AdminClient(dict(kafka))
    try:
        (described,) = client.describe_consumer_groups([group], request_timeout=REQUEST_S).values()
        members = described.result(2 * REQUEST_S).members
    except KafkaException as failure:
        message = f"group {group} cannot be described: {failure.args[0].str()}"
        raise BrokerError(message) from None
    if members:
        names = ", ".join(sorted(str(member.group_instance_id or member.member_id) for member in members))
        message = (
            f"group {group} must have no members, it has {names}; stop the workers ('grove worker drain' "
            "makes them leave at once), reset, and start them again"
        )
        raise ResetError(message)


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
