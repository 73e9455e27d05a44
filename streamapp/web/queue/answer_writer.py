"""Writer: sends answers whose undo window is over, and the audit log; the broker gets each answer once.

An answer is marked before it is handed to the client and marked again when the broker has it. If the
process dies between the two, the answer is in doubt, and the next process reads the topic first
(`Outbox.caught_up`).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from streamapp.web.audit_log import AuditLog
from streamapp.web.clock import now_ms
from streamapp.web.disk_patience import store_patiently
from streamapp.web.queue.cards import Outgoing
from streamapp.web.queue.label_queue import LabelQueue
from streamapp.web.queue.outbox import REPEATABLE
from topics.clients.cluster import Cluster
from topics.clients.partitioner import partition_of
from topics.clients.sender import Sender
from topics.codecs import encode_audit, encode_corrections, encode_feature_values, encode_labels
from topics.columns.records import AuditEntry, Floats
from topics.definitions import TopicNames
from topics.errors import BrokerError

logger = logging.getLogger(__name__)

STEP_S: Final = 0.1
AGAIN_S: Final = 5.0  # seconds until a new client is made after one that failed

DUE: Final = "the note that answers are being sent"
SENT: Final = "the note that answers were sent"
DOUBT: Final = "the note that answers are in doubt"


class Writer:
    """One producer; `run` in one thread, `stop` from any."""

    def __init__(
        self, kafka: Mapping[str, Any], names: TopicNames, queue: LabelQueue, audit: AuditLog
    ) -> None:
        """Open the producer; `kafka` holds client properties under Kafka's names."""
        self._kafka, self._names, self._queue, self._audit = kafka, names, queue, audit
        self._stop = threading.Event()
        self.trouble = ""  # why answers are not sent at the moment; "": they are sent
        self._partitions = Cluster(kafka).partition_count(names.audit)
        self._sender = Sender(kafka, self._stop.is_set)

    def stop(self) -> None:
        """End `run` soon; answers within their undo window stay in the store."""
        self._stop.set()

    def run(self) -> None:
        """Send until stopped."""
        try:
            while not self._stop.wait(STEP_S):
                if answers := self._due():
                    self._guarded(partial(self._send, answers), answers)
                if entries := self._audit.waiting():
                    self._guarded(partial(self._send_audit, entries), ())
        finally:
            self._sender.close()

    def _due(self) -> list[Outgoing]:
        """Return the answers to send, each with a note that it is being sent; none while the disk is full."""
        due: list[Outgoing] = []
        self._store(DUE, lambda: due.extend(self._queue.outbox.due(now_ms())))
        return due

    def _store(self, what: str, store: Callable[[], object]) -> None:
        """Store what the broker has or may have; an end of the wait leaves it in doubt, as a crash would."""
        store_patiently(what, store, self._stop)

    def _guarded(self, send: Callable[[], None], answers: Sequence[Outgoing]) -> None:
        """Send something; if the client fails, these answers are in doubt and a new client is made."""
        try:
            send()
        except BrokerError as error:
            self.trouble = str(error)
            logger.warning("%d answers are not confirmed: %s", len(answers), error)
            self._sender.close()  # no record of it arrives later
            self._store(DOUBT, partial(self._queue.outbox.not_sent, answers))
            if not self._stop.wait(AGAIN_S):
                self._sender = Sender(self._kafka, self._stop.is_set)
            return
        self.trouble = ""

    def _send(self, answers: Sequence[Outgoing]) -> None:
        labels = [answer for answer in answers if answer.kind == "label"]
        self._produce(
            self._names.labels,
            labels,
            encode_labels(
                [answer.instance_id for answer in labels],
                [answer.label for answer in labels],
                weights=self._weights(labels),
                annotators=[answer.annotator for answer in labels],
            ),
        )
        corrections = [answer for answer in answers if answer.kind in REPEATABLE]
        self._produce(
            self._names.labels,
            corrections,
            encode_corrections(
                [answer.instance_id for answer in corrections],
                [answer.label for answer in corrections],
                [answer.annotator for answer in corrections],
                [answer.weight for answer in corrections],
                [answer.cells for answer in corrections],
            ),
        )
        features = [(answer, answer.given) for answer in answers if answer.given is not None]
        self._produce(
            self._names.feature_values,
            [answer for answer, _ in features],
            encode_feature_values(
                [answer.instance_id for answer, _ in features],
                [values.features for _, values in features],
                [values.unavailable for _, values in features],
                [values.finish for _, values in features],
            ),
        )
        self._sender.flush()
        self._store(SENT, partial(self._queue.outbox.sent, answers, now_ms()))

    def _weights(self, labels: Sequence[Outgoing]) -> Floats | None:
        """Return the weights of labels; None if all are 1, the default."""
        weights = np.array([answer.weight for answer in labels])
        return None if (weights == 1.0).all() else weights

    def _produce(self, topic: str, answers: Sequence[Outgoing], values: Sequence[bytes]) -> None:
        self._sender.send(
            [topic] * len(answers),
            values,
            [answer.key.encode() for answer in answers],
            [answer.partition for answer in answers],
            [answer.timestamp for answer in answers],
        )

    def _send_audit(self, entries: Sequence[tuple[int, AuditEntry]]) -> None:
        users = [entry.user.encode() for _, entry in entries]
        self._sender.send(
            [self._names.audit] * len(entries),
            encode_audit([entry for _, entry in entries]),
            users,
            [partition_of(user, self._partitions) for user in users],
            [entry.at_ms for _, entry in entries],
        )
        self._sender.flush()
        self._store(SENT, partial(self._audit.sent, [number for number, _ in entries]))
