"""Restoring a partition: committed offsets, snapshot, journal, replay. In a thread, on a task of its own.

    committed offsets ──equal──> the task that is here stays
            │
            └─> newest whole snapshot ─> journal behind it ─> replay ─> its end = committed offsets

The end of the journal and the committed offsets were written in one transaction. Where they differ, one of
them is held back by a transaction of another worker that is still open: then it is waited for. If it stays
so, it is never guessed which of them is right.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Mapping
from contextlib import ExitStack
from typing import Any, Final

from streamapp.journal.entry import SOURCES, source_topics
from streamapp.restore.errors import NotYetError, RestoreError
from streamapp.restore.log_reader import LogReader
from streamapp.restore.rebuild import EndMismatchError, Rebuild, Restored, Wanted, agree
from streamapp.restore.replay import Replay
from streamapp.restore.tail import TailReader
from streamapp.task.config import TaskConfig
from streamapp.task.model_memory import ModelMemory
from streamapp.task.task import Source
from topics.definitions import TopicNames

PATIENCE_S: Final = 60.0
"""How long the journal may be behind: a dead worker's transaction is ended by the broker long before."""

AHEAD_PATIENCE_S: Final = 5.0
"""How long it may be ahead: offsets are read before it, and a commit may lie between."""


class Restorer:
    """Restores partitions, one after the other."""

    def __init__(
        self,
        kafka: Mapping[str, Any],
        group: str,
        names: TopicNames,
        config: TaskConfig,
        memory: Callable[[], ModelMemory] = ModelMemory,
    ) -> None:
        """`kafka`: client properties under Kafka's names; `group`: whose offsets count; `memory`: gives one
        to the models of a partition while it is restored."""
        self._kafka = kafka
        self._group = group
        self._config = config
        self._memory = memory
        self._topics = source_topics(names)
        self._journal = names.journal
        self._differs_since: dict[int, tuple[Hashable, float]] = {}  # as which member it is seen, since when

    def restore(self, wanted: Wanted) -> Restored:
        """Return the task of a partition, or that the one that stands there may stay.

        Raise NotYetError if another worker's transaction has to be waited for, RestoreError if the state
        cannot be had, AbandonedError.
        """
        number = wanted.partition
        with ExitStack() as open_readers:

            def reader() -> LogReader:
                return open_readers.enter_context(LogReader(self._kafka, self._group, wanted.abandoned))

            def open_log(source: Source, position: int) -> LogReader:
                log = reader()
                log.open(self._topics[SOURCES.index(source)], number, position)
                return log

            journal = reader()
            committed = journal.committed(self._topics, number)
            if wanted.standing is not None and agree(committed, wanted.standing):
                return Restored(None, wanted.standing, 0)
            tails = TailReader(journal.of(self._journal, number), self._journal, number)
            try:
                replay = Replay(number, open_log, self._memory())
                restored = Rebuild(wanted, self._config, tails, replay).run(committed)
            except EndMismatchError as error:
                raise self._wait(wanted, error) from None
        self._differs_since.pop(number, None)
        return restored

    def _wait(self, wanted: Wanted, difference: EndMismatchError) -> NotYetError | RestoreError:
        """Return that a difference has to be waited out, or that it is one that stays.

        What was seen before the last rebalance does not count: others may have committed since.
        """
        partition, now = wanted.partition, time.monotonic()
        seen_as, since = self._differs_since.get(partition, (wanted.membership, now))
        if seen_as != wanted.membership:
            since = now
        self._differs_since[partition] = wanted.membership, since
        waited = now - since
        if difference.ahead and waited > AHEAD_PATIENCE_S:
            reason = f"{difference}: offsets were reset, or {self._journal} is another one"
            return RestoreError(partition, reason)
        if waited > PATIENCE_S:
            return RestoreError(partition, f"{difference}: records of {self._journal} are missing")
        return NotYetError(str(difference))
