"""Restorer: committed offsets, snapshot, journal, replay; in a thread, on a separate task.

    committed offsets ──equal──> the task that is here stays
            │
            └─> newest whole snapshot ─> journal after it ─> replay ─> its end = committed offsets

The end of the journal and the committed offsets were written in one transaction. If they differ, an open
transaction of another worker holds one of them back, and the restore waits for its end. If the difference
stays, the restore fails: it never guesses which of them is right.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, Final

from streamapp.errors import NotYetError, OtherReleaseError
from streamapp.worker.journal.offset_metadata import UNKNOWN
from streamapp.worker.journal.skips import outstanding
from streamapp.worker.restore.errors import RestoreError, of_other_release, ways_out
from streamapp.worker.restore.identity import FIRST_S, Identity
from streamapp.worker.restore.journal_replay import Replay
from streamapp.worker.restore.log_reader import REQUEST_S, LogReader, Offset
from streamapp.worker.restore.readers import Readers
from streamapp.worker.restore.rebuild import EndMismatchError, Rebuild, Restored, RestoreRequest, agree
from streamapp.worker.restore.replayed_schemas import schemas_at_hand
from streamapp.worker.restore.tail import TailReader
from streamapp.worker.task.models.eviction.model_memory import ModelMemory
from streamapp.worker.task.sources import SourceName, in_words, source_topics
from streamapp.worker.task.task_config import TaskConfig
from topics.definitions import TopicNames
from topics.fetching.batches import PROCESSED
from topics.registry.known_schemas import KnownSchemas

TIMEOUT_S: Final = 60.0
"""How long the journal may be behind: the broker ends a dead worker's transaction long before."""

AHEAD_TIMEOUT_S: Final = 5.0
"""How long the journal may be ahead: offsets are read before it, and a commit may lie between."""


OFFSETS_S: Final = 1.0
"""How long the first request for offsets may take; usually it takes a few milliseconds."""


