"""Bridge: one thread sends requests as tasks, one sends annotations as labels; webhooks speed up the second.

Both directions may repeat work without harm. Requests: offsets are committed when the label tool has the
tasks. A bridge that starts, or is in doubt after a failure, first reads the tasks that exist. Labels: an
annotation is remembered in `store` when the broker has its label. A bridge that dies between the two sends
the label again, which a worker counts as a duplicate.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from confluent_kafka import KafkaError, Message, TopicPartition

from streamapp.bridge.declared import DeclaredClasses, NotReadError
from streamapp.bridge.label_tool import Annotation, Given, LabelTool, LabelToolError, Task
from streamapp.web.queue.closed_classes import refusal
from streamapp.web.queue.record_decoding import requests_of
from topics.clients.access import Access, denied_kind
from topics.clients.cluster import Cluster
from topics.clients.sender import Sender
from topics.codecs import encode_labels
from topics.codecs.avro.output_reader import AS_WRITTEN, OutputReader
from topics.definitions import TopicNames
from topics.errors import BrokerError
from topics.fetching.bounded_consumer import BoundedConsumer
from topics.fetching.message import REFUSED

logger = logging.getLogger(__name__)

BATCH: Final = 100
POLL_S: Final = 0.5
AGAIN_S: Final = 5.0
REFUSED_MAX: Final = 10_000
"""Refused labels that are remembered, so that not every sweep logs them again."""


@dataclass(frozen=True, slots=True)
class BridgePlan:
    """Options of the bridge."""

    names: TopicNames
    group_id: str
    store: Path
    sweep_s: float = 60.0  # between reads of all tasks, which find annotations without a webhook
    text_max: int = 1024  # bytes of a class, text.max.bytes of the workers


class Bridge:
    """Sends requests out and labels in; `run` until `stop`."""

    def __init__(
        self,
        plan: BridgePlan,
        kafka: Mapping[str, Any],
        tool: LabelTool,
        outputs: OutputReader = AS_WRITTEN,
    ) -> None:
        """Connect to the broker and the label tool; raises errors of either. `outputs` reads requests."""
        self._outputs = outputs
        self._plan, self._tool = plan, tool
        cluster = Cluster(kafka)
        cluster.partition_count(plan.names.label_requests)
        self._partitions = cluster.partition_count(plan.names.labels)
        tool.check()
        self._access = Access.of(kafka)
        self._stop = threading.Event()
        self._taken = _Taken(plan.store)
        self._declared = DeclaredClasses(kafka, plan.names.controls)
        self._refused: OrderedDict[tuple[int | str, str], None] = (
            OrderedDict()
        )  # labels whose refusal was logged
        self._known: set[str] | None = None  # request ids of the tool's tasks; None: not read yet
        self._lock = threading.Lock()  # for the sender and `taken`: webhooks call from their own threads
        self._sender = Sender(kafka, self._stop.is_set)
        self._consumer = BoundedConsumer(
            {
                **{key: value for key, value in kafka.items() if key != "group.instance.id"},
                "group.id": plan.group_id,
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "log_level": 0,
            }
        )

    def stop(self) -> None:
        """End `run` soon."""
        self._stop.set()

    def run(self) -> None:
        """Send in both directions until stopped; raises errors that waiting cannot cure."""
        failures: list[BaseException] = []

        def sweep() -> None:
            try:
                self._sweep_until_stopped()
            except BaseException as error:  # noqa: BLE001 - raised by the thread that waits
                failures.append(error)
                self._stop.set()

        thread = threading.Thread(target=sweep, name="annotations", daemon=True)
        with (
            closing(self._taken),
            closing(self._sender),
            closing(self._consumer),
            closing(self._declared),
        ):
            self._consumer.subscribe([self._plan.names.label_requests])
            thread.start()
            try:
                while not self._stop.is_set():
                    self._bring_out()
            finally:
                self._stop.set()
                thread.join()
                self._lock.acquire()  # a label of a webhook is sent to its end; no other one begins
        if failures:
            raise failures[0]

    # -- requests out -----------------------------------------------------------------------------------

    def _bring_out(self) -> None:
        """Read the requests that come within a moment, and commit them when the tool has them."""
        messages = self._consumer.consume(BATCH, POLL_S)
        good = self._good(messages)
        ends = self._ends(messages)
        if not ends:
            return
        requests = [request for run in _by_partition(good) for request in requests_of(run, self._outputs)]
        if requests:
            self._until_done(lambda: self._add(requests))
        if not self._stop.is_set():
            self._consumer.commit(asynchronous=False, offsets=ends)

    def _ends(self, messages: Iterable[Message]) -> list[TopicPartition]:
        """Return the offsets to commit: after the last record or refused batch of each partition."""
        ends: dict[tuple[str, int], int] = {}
        for message in messages:
            error, end = message.error(), int(message.offset() or 0) + 1
            if error is not None and error.code() not in REFUSED:
                continue
            place = str(message.topic()), int(message.partition() or 0)
            # An error stands for a batch at its first offset; the consumer's position is after the batch.
            ends[place] = max(ends.get(place, 0), end, self._consumer.next_offset(place))
        return [TopicPartition(*place, end) for place, end in ends.items()]

    def _add(self, requests: Sequence[Any]) -> None:
        if self._known is None:
            ids = (self._tool.request_of(task) for task in self._tool.tasks())
            self._known = {request_id for request_id in ids if request_id is not None}
        new = {request.request_id: request for request in requests if request.request_id not in self._known}
        if not new:
            return
        existing, self._known = self._known, None  # in doubt until the tool answers
        self._tool.add_requests(list(new.values()))
        self._known = existing | new.keys()
        logger.info("%d requests are tasks of %s", len(new), self._tool.place)

    def _good(self, messages: Iterable[Message]) -> list[Message]:
        good = []
        for message in messages:
            error = message.error()
            if error is None:
                good.append(message)
                continue
            denied = denied_kind(error.code())
            if denied is not None:
                name = self._plan.group_id if denied == "group" else self._plan.names.label_requests
                raise BrokerError(self._access.denied(denied, name, "Read"))
            if error.fatal() or error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                message_ = f"{self._plan.names.label_requests} cannot be read any more: {error.str()}"
                raise BrokerError(message_)
            logger.warning("consumer: %s", error.str())
        return good

    def _until_done(self, call: Callable[[], None]) -> None:
        """Call until the tool has answered; raises an error that will not pass."""
        while not self._stop.is_set():
            try:
                call()
            except LabelToolError as error:
                if not error.passes:
                    raise
                logger.warning("%s; trying again in %g s", error, AGAIN_S)
                self._stop.wait(AGAIN_S)
            else:
                return

    # -- labels in --------------------------------------------------------------------------------------

    def taken(self, task: Task, annotations: Iterable[Annotation]) -> int:
        """Send labels of annotations that were not sent before; return how many, once the broker has them.

        A label that the worker would dead-letter is not sent, but logged. The request stays open, and a
        later choice is sent when it comes.
        """
        answers = [
            answer
            for answer in (self._tool.given_by(task, annotation) for annotation in annotations)
            if answer is not None
        ]
        with self._turn():
            new = [answer for answer in answers if not self._taken.has(answer) and self._is_learnable(answer)]
            if not new:
                return 0
            names = self._plan.names.labels
            values = encode_labels(
                [answer.instance_id for answer in new],
                [answer.label for answer in new],
                annotators=[answer.annotator for answer in new],
            )
            now = time.time_ns() // 1_000_000
            self._sender.send(
                [names] * len(new),
                values,
                [answer.key for answer in new],
                [answer.partition for answer in new],
                [now] * len(new),
            )
            self._sender.flush()
            self._taken.add(new)
        return len(new)

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Give this thread the sender and the file of sent annotations; BrokerError when the bridge ends."""
        while not self._lock.acquire(timeout=POLL_S):
            if self._stop.is_set():
                message = "the bridge ends"
                raise BrokerError(message)
        try:
            yield
        finally:
            self._lock.release()

    def _is_learnable(self, answer: Given) -> bool:
        """Return whether the worker would learn a label; if not, log the reason once for each label."""
        problem = self._problem(answer)
        place = (answer.annotation, answer.label or "")
        if problem and place not in self._refused:
            logger.warning("annotation %s is not sent: %s", answer.annotation, problem)
            self._refused[place] = None
            while len(self._refused) > REFUSED_MAX:
                self._refused.popitem(last=False)
        return not problem

    def _problem(self, answer: Given) -> str:
        """Return what is wrong with a label; "": nothing."""
        if answer.partition >= min(self._partitions, self._declared.partitions):
            return (
                f"grove_partition={answer.partition} must be below {self._partitions}: its task was changed"
            )
        if answer.label is None:
            return ""
        longest = self._plan.text_max
        if len(answer.label.encode()) > longest:
            return f"a class must have at most {longest:,} bytes (text.max.bytes)"
        classes = self._declared.of(answer.key.decode(), answer.partition)
        return "" if classes is None or answer.label in classes else refusal(answer.label, classes)

    def _sweep_until_stopped(self) -> None:
        while True:
            self._until_done(self._sweep)
            if self._stop.wait(self._plan.sweep_s):
                return

    def _sweep(self) -> None:
        for task in self._tool.tasks():
            if self._stop.is_set():
                return
            try:
                n = self.taken(task, self._tool.annotations_of(task))
            except NotReadError as error:
                logger.warning("%s; the next sweep tries again", error)
                return
            if n:
                logger.info("%d labels of task %s are sent", n, task.get("id"))


class _Taken:
    """The annotations whose label the broker has, in a file; a changed label is a new entry."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._db = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute(
            "CREATE TABLE IF NOT EXISTS taken "
            "(annotation INTEGER, label TEXT, PRIMARY KEY (annotation, label))"
        )

    def has(self, answer: Given) -> bool:
        row = answer.annotation, answer.label or ""
        match = self._db.execute("SELECT 1 FROM taken WHERE annotation = ? AND label = ?", row).fetchone()
        return match is not None

    def add(self, answers: Sequence[Given]) -> None:
        rows = [(answer.annotation, answer.label or "") for answer in answers]
        self._db.execute("BEGIN")
        self._db.executemany("INSERT OR IGNORE INTO taken VALUES (?, ?)", rows)
        self._db.execute("COMMIT")

    def close(self) -> None:
        self._db.close()


def _by_partition(messages: Sequence[Message]) -> list[list[Message]]:
    runs: dict[int | None, list[Message]] = {}
    for message in messages:
        runs.setdefault(message.partition(), []).append(message)
    return list(runs.values())
