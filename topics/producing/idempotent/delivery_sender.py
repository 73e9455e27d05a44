"""Delivery sender: delivers each batch on its own, within its time; what cannot be delivered fails alone."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final

from confluent_kafka import KafkaError as Codes

from topics.clients.delivery_failures import DeliveryFailures
from topics.errors import BrokerError
from topics.producing.batch_encoder import WrittenBatch
from topics.producing.batch_sender import NEVER, BatchSender
from topics.producing.broker_connections import BrokerConnections, LostAnswerError
from topics.producing.idempotent.batch_parts import halves, without
from topics.producing.idempotent.delivery_terms import DeliveryTerms
from topics.producing.idempotent.numbering import Numbering
from topics.producing.idempotent.produce_errors import MAY_BE_APPENDED, Action, action_on
from topics.producing.offered_runs import OfferedRuns
from topics.producing.produce_request import Outcome, Produce
from topics.producing.transaction_requests import NOBODY, Place, ProducerIdentity

logger = logging.getLogger(__name__)

GONE_S: Final = 3.0
"""How long a topic that was there may be missing in the metadata, before it counts as deleted."""

UNREACHABLE_S: Final = 30.0
"""How long no known broker answers, before the configured addresses are connected to again."""


class DeliverySender(BatchSender):
    """Sends batches without a transaction; to be used in one event loop.

    A partition's batches have an identity and sequence numbers of their own, so that a fault of one changes
    nothing for the others. Numbers that no longer fit are written when a batch is sent. A partition whose
    replicas are late goes on a second connection to its leader, since a broker works off the requests of a
    connection one after the other.
    """

    def __init__(
        self,
        brokers: BrokerConnections,
        terms: DeliveryTerms,
        failures: DeliveryFailures,
        offered: OfferedRuns,
        new_identity: Callable[[], Awaitable[ProducerIdentity]],
        planned: Callable[[], None],
    ) -> None:
        """`new_identity` connects, if necessary, and returns the identity that a broker gives; `planned` is
        called whenever requests were begun or answered.
        """
        super().__init__(brokers, "producer", terms.pause_s, terms.longest_pause_s)
        self._terms = terms
        self._failures = failures
        self._offered = offered
        self._new_identity = new_identity
        self._planned = planned
        self._numberings: dict[Place, Numbering] = {}
        self._known: set[str] = set()
        self._missing: dict[Place, float] = {}
        """Times of the event loop since which a partition is in no metadata."""
        self._unreachable_since = NEVER
        self._next_expiry = NEVER
        self.identity = NOBODY
        """The latest identity; NOBODY: none is there yet."""
        self._needs_identity = True
        """Whether a new identity has to come before the next request."""

    def begin(self) -> None:
        """Connect to the brokers and get an identity, before there are records."""
        if self._needs_identity and "identity" not in self._tasks and not self._is_stopped:
            self._begin("identity", self._identify())

    def put(self, batches: Iterable[WrittenBatch]) -> None:
        """Send batches after those of the same partitions that were put before, which are due before them."""
        batches = [*batches]
        if batches:
            self._next_expiry = min(self._next_expiry, batches[0].deadline)
        super().put(batches)

    async def move(self, seconds: float) -> None:
        """Return when something has happened, or the time is over."""
        self._moved.clear()
        try:
            async with asyncio.timeout(seconds):
                await self._moved.wait()
        except TimeoutError:
            pass

    def _plan(self) -> None:
        super()._plan()
        self._planned()

    # -- decisions ------------------------------------------------------------------------------------------

    def _may_send(self, now: float) -> bool:
        if now >= self._next_expiry:
            self._expire(now)
        self.begin()
        return not self._needs_identity and bool(self._queues)

    def _wake_at(self) -> float:
        return self._next_expiry

    def _request(self, batches: Sequence[WrittenBatch]) -> Produce:
        numbered = []
        for batch in batches:
            place = batch.topic, batch.partition
            if (numbering := self._numberings.get(place)) is None:
                numbering = self._numberings[place] = Numbering(self.identity)
            wire = numbering.numbered(batch.wire)
            if wire is not batch.wire:
                batch = self._queues[place][0] = replace(batch, wire=wire)
            numbered.append(batch)
        return Produce(None, self._brokers.replica_ms, numbered)

    async def _identify(self) -> None:
        self.identity = await self._new_identity()
        self._needs_identity = False

    # -- answers --------------------------------------------------------------------------------------------

    def _answered(self, node: int, batches: Sequence[WrittenBatch], outcomes: Sequence[Outcome]) -> None:
        self._attempts.pop(node, None)
        delivered: list[WrittenBatch] = []
        for batch, outcome in zip(batches, outcomes, strict=True):
            place = batch.topic, batch.partition
            if (queue := self._queues.get(place)) is None:
                continue  # it was stopped
            if action_on(outcome.code) is Action.DELIVERED:
                delivered.append(queue.popleft())
                self._numberings[place].passed(batch.count)
                self._is_well(place)
            else:
                self._settle(place, outcome)
            if queue:
                self._next_expiry = min(self._next_expiry, queue[0].deadline)
            else:
                del self._queues[place]
        self._offered.settled(delivered)

    def _settle(self, place: Place, outcome: Outcome) -> None:
        """Take an error code for the first batch of a partition."""
        batch, action = self._queues[place][0], action_on(outcome.code)
        if outcome.code in MAY_BE_APPENDED:
            self._unanswered.add(place)
        if action is Action.REPEAT or action is Action.LOOK_UP:
            if action is Action.LOOK_UP:
                self._outdate([place[0]])
            elif outcome.code == Codes.REQUEST_TIMED_OUT:
                self._slow.add(place)
            self._repeat(place, outcome.code)
        elif action is Action.NEXT_EPOCH or action is Action.NEW_IDENTITY:
            logger.warning(
                "producer: %s[%d]: %s; its records are sent under new numbers, perhaps a second time",
                *(*place, Codes(outcome.code).str()),
            )
            self._renumber(place, is_fresh=action is Action.NEW_IDENTITY)
            self._repeat(place, outcome.code)
        else:
            self._refused(place, batch, action, outcome)

    def _refused(self, place: Place, batch: WrittenBatch, action: Action, outcome: Outcome) -> None:
        """Take the broker's refusal of a batch, or of some of its records."""
        level = self._terms.level
        if batch.count == 1 or action is Action.FAIL:
            self._give_up(place, outcome.code)
        elif action is Action.LEAVE_OUT and outcome.records:
            refused = {record for record in outcome.records if 0 <= record < batch.count}
            self._failures.not_delivered(*place, Codes(outcome.code), len(refused))
            self._put_in_place(place, without(batch.wire, refused, level))
        else:
            self._put_in_place(place, halves(batch.wire, level))
        self._moved.set()

    def _put_in_place(self, place: Place, parts: Sequence[tuple[int, bytes]]) -> None:
        """Let parts of a partition's first batch go in its place."""
        queue = self._queues[place]
        whole = queue.popleft()
        batches = [replace(whole, count=count, wire=wire) for count, wire in parts]
        self._offered.replaced(whole, batches)
        queue.extendleft(reversed(batches))
        self._is_uncertain(place)

    def _repeat(self, place: Place, code: int) -> None:
        """Send the first batch of a partition again after a pause."""
        self._note(f"{place[0]}[{place[1]}]: {Codes(code).str()}")
        self._held[place] = asyncio.get_running_loop().time() + self._pause(place)

    def _lost(self, places: Sequence[Place]) -> None:
        due = [self._queues[place][0].deadline for place in places if place in self._queues]
        self._next_expiry = min([self._next_expiry, *due])

    def _is_well(self, place: Place) -> None:
        """Forget the failures of a partition that takes batches."""
        self._known.add(place[0])
        self._missing.pop(place, None)
        self._unanswered.discard(place)
        if place in self._attempts:
            del self._attempts[place]
            self._held.pop(place, None)
            self._slow.discard(place)

    def _renumber(self, place: Place, *, is_fresh: bool = False) -> None:
        """Send the batches of a partition under the next epoch, or a new identity."""
        self._unanswered.discard(place)
        numbering = self._numberings.pop(place, None)
        if numbering is None:
            return
        following = None if is_fresh else numbering.next_epoch
        if following is not None:
            self._numberings[place] = following
        elif numbering.identity.producer == self.identity.producer:
            self._needs_identity = True

    def _is_uncertain(self, place: Place) -> None:
        """Leave the numbers of a partition's first batch, which is not sent again, if a broker may have it.

        Under the same numbers the broker would take the next batch for this one.
        """
        if place in self._unanswered:
            self._renumber(place)

    def _give_up(self, place: Place, code: int) -> None:
        """Let the first batch of a partition fail; the caller removes a queue that is empty then."""
        batch = self._queues[place].popleft()
        self._failures.not_delivered(*place, Codes(code), batch.count)
        self._offered.settled([batch])
        self._is_uncertain(place)
        self._moved.set()

    def _expire(self, now: float) -> None:
        """Let batches fail whose time is over; those in flight are left until they are answered."""
        self._next_expiry = NEVER
        for place in [*self._queues]:
            if place in self._in_flight:
                continue
            queue = self._queues[place]
            while queue and queue[0].deadline <= now:
                self._give_up(place, Codes._MSG_TIMED_OUT)  # noqa: SLF001 - librdkafka's own codes look so
            if queue:
                self._next_expiry = min(self._next_expiry, queue[0].deadline)
            else:
                del self._queues[place]

    # -- metadata -------------------------------------------------------------------------------------------

    async def _looked_up(self, topics: set[str], is_new: bool) -> None:
        now = asyncio.get_running_loop().time()
        if not is_new:
            self._unreachable_since = min(self._unreachable_since, now)
            if now - self._unreachable_since >= UNREACHABLE_S:
                await self._connect_again()
            return
        self._unreachable_since = NEVER
        for place in [place for place in self._queues if place[0] in topics]:
            if place not in self._in_flight:
                self._look_at(place, now)

    async def _connect_again(self) -> None:
        try:
            await self._brokers.reopen()
        except LostAnswerError as error:
            self._note(str(error))

    def _look_at(self, place: Place, now: float) -> None:
        """Let the batches of a partition fail that the new metadata do not have, or deny."""
        topic, _ = place
        code = None
        if self._brokers.is_denied(topic):
            code = Codes.TOPIC_AUTHORIZATION_FAILED
        elif self._brokers.knows(place):
            self._missing.pop(place, None)
            self._known.add(topic)
        else:
            since = self._missing.setdefault(place, now)
            if now - since >= (GONE_S if topic in self._known else self._terms.propagation_s):
                is_there = self._brokers.knows((topic, 0))
                code = Codes._UNKNOWN_PARTITION if is_there else Codes.UNKNOWN_TOPIC_OR_PART  # noqa: SLF001
        if code is not None:
            while self._queues[place]:
                self._give_up(place, code)
            del self._queues[place]

    def _failed(self, error: Exception) -> None:
        why = str(error) if isinstance(error, BrokerError) else repr(error)
        self._failures.given_up(f"the producer has failed for good: {why}")
        self._is_stopped = True
        self._moved.set()
