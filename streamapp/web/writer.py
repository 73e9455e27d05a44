"""Writer: sends answers whose undo window is over, as labels; of each the broker has one, whatever dies.

An answer is marked before it is given to the client and marked again when the broker has it. Between the two
it is in doubt for whoever comes after a failure, who looks at the topic first (`LabelQueue.caught_up`).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Final

from streamapp.web.cards import Outgoing
from streamapp.web.clock import now_ms
from streamapp.web.label_queue import LabelQueue
from topics.codecs import encode_labels
from topics.definitions import TopicNames
from topics.errors import BrokerError
from topics.sender import Sender

logger = logging.getLogger(__name__)

STEP_S: Final = 0.1
AGAIN_S: Final = 5.0  # until the next client, after one that failed


class Writer:
    """One producer; `run` in one thread, `stop` from any."""

    def __init__(self, kafka: Mapping[str, Any], names: TopicNames, queue: LabelQueue) -> None:
        """Open the producer; `kafka` holds client properties under Kafka's names."""
        self._kafka, self._names, self._queue = kafka, names, queue
        self._stop = threading.Event()
        self.trouble = ""  # why labels are not sent at the moment; "": they are
        self._sender = Sender(kafka, self._stop.is_set)

    def stop(self) -> None:
        """End `run` soon; answers within their undo window stay in the store."""
        self._stop.set()

    def run(self) -> None:
        """Send until stopped."""
        try:
            while not self._stop.wait(STEP_S):
                answers = self._queue.due(now_ms())
                if answers:
                    self._send(answers)
        finally:
            self._sender.close()

    def _send(self, answers: Sequence[Outgoing]) -> None:
        values = encode_labels(
            [each.instance_id for each in answers],
            [each.label for each in answers],
            annotators=[each.annotator for each in answers],
        )
        try:
            self._sender.send(
                [self._names.labels] * len(answers),
                values,
                [each.key.encode() for each in answers],
                [each.partition for each in answers],
                [each.timestamp for each in answers],
            )
            self._sender.flush()
        except BrokerError as error:
            self.trouble = str(error)
            logger.warning("%d labels are not confirmed: %s", len(answers), error)
            self._sender.close()  # nothing of it comes later
            self._queue.not_sent(answers)
            if not self._stop.wait(AGAIN_S):
                self._sender = Sender(self._kafka, self._stop.is_set)
            return
        self.trouble = ""
        self._queue.sent(answers, now_ms())
