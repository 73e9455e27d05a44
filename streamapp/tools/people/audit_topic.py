"""Audit topic: all audit entries up to the present end of the topic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from streamapp.errors import NotYetError
from streamapp.people.people_store import PeopleStore
from streamapp.tools.offline.errors import OfflineError
from streamapp.worker.restore.errors import RestoreError
from streamapp.worker.restore.log_reader import LogReader
from topics.clients.cluster import Cluster
from topics.codecs import decode_audit
from topics.columns.records import AuditEntry
from topics.definitions import TopicNames


def read_audit(kafka: Mapping[str, Any], group: str, names: TopicNames) -> Iterator[list[AuditEntry]]:
    """Yield the entries in batches, one partition after the other; records that are no entries are left out.

    `kafka`: client properties under Kafka's names; `group`: of the consumer, which never commits.
    """
    topic = names.audit
    try:
        with LogReader(kafka, group, lambda: False) as reader:
            count = Cluster(kafka).partition_count(topic)
            ranges = {number: reader.of(topic, number).range() for number in range(count)}
            for partition, (first, end) in ranges.items():
                if first < end:
                    reader.open(topic, partition, first)
                    for raw in reader.up_to(end):
                        decoded = decode_audit([value or b"" for value in raw.values])
                        yield [entry for entry in decoded if isinstance(entry, AuditEntry)]
    except NotYetError as error:
        message = f"topic {topic}: {error}; try again later"
        raise OfflineError(message) from error
    except RestoreError as error:  # retention has deleted the records
        message = f"topic {topic}: {error.reason}; try again"
        raise OfflineError(message) from error


def people_in(kafka: Mapping[str, Any], group: str, names: TopicNames) -> PeopleStore:
    """Return a store in memory with the figures of all entries; the caller closes it."""
    people = PeopleStore(":memory:")
    for entries in read_audit(kafka, group, names):
        people.apply(entries, {})
    return people
