"""The oracle: answers requests for labels or features from a data set, with delays and errors as planned.

Delivery is at least once: the offset of a request is committed when its answer is delivered. Answers that
still wait when the oracle stops are not committed; the next oracle of the group gives them.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from confluent_kafka import Message

from topics.clients.cluster import Cluster
from topics.clients.sender import Sender
from topics.codecs.avro.output_reader import AS_WRITTEN, OutputReader
from topics.errors import CatalogueError
from topics.oracle.consumed_requests import RequestTopic, place
from topics.oracle.drawn_answers import ANSWERED, Outcome
from topics.oracle.feature_respondent import FeatureRespondent
from topics.oracle.label_respondent import LabelRespondent
from topics.oracle.oracle_plan import OraclePlan
from topics.oracle.oracle_progress import OracleProgress
from topics.oracle.waiting_answers import WaitingAnswer, WaitingAnswers
from topics.readers.dataset import Dataset

logger = logging.getLogger(__name__)

POLL_S = 0.02  # the longest wait for the first request
COMMIT_S = 0.2  # between two commits, at a moment without requests: a request that comes now waits for it
COMMIT_MOST_S = 1.0  # the same while requests come all the time
LINGER_MS = 1  # an answer is one of few at a low rate; at a high rate many are sent together anyway
PROGRESS_S = 0.1
NOW = 0  # as a timestamp: the time of sending


class Oracle:
    """Answers requests from a data set; `run` in one thread, `stop` from any or a signal handler."""

    def __init__(
        self,
        dataset: Dataset,
        plan: OraclePlan,
        kafka: Mapping[str, Any],
        outputs: OutputReader = AS_WRITTEN,
    ) -> None:
        """Reach the broker; `kafka` holds client properties under Kafka's names, `outputs` reads requests."""
        self._outputs = outputs
        self.plan = plan
        self._respondent = FeatureRespondent(plan) if plan.features else LabelRespondent(plan)
        self._asked, self._answers = self._respondent.topics(plan.names)
        self._left = frozenset(key.encode() for key in plan.left_to_people)
        _check_topics(kafka, self._asked, self._answers)
        self._dataset = dataset
        self._kafka = kafka
        self._stop = threading.Event()
        self._waiting = WaitingAnswers()
        self._sent: list[tuple[int, int]] = []  # partition and offset of answers that are not flushed yet
        self._outcomes: Counter[Outcome] = Counter()
        self._requests = self._malformed = self._features = self._unavailable = 0
        self._first_unknown: str | None = None
        self._newest_ms = -np.inf  # highest timestamp of a request
        self._started = time.monotonic()

    def stop(self) -> None:
        """Make `run` end soon: sent answers are flushed and committed."""
        self._stop.set()

    def run(self, progress: Callable[[OracleProgress], object] | None = None) -> OracleProgress:
        """Answer until stopped, until the plan's limit, or until idle; return the counts.

        The data set is read first; requests wait at the broker during that time.
        """
        self._started = time.monotonic()
        self._respondent.read(self._dataset, self._stop.is_set)
        self._sender = Sender({"linger.ms": LINGER_MS, **self._kafka}, self._stop.is_set)
        self._topic = RequestTopic(self._kafka, self._asked, self.plan.group_id, self._part, self._forget)
        try:
            self._answer_until_done(progress)
            self._settle()
            report = self._state()
        finally:
            self._topic.close()
            self._sender.close()
        if progress:
            progress(report)
        return report

    def _answer_until_done(self, progress: Callable[[OracleProgress], object] | None) -> None:
        committed = reported = time.monotonic()
        while not (self._stop.is_set() or self._over()):
            messages = self._topic.consume(self._poll_seconds(), self._room())
            if messages:
                self._take(messages)
            self._send_due()
            now = time.monotonic()
            if now - committed >= (COMMIT_MOST_S if messages else COMMIT_S):
                committed = now
                self._settle()
            if progress and now - reported >= PROGRESS_S:
                reported = now
                progress(self._state())

    def _over(self) -> bool:
        plan = self.plan
        if plan.limit is not None and self._answered >= plan.limit:
            return True
        if plan.idle_seconds is None or len(self._waiting):
            return False
        return self._topic.silent_seconds >= plan.idle_seconds

    def _poll_seconds(self) -> float:
        """Return how long to wait for requests: until the next answer is due, but stay responsive."""
        if not len(self._waiting) or self.plan.event_time:
            return POLL_S
        return float(np.clip(self._waiting.next_due_ms / 1000 - time.time(), 0.0, POLL_S))

    def _room(self) -> int:
        """Return how many more requests may be taken: their answers wait in memory."""
        if self.plan.event_time:  # only later requests show that an answer is due
            return self.plan.waiting_max
        return self.plan.waiting_max - len(self._waiting)

    def _take(self, messages: list[Message]) -> None:
        """Decide requests; each answer waits until it is due."""
        messages = self._without_left(messages)
        decisions = self._respondent.decide(
            self._outputs.texts([message.value() or b"" for message in messages])
        )
        self._requests += len(messages)
        for message, decision in zip(messages, decisions, strict=True):
            partition, offset = place(message)
            key = message.key()
            if decision is None or key is None:
                self._malformed += 1
                self._topic.finish(partition, offset)
                continue
            if decision.value is None:
                self._leave(decision.outcome, decision.instance_id)
                self._topic.finish(partition, offset)
                continue
            asked_ms = message.timestamp()[1]
            self._newest_ms = max(self._newest_ms, asked_ms)
            due_ms = asked_ms + 1000 * decision.delay
            self._waiting.add(
                WaitingAnswer(
                    due_ms,
                    partition,
                    offset,
                    key,
                    decision.instance_id,
                    decision.outcome,
                    decision.value,
                    int(due_ms) if self.plan.event_time else NOW,
                    decision.features,
                    decision.unavailable,
                )
            )

    def _without_left(self, messages: list[Message]) -> list[Message]:
        """Finish the requests of models that are left to people, and return the others."""
        if not self._left:
            return messages
        others = []
        for message in messages:
            if message.key() in self._left:
                self._topic.finish(*place(message))
            else:
                others.append(message)
        return others

    def _leave(self, outcome: Outcome, instance_id: str) -> None:
        """Count a request that is not answered."""
        self._outcomes[outcome] += 1
        if outcome is Outcome.UNKNOWN_ID and self._first_unknown is None:
            self._first_unknown = instance_id
            logger.warning("instance id %r is no row of the data set; it is not answered", instance_id)

    @property
    def _answered(self) -> int:
        return sum(self._outcomes[outcome] for outcome in ANSWERED)

    def _send_due(self) -> None:
        """Send the answers that are due, in order."""
        horizon = time.time() * 1000
        if self.plan.event_time:
            horizon = np.inf if self._topic.read else self._newest_ms
        most = np.inf if self.plan.limit is None else self.plan.limit - self._answered
        due = self._waiting.take(horizon, most)
        if self.plan.event_time:
            too_many = len(self._waiting) - self.plan.waiting_max
            due += self._waiting.take(np.inf, min(too_many, most - len(due)))
        if not due:
            return
        self._sender.send(
            [self._answers] * len(due),
            [answer.value for answer in due],
            [answer.key for answer in due],
            [answer.partition for answer in due],
            [answer.timestamp for answer in due],
        )
        self._features += sum(answer.features for answer in due)
        self._unavailable += sum(answer.unavailable for answer in due)
        self._outcomes.update(answer.outcome for answer in due)
        self._sent += [(answer.partition, answer.offset) for answer in due]

    def _settle(self) -> None:
        """Wait until all answers are delivered, then commit the finished requests."""
        self._sender.flush()
        for partition, offset in self._sent:
            self._topic.finish(partition, offset)
        self._sent.clear()
        self._topic.commit()

    def _part(self) -> None:
        """Settle before partitions go to another oracle."""
        if not self._sender.failed:  # else `run` is ending with the reason
            self._settle()

    def _forget(self, partitions: set[int]) -> None:
        """Drop the answers of partitions that are no longer assigned; their new owner gives them."""
        self._waiting.forget(partitions)
        self._sent = [place for place in self._sent if place[0] not in partitions]

    def _state(self) -> OracleProgress:
        outcomes = self._outcomes
        return OracleProgress(
            requests=self._requests,
            answered=self._answered,
            wrong=outcomes[Outcome.WRONG_LABEL],
            declined=outcomes[Outcome.DECLINED],
            lost=outcomes[Outcome.LOST],
            unknown=outcomes[Outcome.UNKNOWN_ID],
            first_unknown=self._first_unknown,
            unlabelled=outcomes[Outcome.NO_LABEL],
            malformed=self._malformed,
            waiting=len(self._waiting),
            seconds=time.monotonic() - self._started,
            features=self._features,
            unavailable=self._unavailable,
        )


def _check_topics(kafka: Mapping[str, Any], requests: str, answers: str) -> None:
    """Refuse topics that are missing or differ in partitions: answers go to the partition of the request."""
    cluster = Cluster(kafka)
    asked, answered = cluster.partition_count(requests), cluster.partition_count(answers)
    if asked != answered:
        message = (
            f"topic {answers!r} has {answered} partitions, {requests!r} has {asked}; "
            f"they must be equal: see 'grove topics check'"
        )
        raise CatalogueError(message)
