"""Transaction sender: delivers the batches of one transaction after another, or fails it as a whole."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from typing import Any, Final

from confluent_kafka import KafkaError as Codes

from topics.clients.delivery_failures import DeliveryFailures
from topics.errors import AbortedError, BrokerError, FencedError
from topics.producing.batch_encoder import WrittenBatch
from topics.producing.batch_sender import NEVER, BatchSender
from topics.producing.broker_connections import BrokerConnections
from topics.producing.coordinator_steps import FIRST_PAUSE_S, LONGEST_PAUSE_S
from topics.producing.produce_request import Outcome, Produce
from topics.producing.step_errors import Verdict, verdict_on
from topics.producing.transaction_requests import Place

AddPartitions = Callable[[Sequence[Place]], Awaitable[None]]
AddGroup = Callable[[str], Awaitable[None]]

_STEPS: Final = frozenset({"add", "group"})
"""Names of tasks that must be over before batches are sent, and before the transaction ends."""

_UNUSED: Final = "unused"


class TransactionSender(BatchSender):
    """Sends the batches of one transaction after another; to be used in one event loop."""

    def __init__(
        self,
        brokers: BrokerConnections,
        transactional_id: str,
        add_partitions: AddPartitions,
        add_group: AddGroup,
        failures: DeliveryFailures,
        settled: Callable[[Sequence[WrittenBatch]], None],
        is_overdue: Callable[[], bool],
    ) -> None:
        """`add_partitions` and `add_group` make partitions and a group a part of the transaction;
        `settled` is called with the batches that a broker has; `is_overdue`: whether there is no reason to
        wait for the brokers any longer.
        """
        name = f"transactional.id={transactional_id}"
        super().__init__(brokers, name, FIRST_PAUSE_S, LONGEST_PAUSE_S)
        self._id = transactional_id
        self._add_partitions = add_partitions
        self._add_group = add_group
        self._failures = failures
        self._settled = settled
        self._is_overdue = is_overdue
        self._added: set[Place] = set()
        self._expected: set[Place] = set()
        """Partitions to be added that may have no batch yet."""
        self._groups: set[str] = set()
        """Groups that are a part of the transaction, or become one."""
        self._deadline = float("inf")
        self.failure: BrokerError | None = None
        """The reason why the transaction cannot be committed, or None."""

    def begin(self, seconds: float) -> None:
        """Begin a transaction, whose batches have to be delivered within `seconds`."""
        assert not self._in_flight, "the former transaction has ended"
        for task in self._tasks.values():  # look-ups: the batches that they were for are delivered
            task.cancel()
        self._queues, self._added, self._unanswered = {}, set(), set()
        self._expected, self._groups = set(), set()
        self._attempts, self._outdated, self._leaders, self._reason = {}, set(), {}, ""
        self.failure, self._is_stopped = None, False
        self._deadline = asyncio.get_running_loop().time() + seconds

    @property
    def seconds_left(self) -> float:
        """Seconds until the transaction fails."""
        return max(0.0, self._deadline - asyncio.get_running_loop().time())

    @property
    def has_partitions(self) -> bool:
        """Whether a partition or a group may be a part of the transaction."""
        return bool(self._added or self._groups) or "add" in self._tasks

    def expect(self, places: Iterable[Place], group: str) -> None:
        """Make partitions and a group a part of the transaction before there are batches and offsets."""
        if self._is_stopped or self.failure is not None:
            return
        self._expected.update(places)
        self._plan()
        if group not in self._groups:
            self._groups.add(group)
            self._begin("group", self._add_group(group))

    async def added(self, group: str) -> None:
        """Return when a group and all partitions with batches are a part of the transaction.

        Raises its failure.
        """
        self.expect((), group)
        while self._tasks.keys() & _STEPS or not self._queues.keys() <= self._added:
            await self._move()

    async def flush(self) -> None:
        """Return when all batches are delivered and no step runs; raise the failure of the transaction.

        Raises AbortedError if the transaction is given up by `stop`.
        """
        while self._queues or self._tasks.keys() & _STEPS:
            await self._move()
        self._raise_failure()

    def end_unused(self, end: Coroutine[Any, Any, None]) -> None:
        """Begin to end the transaction, which has neither batches nor offsets."""
        self._begin(_UNUSED, end)

    @property
    def ends_unused(self) -> bool:
        """Whether the end of an unused transaction is under way."""
        return _UNUSED in self._tasks

    async def unused_ended(self) -> None:
        """Return when no such end is under way; raise its failure."""
        while _UNUSED in self._tasks:
            await self._move()

    async def _move(self) -> None:
        """Return when something has happened; raise the failure of the transaction."""
        self._raise_failure()
        self._moved.clear()
        await self._moved.wait()
        self._raise_failure()
        if self._is_stopped:
            message = f"{self._name}: the transaction was given up"
            raise AbortedError(message)

    def _raise_failure(self) -> None:
        if self.failure is not None:
            raise self.failure

    def _fail(self, error: BrokerError) -> None:
        self.failure = self.failure or error
        self._moved.set()

    # -- decisions ------------------------------------------------------------------------------------------

    @property
    def _is_idle(self) -> bool:
        """Whether there is nothing to begin."""
        return not self._queues and self._expected <= self._added

    def _may_send(self, now: float) -> bool:
        if self.failure is not None:
            return False
        if now >= self._deadline:
            waiting = sum(batch.count for queue in self._queues.values() for batch in queue)
            why = f": {self._reason}" if self._reason else ""
            message = f"{waiting} records were not delivered within transaction.timeout.ms{why}"
            self._fail(AbortedError(message))
            return False
        if self._is_overdue():
            message = f"a transaction was not finished before the worker stopped: {self._reason}"
            self._fail(AbortedError(message))
            return False
        new = sorted((self._queues.keys() | self._expected) - self._added)
        if new and "add" not in self._tasks:
            self._begin("add", self._add(new))
        # A broker verifies batches at the coordinator, which refuses that while it writes a step. A request
        # without the new partitions would hold up the one with them.
        return not self._tasks.keys() & _STEPS

    async def _add(self, places: Sequence[Place]) -> None:
        await self._add_partitions(places)
        self._added.update(places)

    def _wake_at(self) -> float:
        return self._deadline if self.failure is None else NEVER

    def _request(self, batches: Sequence[WrittenBatch]) -> Produce:
        return Produce(self._id, self._brokers.replica_ms, batches)

    def _answered(self, node: int, batches: Sequence[WrittenBatch], outcomes: Sequence[Outcome]) -> None:
        refused = ""
        delivered: list[WrittenBatch] = []
        for batch, outcome in zip(batches, outcomes, strict=True):
            place = batch.topic, batch.partition
            verdict, code = verdict_on("Produce", [outcome.code])
            if verdict is Verdict.DONE:
                self._delivered(place)
                delivered.append(batch)
            elif verdict <= Verdict.LOOK_UP:
                if verdict is Verdict.LOOK_UP:
                    self._outdate([place[0]])
                refused = f"{place[0]}[{place[1]}]: {Codes(code).str()}"
            else:
                self._fail(self._refused(place, outcome, batch.count))
        self._settled(delivered)
        if not refused:
            self._attempts.pop(node, None)
            return
        self._retry(node, refused)

    def _delivered(self, place: Place) -> None:
        self._unanswered.discard(place)
        queue = self._queues.get(place)
        if queue:  # none after a stop
            queue.popleft()
            if not queue:
                del self._queues[place]

    def _lost(self, places: Sequence[Place]) -> None:
        """Do nothing: the transaction has one deadline."""

    async def _looked_up(self, topics: set[str], is_new: bool) -> None:  # noqa: ARG002 - denials stay in the metadata
        for topic in topics & {topic for topic, _ in self._queues}:
            if self._brokers.is_denied(topic):
                self._fail(self._refused((topic, 0), Outcome(Codes.TOPIC_AUTHORIZATION_FAILED, ""), 0))

    def _failed(self, error: Exception) -> None:
        failure = error if isinstance(error, BrokerError) else AbortedError(f"{self._name}: {error!r}")
        self._fail(failure)

    def _refused(self, place: Place, outcome: Outcome, count: int) -> BrokerError:
        topic, partition = place
        verdict, code = verdict_on("Produce", [outcome.code])
        text = self._failures.explain(Codes(code), topic)
        if verdict is Verdict.FENCED:
            return FencedError(
                f"{self._name}: the broker has ended the transaction, or another producer has "
                f"this id ({text})"
            )
        detail = f" ({outcome.detail})" if outcome.detail else ""
        of_records = f"{count} records of {topic}[{partition}] were not delivered"
        return AbortedError(f"{of_records}: {text}{detail}")
