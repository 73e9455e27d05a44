"""Batch sender: delivers batches, with one request in flight to each broker for all partitions it leads.

The next batch of a partition is sent once the broker has answered the one before. A batch whose answer is
lost is sent again with the same sequence numbers, perhaps to another leader: brokers recognise what they
have appended already.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from typing import Any, Final

from confluent_kafka import KafkaError as Codes

from topics.clients.delivery_failures import DeliveryFailures
from topics.errors import AbortedError, BrokerError, FencedError
from topics.producing.batch_encoder import WrittenBatch
from topics.producing.broker_connections import REQUEST_MS, BrokerConnections, LostAnswerError
from topics.producing.coordinator_steps import FIRST_PAUSE_S, LONGEST_PAUSE_S
from topics.producing.produce_request import Outcome, Produce
from topics.producing.step_errors import Verdict, verdict_on
from topics.producing.transaction_requests import Place

logger = logging.getLogger(__name__)

REQUEST_BYTES: Final = 8 << 20
"""A request is larger only if it has a single batch. Brokers refuse more than `socket.request.max.bytes`, by
default 100 MiB.
"""

_NO_BROKER: Final = -1
"""The number under which attempts to find a leader are counted."""

AddPartitions = Callable[[Sequence[Place]], Awaitable[None]]
AddGroup = Callable[[str], Awaitable[None]]

_STEPS: Final = frozenset({"add", "group"})
"""Names of tasks that must be over before batches are sent, and before the transaction ends."""

_UNUSED: Final = "unused"


class BatchSender:
    """Sends the batches of one transaction after another; to be used in one event loop."""

    def __init__(
        self,
        brokers: BrokerConnections,
        transactional_id: str,
        add_partitions: AddPartitions,
        add_group: AddGroup,
        failures: DeliveryFailures,
        acknowledged: Callable[[WrittenBatch], None],
        is_overdue: Callable[[], bool],
    ) -> None:
        """`add_partitions` and `add_group` make partitions and a group a part of the transaction;
        `acknowledged` is called for each batch that the broker has; `is_overdue`: whether there is no reason
        to wait for the brokers any longer.
        """
        self._brokers = brokers
        self._id = transactional_id
        self._add_partitions = add_partitions
        self._add_group = add_group
        self._failures = failures
        self._acknowledged = acknowledged
        self._is_overdue = is_overdue
        self._queues: dict[Place, deque[WrittenBatch]] = {}
        self._added: set[Place] = set()
        self._expected: set[Place] = set()
        """Partitions to be added that may have no batch yet."""
        self._groups: set[str] = set()
        """Groups that are a part of the transaction, or become one."""
        self._in_flight: set[Place] = set()
        self._unanswered: set[Place] = set()
        """Partitions with a batch of which an answer was lost: until a broker has the batch, another one may
        still append it.
        """
        self._outdated: set[str] = set()
        """Topics whose leaders are to be looked up, although they are known."""
        self._attempts: dict[int, int] = {}
        """Refused requests in a row, by broker."""
        self._tasks: dict[int | str, asyncio.Task[None]] = {}
        """Running tasks, by the broker of a request, or by name."""
        self._timer: asyncio.TimerHandle | None = None
        self._moved = asyncio.Event()
        """Set when a task has ended, or the transaction has failed or is given up."""
        self._deadline = float("inf")
        self._is_stopped = False
        self._reason = ""
        self.failure: BrokerError | None = None
        """The reason why the transaction cannot be committed, or None."""

    def begin(self, seconds: float) -> None:
        """Begin a transaction, whose batches have to be delivered within `seconds`."""
        assert not self._in_flight, "the former transaction has ended"
        for task in self._tasks.values():  # look-ups: the batches that they were for are delivered
            task.cancel()
        self._queues, self._added, self._unanswered = {}, set(), set()
        self._expected, self._groups = set(), set()
        self._attempts, self._outdated, self._reason = {}, set(), ""
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

    def put(self, batches: Iterable[WrittenBatch]) -> None:
        """Send batches after those of the same partitions that were put before."""
        for batch in batches:
            self._queues.setdefault((batch.topic, batch.partition), deque()).append(batch)
        self._plan()

    async def added(self, group: str) -> None:
        """Return when a group and all partitions with batches are a part of the transaction.

        Raises its failure.
        """
        self.expect((), group)
        while self._tasks.keys() & _STEPS or not self._queues.keys() <= self._added:
            await self._move()

    async def flush(self) -> None:
        """Return when all batches are delivered and no step runs; raise the failure of the transaction."""
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

    async def stop(self, seconds: float) -> bool:
        """Send no more batches; return whether the brokers have answered all requests within `seconds`.

        If they have not, a broker may append a batch after the transaction is aborted. `added` and `flush`
        raise AbortedError if they wait for the transaction.
        """
        self._is_stopped = True
        running = [*self._tasks.values()]
        if (look_up := self._tasks.get("look-up")) is not None:
            look_up.cancel()
        if running:
            await asyncio.wait(running, timeout=seconds)
        is_answered = not self._tasks and not self._unanswered
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        if self._timer is not None:
            self._timer.cancel()
        self._queues = {}
        self._moved.set()
        return is_answered

    async def _move(self) -> None:
        """Return when something has happened; raise the failure of the transaction."""
        self._raise_failure()
        self._moved.clear()
        await self._moved.wait()
        self._raise_failure()
        if self._is_stopped:
            message = f"transactional.id={self._id}: the transaction was given up"
            raise AbortedError(message)

    def _raise_failure(self) -> None:
        if self.failure is not None:
            raise self.failure

    def _fail(self, error: BrokerError) -> None:
        self.failure = self.failure or error
        self._moved.set()

    # -- requests -------------------------------------------------------------------------------------------

    def _plan(self) -> None:
        """Begin what can be begun; an error is the failure of the transaction, not of a timer."""
        try:
            self._begin_all()
        except Exception as error:  # noqa: BLE001 - else the callers of `flush` would wait for ever
            self._fail(AbortedError(f"transactional.id={self._id}: {error!r}"))

    def _begin_all(self) -> None:
        """Begin to add partitions, or the requests for those that are added."""
        is_idle = not self._queues and self._expected <= self._added
        if self._is_stopped or self.failure is not None or is_idle:
            return
        now = asyncio.get_running_loop().time()
        if now >= self._deadline:
            waiting = sum(batch.count for queue in self._queues.values() for batch in queue)
            why = f": {self._reason}" if self._reason else ""
            message = f"{waiting} records were not delivered within transaction.timeout.ms{why}"
            self._fail(AbortedError(message))
            return
        if self._is_overdue():
            message = f"a transaction was not finished before the worker stopped: {self._reason}"
            self._fail(AbortedError(message))
            return
        new = sorted((self._queues.keys() | self._expected) - self._added)
        if new and "add" not in self._tasks:
            self._begin("add", self._add(new))
        # A broker verifies batches at the coordinator, which refuses that while it writes a step. A request
        # without the new partitions would hold up the one with them.
        if not self._tasks.keys() & _STEPS:
            self._begin_requests(now)

    def _begin_requests(self, now: float) -> None:
        """Begin look-ups, and a request to each broker without one."""
        chosen: dict[int, list[WrittenBatch]] = {}
        sizes: dict[int, int] = {}
        unled: set[str] = set()
        wake_at = self._deadline
        for place, queue in self._queues.items():
            if place not in self._added or place in self._in_flight:
                continue
            leader = self._brokers.leader(place)
            if leader is None:
                unled.add(place[0])
            elif leader in self._tasks:
                continue
            elif (quiet_until := self._brokers.quiet_until(leader)) > now:
                wake_at = min(wake_at, quiet_until)
            elif not sizes.get(leader) or sizes[leader] + len(queue[0].wire) <= REQUEST_BYTES:
                chosen.setdefault(leader, []).append(queue[0])
                sizes[leader] = sizes.get(leader, 0) + len(queue[0].wire)
        for leader, batches in chosen.items():
            self._begin(leader, self._send(leader, batches))
        if (unled or self._outdated) and "look-up" not in self._tasks:
            topics, self._outdated = unled | self._outdated, set()
            self._begin("look-up", self._look_up(topics))
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_at(wake_at, self._plan)

    def _begin(self, name: int | str, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[name] = task

        def ended(_: object) -> None:
            del self._tasks[name]
            if not task.cancelled() and (error := task.exception()) is not None:
                self._fail(error if isinstance(error, BrokerError) else BrokerError(f"{error!r}"))
            self._moved.set()
            self._plan()

        task.add_done_callback(ended)

    async def _add(self, places: Sequence[Place]) -> None:
        await self._add_partitions(places)
        self._added.update(places)

    async def _look_up(self, topics: set[str]) -> None:
        """Look up the leaders of partitions; if one stays without, wait before the next attempt."""
        await self._brokers.look_up_leaders(topics)
        for topic in topics & {topic for topic, _ in self._queues}:
            if self._brokers.is_denied(topic):
                self._fail(self._refused((topic, 0), Outcome(Codes.TOPIC_AUTHORIZATION_FAILED, ""), 0))
        unled = [place for place in self._queues if self._brokers.leader(place) is None]
        if unled:
            self._reason = f"{unled[0][0]}[{unled[0][1]}] has no leader"
            await asyncio.sleep(self._pause(_NO_BROKER))

    def _pause(self, node: int) -> float:
        """Return the next pause of a broker, twice as long as the one before."""
        attempts = self._attempts[node] = self._attempts.get(node, 0) + 1
        return min(FIRST_PAUSE_S * float(2 ** min(attempts - 1, 10)), LONGEST_PAUSE_S)

    async def _send(self, node: int, batches: Sequence[WrittenBatch]) -> None:
        places = [(batch.topic, batch.partition) for batch in batches]
        self._in_flight.update(places)
        try:
            answer = await self._brokers.send(node, Produce(self._id, REQUEST_MS, batches))
        except LostAnswerError as error:
            self._unanswered.update(places)
            self._retry(node, str(error))
            self._outdated.update(topic for topic, _ in places)
            return
        finally:
            self._in_flight.difference_update(places)
        refused = ""
        for place, batch in zip(places, batches, strict=True):
            outcome = answer.outcomes.get(place, Outcome(Codes.REQUEST_TIMED_OUT, "no answer for it"))
            verdict, code = verdict_on("Produce", [outcome.code])
            if verdict is Verdict.DONE:
                self._unanswered.discard(place)
                self._delivered(place, batch)
            elif verdict <= Verdict.LOOK_UP:
                if verdict is Verdict.LOOK_UP:
                    self._outdated.add(place[0])
                refused = f"{place[0]}[{place[1]}]: {Codes(code).str()}"
            else:
                self._fail(self._refused(place, outcome, batch.count))
        if not refused:
            self._attempts.pop(node, None)
            return
        self._retry(node, refused)

    def _retry(self, node: int, reason: str) -> None:
        if reason != self._reason:
            logger.debug("transactional.id=%s: %s; trying again", self._id, reason)
            self._reason = reason
        self._brokers.be_quiet(node, self._pause(node))

    def _delivered(self, place: Place, batch: WrittenBatch) -> None:
        queue = self._queues.get(place)
        if queue:  # none after a stop
            queue.popleft()
            if not queue:
                del self._queues[place]
        self._acknowledged(batch)

    def _refused(self, place: Place, outcome: Outcome, count: int) -> BrokerError:
        topic, partition = place
        verdict, code = verdict_on("Produce", [outcome.code])
        text = self._failures.explain(Codes(code), topic)
        if verdict is Verdict.FENCED:
            return FencedError(
                f"transactional.id={self._id}: the broker has ended the transaction, or another producer has "
                f"this id ({text})"
            )
        detail = f" ({outcome.detail})" if outcome.detail else ""
        of_records = f"{count} records of {topic}[{partition}] were not delivered"
        return AbortedError(f"{of_records}: {text}{detail}")