class Restorer:
    """Restores partitions; calls in several threads restore several at a time."""

    def __init__(
        self,
        kafka: Mapping[str, Any],
        group: str,
        names: TopicNames,
        config: TaskConfig,
        memory: Callable[[], ModelMemory] = ModelMemory,
        schemas: KnownSchemas | None = None,
    ) -> None:
        """`kafka`: client properties under Kafka's names; `group`: whose offsets count; `memory`: returns a
        limit for the models of one partition during its restore; `schemas`: of the registry, if it is in
        use.
        """
        self._kafka = kafka
        self._group = group
        self._config = config
        self._memory = memory
        self._schemas = None if schemas is None else partial(schemas_at_hand, schemas)
        self._topics = source_topics(names)
        self._journal = names.journal
        self._readers = Readers(lambda abandoned: LogReader(kafka, group, abandoned, in_runs=True))
        self._timeout_s: dict[
            int, float
        ] = {}  # seconds to wait for offsets that did not arrive in time the last time
        self._differs_since: dict[
            int, tuple[Hashable, float]
        ] = {}  # time since when the journal's end differs, and the membership then

    def restore(self, request: RestoreRequest) -> Restored:
        """Return the task of a partition, or that the current task may stay.

        Raise NotYetError if another worker's transaction has to end first, RestoreError if the state cannot
        be restored, AbandonedError.
        """
        number = request.partition
        with self._readers.borrow(request.abandoned) as reader:
            journal = reader()
            offsets = self._offsets(journal, number)
            committed = {source: offsets[topic].position for source, topic in self._topics.items()}
            topic_ids = self._identity.topic_ids(self._topics.values())
            check_identity(number, topic_ids, offsets)
            kept_positions = (
                None if any(offset.anew for offset in offsets.values()) else request.kept_positions
            )
            if kept_positions is not None and agree(committed, kept_positions):
                return Restored(None, kept_positions, 0, topic_ids=topic_ids)
            self._identity.check_led(self._journal, number)

            def open_log(source: SourceName, position: int) -> LogReader:
                log = reader()
                log.open(self._topics[source], number, position, PROCESSED)
                return log

            tails = TailReader(journal.of(self._journal, number), self._journal, number)
            try:
                replay = Replay(number, open_log, self._memory(), schemas=self._schemas)
                restored = Rebuild(request, self._config, tails, replay).run(committed)
            except EndMismatchError as error:
                raise self._wait(request, error) from None
            except OtherReleaseError as error:
                raise of_other_release(number, str(error)) from error
        self._differs_since.pop(number, None)
        ids = {source: topic_ids[topic] for source, topic in self._topics.items()}
        skips = outstanding(restored.skips, restored.positions, ids)
        return replace(restored, topic_ids=topic_ids, skips=skips)

    def _offsets(self, reader: LogReader, partition: int) -> dict[str, Offset]:
        """Return the committed offsets; NotYetError after a moment if a transaction with them is pending.

        The client does not report a pending transaction, it waits, while other partitions need the thread.
        Each attempt allows more time for a broker that is merely slow.
        """
        timeout_s = self._timeout_s.get(partition, OFFSETS_S)
        self._timeout_s[partition] = min(2 * timeout_s, REQUEST_S)
        offsets = reader.offsets(self._topics.values(), partition, timeout_s)
        self._timeout_s.pop(partition, None)  # another, abandoned restore of it may come first
        return offsets

    @cached_property
    def _identity(self) -> Identity:
        return Identity(self._kafka, FIRST_S)

    def _wait(self, request: RestoreRequest, difference: EndMismatchError) -> NotYetError | RestoreError:
        """Return NotYetError for a difference that may pass, RestoreError for one that has lasted too long.

        Differences seen before the last rebalance do not count: other workers may have committed since.
        """
        partition, now = request.partition, time.monotonic()
        if difference.positions is None and self._is_empty(partition):
            return RestoreError(partition, self._without_journal(difference))
        seen_as, since = self._differs_since.get(partition, (request.membership, now))
        if seen_as != request.membership:
            since = now
        self._differs_since[partition] = request.membership, since
        waited = now - since
        if difference.ahead and waited > AHEAD_TIMEOUT_S:
            return RestoreError(partition, self._ahead(difference, partition))
        if waited > TIMEOUT_S:
            return RestoreError(partition, f"{difference}: records of {self._journal} are missing")
        return NotYetError(str(difference))

    def _is_empty(self, partition: int) -> bool:
        """Whether the journal has no records, not even of a transaction that is open."""
        if self._identity.has_open_transaction(self._journal, partition):
            return False
        with LogReader(self._kafka, self._group, lambda: False) as log:  # re-read: one may have ended
            return log.of(self._journal, partition).is_empty()

    def _without_journal(self, difference: EndMismatchError) -> str:
        return (
            f"the group {self._group} has offsets ({in_words(difference.committed)}), but {self._journal} "
            "is empty: they were committed by a release that kept no journal, or the journal was created "
            "again; the state of the models before them is not known"
        )

    def _ahead(self, difference: EndMismatchError, partition: int) -> str:
        """Return why the journal may be ahead of the committed offsets for good."""
        if all(at is None for at in difference.committed.values()) and difference.positions is not None:
            return (
                f"the group {self._group} has no offsets, the journal ends at "
                f"{in_words(difference.positions)}: they have expired (offsets.retention.minutes of the "
                "broker), were deleted, alone or with all topics, or another application.id wrote the "
                f"journal; if the topics are the same, 'grove models restore --partition {partition}' lets "
                "it go on where the journal ends"
            )
        if difference.gone:
            topics = ", ".join(self._topics[source] for source in difference.gone)
            return (
                f"{difference}: Kafka deletes offsets with their topic, so {topics} was created again; "
                f"{ways_out(partition)}"
            )
        return f"{difference}: offsets were reset, or {self._journal} is another topic"


def check_identity(partition: int, topic_ids: Mapping[str, str], offsets: Mapping[str, Offset]) -> None:
    """Raise RestoreError if an offset belongs to a topic other than the current topic of that name."""
    for topic, offset in offsets.items():
        now = topic_ids[topic]
        if UNKNOWN not in (now, offset.topic_id) and now != offset.topic_id:
            reason = (
                f"topic {topic} was created again: its id is {now}, offset {offset.position} is of the topic "
                f"with id {offset.topic_id}; {ways_out(partition)}"
            )
            raise RestoreError(partition, reason)
