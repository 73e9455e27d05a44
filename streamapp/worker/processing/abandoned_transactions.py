"""Abandoned transactions: open transactions of workers that have left the group.

Until the broker aborts it after `transaction.timeout.ms`, the open transaction of a dead worker hides two
things: from read_committed consumers all later records of the partitions it wrote to, and the offsets of the
group that it was about to commit. The worker that gets the partitions aborts it at once, by taking over the
dead worker's transactional id. If that worker was not dead (only frozen, or restarting), its transaction is
aborted like any failed transaction, and it joins the group again; its commit would have been fenced anyway.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Any, Final

from confluent_kafka import KafkaException

from streamapp.settings import Settings
from streamapp.worker.outputs.record_sizes import OutputLimits
from streamapp.worker.outputs.senders import transactional_sender
from topics.clients.consumer_group import static_members_of
from topics.definitions import TopicNames
from topics.errors import TopicsError

logger = logging.getLogger(__name__)

TIMEOUT_S: Final = 20.0
"""Time for one attempt; without one, the broker ends the transaction after `transaction.timeout.ms`."""

UNKNOWN: Final = (KafkaException, TopicsError, TimeoutError)


class AbandonedTransactions:
    """Remembers the members of the group, and aborts the transactions of those that have left it."""

    def __init__(self, own: str, members: Callable[[], set[str]], end: Callable[[str], None]) -> None:
        """`own`: the name of this worker; `members`: returns the members of the group; `end`: aborts the
        transaction of the worker with a name. Both calls wait for the broker.
        """
        self._own = own
        self._members = members
        self._end = end
        self._seen: set[str] = set()
        self._lock = threading.Lock()

    @classmethod
    def of(
        cls, settings: Settings, own: str, kafka: Mapping[str, Any], stopped: Callable[[], bool]
    ) -> AbandonedTransactions:
        """Return the instance for the worker `own`; `stopped`: whether that worker is ending."""
        limits = OutputLimits.of_catalogue(TopicNames(settings.topics_prefix))

        def end(name: str) -> None:
            until = time.monotonic() + TIMEOUT_S
            sender = transactional_sender(
                settings, limits, name, lambda: stopped() or time.monotonic() > until
            )
            with closing(sender):
                sender.open()

        return cls(own, lambda: static_members_of(kafka, settings.application_id), end)

    def check(self, *, abort: bool) -> None:
        """Look, in a thread, for members that have left; `abort`: abort their transactions."""
        threading.Thread(
            target=self.check_now, args=(abort,), name="abandoned-transactions", daemon=True
        ).start()

    def check_now(self, abort: bool) -> None:
        """Do the work of `check` in this thread; return at once if another thread is doing it."""
        if not self._lock.acquire(blocking=False):
            return  # another thread does it, and may wait seconds for the broker
        try:
            here = self._members()
            gone, self._seen = self._seen - here - {self._own}, here
            for name in sorted(gone) if abort else ():
                self._abort_of(name)
        except UNKNOWN as error:
            logger.warning(
                "the members of the group are not known, so no other worker's transaction is ended: %s", error
            )
        finally:
            self._lock.release()

    def _abort_of(self, name: str) -> None:
        if name in self._members():
            return  # the worker has joined again, and its transaction may be a new one
        try:
            self._end(name)
        except TopicsError as error:  # the broker aborts it after transaction.timeout.ms
            logger.warning(
                "the transaction of worker %s, which has left the group, stays open: %s", name, error
            )
        else:
            logger.info("worker %s has left the group; its open transaction is aborted", name)
