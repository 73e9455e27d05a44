"""Abandoned transactions: open transactions of workers that have left the group.

Until the broker aborts it after `transaction.timeout.ms`, the open transaction of a dead worker hides two
things: from read_committed consumers all later records of the partitions it wrote to, and the offsets of the
group that it was about to commit. The worker that gets the partitions aborts it at once, by taking over the
dead worker's transactional id; while the coordinator is away, it tries again until that is done or the dead
worker is back. If that worker was not dead (only frozen, or restarting), its transaction is aborted like any
failed transaction, and it joins the group again; its commit would have been fenced anyway.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Any, Final

from confluent_kafka import KafkaException

from streamapp.settings import Settings
from streamapp.worker.outputs.record_sizes import OutputLimits
from streamapp.worker.outputs.senders import transactional_producer
from topics.clients.consumer_group import static_members_of
from topics.definitions import TopicNames
from topics.errors import AbortedError, TopicsError

logger = logging.getLogger(__name__)

TIMEOUT_S: Final = 20.0
"""Time for one attempt, which waits for the coordinator; then the members of the group are read again."""

FIRST_PAUSE_S: Final = 0.1
"""Pause after a failed attempt, doubled each time: an attempt may also fail at once."""

LONGEST_PAUSE_S: Final = 10.0

UNKNOWN: Final = (KafkaException, TopicsError, TimeoutError)


class AbandonedTransactions:
    """Remembers the members of the group, and aborts the transactions of those that have left it."""

    def __init__(
        self,
        own: str,
        members: Callable[[], set[str]],
        end: Callable[[str], None],
        stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        """`own`: the name of this worker; `members`: returns the members of the group; `end`: aborts the
        transaction of the worker with a name (AbortedError: not yet); `stopped`: whether this worker is
        ending. `members` and `end` wait for the broker.
        """
        self._own = own
        self._members = members
        self._end = end
        self._stopped = stopped
        self._seen: set[str] = set()
        self._left_open: set[str] = set()  # workers whose transactions are still to be aborted
        self._checks: queue.SimpleQueue[bool] = queue.SimpleQueue()  # `abort` of each
        self._thread: threading.Thread | None = None

    @classmethod
    def of(
        cls, settings: Settings, own: str, kafka: Mapping[str, Any], stopped: Callable[[], bool]
    ) -> AbandonedTransactions:
        """Return the instance for the worker `own`; `stopped`: whether that worker is ending."""
        limits = OutputLimits.of_catalogue(TopicNames(settings.topics_prefix))

        def end(name: str) -> None:
            until = time.monotonic() + TIMEOUT_S
            producer = transactional_producer(
                settings, limits, name, lambda: stopped() or time.monotonic() > until
            )
            with closing(producer):
                producer.open()

        return cls(own, lambda: static_members_of(kafka, settings.application_id), end, stopped)

    def check(self, *, abort: bool) -> None:
        """Look, in a thread, for members that have left; `abort`: abort their transactions, however long
        that takes.
        """
        self._checks.put(abort)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="abandoned-transactions", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        """Make the checks; repeat one that is not done, until it is or the next one comes."""
        while True:
            abort = self._checks.get()
            pause = FIRST_PAUSE_S
            while not self.check_now(abort) and not self._stopped():
                try:
                    abort = self._checks.get(timeout=pause) or abort
                    pause = FIRST_PAUSE_S
                except queue.Empty:
                    pause = min(2 * pause, LONGEST_PAUSE_S)

    def check_now(self, abort: bool) -> bool:
        """Do the work of `check` once, in this thread; return whether nothing is left to abort."""
        try:
            here = self._members()
            if abort:
                self._left_open |= self._seen - here - {self._own}
            self._seen = here
            for name in sorted(self._left_open):
                if self._is_over(name):
                    self._left_open.remove(name)
        except UNKNOWN as error:
            logger.warning(
                "the members of the group are not known, so no other worker's transaction is ended: %s", error
            )
            return not (abort or self._left_open)
        return not self._left_open

    def _is_over(self, name: str) -> bool:
        """Abort the transaction of a worker that has left; return False if a later attempt is needed.

        It is over, too, if the worker is back or the broker refuses: nothing can be gained by waiting.
        """
        if name in self._members():
            return True  # the worker has joined again, and its transaction may be a new one
        try:
            self._end(name)
        except AbortedError as error:
            logger.warning(
                "the transaction of worker %s, which has left the group, is not ended yet: %s", name, error
            )
            return False
        except TopicsError as error:  # the broker aborts it after transaction.timeout.ms
            logger.warning(
                "the transaction of worker %s, which has left the group, stays open: %s", name, error
            )
        else:
            logger.info("worker %s has left the group; its open transaction is aborted", name)
        return True
