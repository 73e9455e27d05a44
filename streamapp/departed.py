"""Workers that have left the group, and what they left open.

The transaction of a worker that died hides what follows it in the topics it wrote, and the offsets it was
about to commit, until the broker ends it: after `transaction.timeout.ms`, and when it next looks. Who gets
the partitions instead ends it at once, by taking its transactional id over. A worker of which this was a
mistake (it was frozen, or is just coming back) finds its transaction aborted, as after any that fails, and
joins the group again: what counts was never in its hands once it had left the group.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Any, Final

from confluent_kafka import KafkaException

from streamapp.group import static_members_of
from streamapp.outputs.limits import OutputLimits
from streamapp.outputs.senders import transactional_sender
from streamapp.settings import Settings
from topics.definitions import TopicNames
from topics.errors import TopicsError

logger = logging.getLogger(__name__)

PATIENCE_S: Final = 20.0
"""After so long the broker has ended the transaction by itself."""

UNKNOWN: Final = (KafkaException, TopicsError, TimeoutError)


class Departed:
    """Knows who was in the group, and ends what those that have gone left open."""

    def __init__(self, own: str, members: Callable[[], set[str]], end: Callable[[str], None]) -> None:
        """`own`: our name; `members`: who is in the group; `end`: ends the transaction of a worker. Both wait
        for the broker."""
        self._own = own
        self._members = members
        self._end = end
        self._seen: set[str] = set()
        self._lock = threading.Lock()

    @classmethod
    def of(
        cls, settings: Settings, own: str, kafka: Mapping[str, Any], stopped: Callable[[], bool]
    ) -> Departed:
        """Return the one for the worker `own`; `stopped`: whether it is to end."""
        limits = OutputLimits.of_catalogue(TopicNames(settings.topics_prefix))

        def end(name: str) -> None:
            until = time.monotonic() + PATIENCE_S
            sender = transactional_sender(
                settings, limits, name, lambda: stopped() or time.monotonic() > until
            )
            with closing(sender):
                sender.open()

        return cls(own, lambda: static_members_of(kafka, settings.application_id), end)

    def look(self, *, heir: bool) -> None:
        """See who has gone since the last time, in a thread; `heir`: end what they left open."""
        threading.Thread(target=self.see, args=(heir,), name="departed", daemon=True).start()

    def see(self, heir: bool) -> None:
        """Do it here, unless another thread does."""
        if not self._lock.acquire(blocking=False):
            return  # it waits for the broker, for seconds: so much later this would mean little
        try:
            here = self._members()
            gone, self._seen = self._seen - here - {self._own}, here
            for name in sorted(gone) if heir else ():
                self._succeed(name)
        except UNKNOWN as error:
            logger.warning("who is in the group is not known, so nothing is ended for others: %s", error)
        finally:
            self._lock.release()

    def _succeed(self, name: str) -> None:
        if name in self._members():
            return  # it is back, perhaps at work
        try:
            self._end(name)
        except TopicsError as error:  # the broker will, in its time
            logger.warning("what worker %s, which has left the group, left open stays open: %s", name, error)
        else:
            logger.info("worker %s has left the group; what it left open is aborted", name)
