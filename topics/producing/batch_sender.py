"""Batch sender: delivers batches, with one request in flight to each broker for all partitions it leads.

The next batch of a partition is sent once the broker has answered the one before. A batch whose answer is
lost is sent again with the same sequence numbers, perhaps to another leader: brokers recognise what they
have appended already. A broker works off the requests of a connection one after the other, so that more
requests in flight would gain nothing.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from confluent_kafka import KafkaError as Codes

from topics.errors import BrokerError
from topics.producing.batch_encoder import WrittenBatch
from topics.producing.broker_connections import BrokerConnections, LostAnswerError
from topics.producing.produce_request import Outcome, Produce
from topics.producing.transaction_requests import Place

logger = logging.getLogger(__name__)

REQUEST_BYTES: Final = 8 << 20
"""A request is larger only if it has a single batch. Brokers refuse more than `socket.request.max.bytes`, by
default 100 MiB.
"""

LEAST_BYTES: Final = 1 << 18
"""A request of fewer bytes is not split after a lost answer: it is not the size that the broker refuses."""

NO_BROKER: Final = -1
"""The number under which attempts to find a leader are counted."""

NEVER: Final = float("inf")

MERGE_S: Final = 0.05
"""How long records wait at most for others while batches wait: a request may be to a broker that hangs."""

_LOOK_UPS: Final = frozenset({"look-up", "identity"})
"""Names of tasks that change nothing at a broker."""

_NO_OUTCOME: Final = Outcome(Codes.REQUEST_TIMED_OUT, "no answer for it")

Line = tuple[int, bool]
"""The number of a broker, and whether it is the second connection to it."""


@dataclass(slots=True)
class _Load:
    """The batches of the next request on a connection."""

    is_open: bool
    opens_at: float  # the time of the event loop up to which the broker has asked for a pause
    most: int  # bytes
    size: int = 0
    batches: list[WrittenBatch] = field(default_factory=list)


class BatchSender(ABC):
    """Plans requests and repeats them; to be used in one event loop.

    A subclass decides which batches may be sent, and what follows from the answers.
    """

    def __init__(
        self,
        brokers: BrokerConnections,
        name: str,
        first_pause_s: float,
        longest_pause_s: float,
    ) -> None:
        """`name` is for the log; a pause after a failure is twice as long as the one before."""
        self._brokers = brokers
        self._name = name
        self._first_pause_s = first_pause_s
        self._longest_pause_s = longest_pause_s
        self._queues: dict[Place, deque[WrittenBatch]] = {}
        self._in_flight: dict[Place, Line] = {}
        """The connections of partitions with a batch that is not answered."""
        self._began: dict[Line, float] = {}
        """Times of the event loop at which the requests in flight began."""
        self._held: dict[Place, float] = {}
        """Times of the event loop before which a partition's batches are not sent."""
        self._slow: set[Place] = set()
        """Partitions whose batches go on a second connection to their leader."""
        self._unanswered: set[Place] = set()
        """Partitions with a batch of which an answer was lost: until a broker has the batch, another one may
        still append it.
        """
        self._outdated: set[str] = set()
        """Topics whose leaders are to be looked up, although they are known."""
        self._leaders: dict[Place, int] = {}
        """Leaders as the last metadata have them: looked up there once."""
        self._attempts: dict[Any, int] = {}
        """Refused requests in a row, by broker or partition."""
        self._most_bytes: dict[int, int] = {}
        """Bytes of a request to a broker, if fewer than REQUEST_BYTES: it may refuse large ones."""
        self._tasks: dict[Line | str, asyncio.Task[None]] = {}
        """Running tasks, by the connection of a request, or by name."""
        self._timer: asyncio.TimerHandle | None = None
        self._moved = asyncio.Event()
        """Set when a task has ended, or there is no reason to wait any longer."""
        self._is_stopped = False
        self._reason = ""
        self.is_behind = False
        """Whether a batch waits for no other reason than a request that is in flight, and not for long."""

    def put(self, batches: Iterable[WrittenBatch]) -> None:
        """Send batches after those of the same partitions that were put before."""
        for batch in batches:
            place = batch.topic, batch.partition
            if (queue := self._queues.get(place)) is None:
                self._queues[place] = deque([batch])
            else:
                queue.append(batch)
        self._plan()

    def crowded(self, most: int) -> set[Place]:
        """Return the partitions with at least this number of batches."""
        return {place for place, queue in self._queues.items() if len(queue) >= most}

    async def stop(self, seconds: float) -> bool:
        """Send no more batches; return whether the brokers have answered all requests within `seconds`.

        If they have not, a broker may append a batch later. Callers that wait for deliveries get an error.
        """
        self._is_stopped = True
        running = [*self._tasks.values()]
        for name in _LOOK_UPS & self._tasks.keys():
            self._tasks[name].cancel()
        if running:
            await asyncio.wait(running, timeout=seconds)
        is_answered = not self._tasks and not self._unanswered
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        self._in_flight.clear()  # of a task that was cancelled before its first step
        self._began.clear()
        if self._timer is not None:
            self._timer.cancel()
        self._queues = {}
        self._moved.set()
        return is_answered

    # -- decisions of a subclass ----------------------------------------------------------------------------

    @property
    def _is_idle(self) -> bool:
        """Whether there is nothing to begin."""
        return not self._queues

    @abstractmethod
    def _may_send(self, now: float) -> bool:
        """Whether anything may be sent; begins what has to come before it."""

    @abstractmethod
    def _wake_at(self) -> float:
        """Return the time of the event loop at which batches have waited too long."""

    @abstractmethod
    def _request(self, batches: Sequence[WrittenBatch]) -> Produce:
        """Return the request that carries the first batches of partitions."""

    @abstractmethod
    def _answered(self, node: int, batches: Sequence[WrittenBatch], outcomes: Sequence[Outcome]) -> None:
        """Take the broker's answer for each batch."""

    @abstractmethod
    def _lost(self, places: Sequence[Place]) -> None:
        """Take the loss of the answer for the first batches of these partitions."""

    @abstractmethod
    async def _looked_up(self, topics: set[str], is_new: bool) -> None:
        """Take a look-up of the leaders of topics; `is_new`: a broker has answered."""

    @abstractmethod
    def _failed(self, error: Exception) -> None:
        """Take an error of planning or of a task: nothing more can be delivered."""

    # -- requests -------------------------------------------------------------------------------------------

    def _plan(self) -> None:
        """Begin what can be begun; an error is a failure of the deliveries, not of a timer."""
        try:
            self._begin_all()
        except Exception as error:  # noqa: BLE001 - else the callers of `flush` would wait for ever
            self._failed(error)

    def _begin_all(self) -> None:
        """Begin look-ups, and a request on each connection without one."""
        self.is_behind = False
        if self._is_stopped or self._is_idle:
            return
        loop = asyncio.get_running_loop()
        now = loop.time()
        may_send = self._may_send(now)
        wake_at = min(self._wake_at(), self._begin_requests(now) if may_send else NEVER)
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if wake_at == NEVER else loop.call_at(wake_at, self._plan)

    def _begin_requests(self, now: float) -> float:
        """Begin look-ups and requests; return the time at which more can be begun."""
        in_flight, pauses, slow, leaders = self._in_flight, self._held, self._slow, self._leaders
        loads: dict[Line, _Load] = {}
        unled: set[str] = set()
        is_behind, wake_at = False, NEVER
        for place, queue in self._queues.items():
            if (line := in_flight.get(place)) is not None:
                is_behind = is_behind or (len(queue) > 1 and self._is_young(line, now))
                continue
            if pauses and (until := pauses.get(place, 0.0)) > now:
                wake_at = min(wake_at, until)
                continue
            leader = leaders.get(place)
            if leader is None and (leader := self._leader(place)) is None:
                unled.add(place[0])
                continue
            line = leader, place in slow
            load = loads.get(line)
            if load is None:
                load = loads[line] = self._load(line, now)
            if load.is_open:
                size = len(queue[0].wire)
                if load.batches and load.size + size > load.most:
                    is_behind = True
                    continue
                load.batches.append(queue[0])
                load.size += size
                is_behind = is_behind or len(queue) > 1
            elif load.opens_at > now:
                wake_at = min(wake_at, load.opens_at)
            else:
                is_behind = is_behind or (not line[1] and self._is_young(line, now))
        self.is_behind = is_behind
        for line, load in loads.items():
            if load.batches:
                # Not by the task: until its first step another plan could send them on another connection.
                self._in_flight |= {(batch.topic, batch.partition): line for batch in load.batches}
                self._began[line] = now
                self._begin(line, self._send(line, load.batches))
        if (unled or self._outdated) and "look-up" not in self._tasks:
            topics, self._outdated = unled | self._outdated, set()
            self._begin("look-up", self._look_up(topics))
        return wake_at

    def _load(self, line: Line, now: float) -> _Load:
        """Return the load of a connection, without batches so far."""
        node = line[0]
        opens_at = self._brokers.quiet_until(node)
        is_open = line not in self._tasks and opens_at <= now
        return _Load(is_open, opens_at, self._most_bytes.get(node, REQUEST_BYTES))

    def _is_young(self, line: Line, now: float) -> bool:
        """Whether a request is so young that its end is worth waiting for: a broker that hangs is not."""
        return now - self._began.get(line, now) < MERGE_S

    def _leader(self, place: Place) -> int | None:
        leader = self._leaders.get(place)
        if leader is None and (leader := self._brokers.leader(place)) is not None:
            self._leaders[place] = leader
        return leader

    def _begin(self, name: Line | str, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[name] = task

        def ended(_: object) -> None:
            del self._tasks[name]
            if not task.cancelled() and (error := task.exception()) is not None:
                self._failed(error if isinstance(error, BrokerError) else BrokerError(f"{error!r}"))
            self._moved.set()
            self._plan()

        task.add_done_callback(ended)

    async def _look_up(self, topics: set[str]) -> None:
        """Look up the leaders of partitions; if one stays without, wait before the next attempt."""
        is_new = await self._brokers.look_up_leaders(topics)
        self._leaders.clear()
        await self._looked_up(topics, is_new)
        unled = [place for place in self._queues if self._brokers.leader(place) is None]
        if unled:
            self._reason = f"{unled[0][0]}[{unled[0][1]}] has no leader"
            await asyncio.sleep(self._pause(NO_BROKER))
        else:
            self._attempts.pop(NO_BROKER, None)

    def _pause(self, name: Any) -> float:
        """Return the next pause of a broker or a partition, twice as long as the one before."""
        attempts = self._attempts[name] = self._attempts.get(name, 0) + 1
        return min(self._first_pause_s * float(2 ** min(attempts - 1, 10)), self._longest_pause_s)

    async def _send(self, line: Line, batches: Sequence[WrittenBatch]) -> None:
        node, is_second = line
        places = [(batch.topic, batch.partition) for batch in batches]
        try:
            request = self._request(batches)
            answer = await self._brokers.send(node, request, to_coordinator=is_second)
        except LostAnswerError as error:
            self._unanswered.update(places)
            self._lost(places)
            self._outdate(topic for topic, _ in places)
            self._retry(node, str(error))
            if len(batches) > 1 and (size := sum(len(batch.wire) for batch in batches)) > LEAST_BYTES:
                self._most_bytes[node] = size // 2
            return
        finally:
            for place in places:
                self._in_flight.pop(place, None)
            self._began.pop(line, None)
        if node in self._most_bytes:
            self._most_bytes[node] *= 2
            if self._most_bytes[node] >= REQUEST_BYTES:
                del self._most_bytes[node]
        self._answered(node, batches, [answer.outcomes.get(place, _NO_OUTCOME) for place in places])

    def _outdate(self, topics: Iterable[str]) -> None:
        """Have the leaders of topics looked up."""
        self._outdated.update(topics)
        self._leaders.clear()

    def _retry(self, node: int, reason: str) -> None:
        """Send nothing more to a broker for a while."""
        self._note(reason)
        self._brokers.be_quiet(node, self._pause(node))

    def _note(self, reason: str) -> None:
        """Keep the reason why something is repeated, for later errors."""
        if reason != self._reason:
            logger.debug("%s: %s; trying again", self._name, reason)
            self._reason = reason
