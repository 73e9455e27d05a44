"""Partition answers: committed offsets, lag, and restores of partitions."""

from __future__ import annotations

from typing import Any

from streamapp.errors import NotYetError
from streamapp.tools.offline.installation import Installation
from streamapp.worker.journal.entry import Manifest
from streamapp.worker.restore.errors import RestoreError
from streamapp.worker.restore.log_reader import LogReader
from streamapp.worker.restore.tail import TailReader
from streamapp.worker.task.sources import named, source_topics
from topics.clients.consumer_group import members_of


class PartitionAnswers:
    """Partitions of an installation, and the members of its group."""

    def __init__(self, place: Installation) -> None:
        self._place = place

    def partitions(self) -> dict[str, Any]:
        """Return the group's members and, for each partition, its lag, restores and newest snapshot."""
        place = self._place
        with LogReader(place.kafka, place.group, lambda: False) as reader:
            rows = [self._row(reader, number) for number in range(place.partitions)]
        return {"group": place.group, "members": members_of(place.kafka, place.group), "rows": rows}

    def _row(self, reader: LogReader, number: int) -> dict[str, Any]:
        """Return the state of one partition; `trouble`: why it cannot be read now."""
        names, row = self._place.names, {"partition": number}
        try:
            topics = source_topics(names)
            committed = reader.committed(topics.values(), number)
            lags = {}
            for source, topic in topics.items():
                first, end = reader.of(topic, number).range()
                at = committed[topic]
                lags[source] = end - (first if at is None else max(first, at))
            tail = TailReader(reader.of(names.journal, number), names.journal, number).newest()
        except (NotYetError, RestoreError) as error:
            reason = error.reason if isinstance(error, RestoreError) else str(error)
            return {**row, "trouble": reason}
        snapshots = [base for base in tail.bases if isinstance(base, Manifest)]
        newest = snapshots[0] if snapshots else None
        return {
            **row,
            "trouble": None,
            "lag": lags,
            "behind": sum(lags.values()),
            "incarnation": tail.incarnation,
            "snapshot": None
            if newest is None
            else {"bytes": newest.size, "models": newest.units, "positions": named(newest.positions)},
            "since_snapshot": len(tail.records),
        }
