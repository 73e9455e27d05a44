"""Coordinator steps: requests to the coordinators of a transaction, repeated until they count."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from confluent_kafka import KafkaError as Codes

from topics.clients.access import Access, denied_kind
from topics.clients.group_member import GroupMember
from topics.errors import AbortedError, BrokerError, FencedError
from topics.producing.broker_connections import (
    BrokerConnections,
    LostAnswerError,
    RefusedLookUpError,
    Role,
)
from topics.producing.step_errors import FailedProducerError, UnfinishedError, Verdict, verdict_on
from topics.producing.transaction_requests import (
    AddOffsets,
    AddPartitions,
    EndTxn,
    InitProducerId,
    Place,
    ProducerIdentity,
    codes_of,
)
from topics.producing.transactional_offsets import OffsetToCommit, TxnOffsetCommit

logger = logging.getLogger(__name__)

FIRST_PAUSE_S: Final = 0.005
"""Pause before a request is repeated. The coordinator refuses the first step of a transaction while it still
writes the end of the previous one, which takes milliseconds.
"""

LONGEST_PAUSE_S: Final = 1.0
"""Each further pause is twice as long, up to this one."""

REFUSED_PAUSE_S: Final = 0.1
"""The longest pause after an answer. A coordinator refuses steps while a broker goes away, because the end of
the last transaction waits for that broker: a pause that outlasts this would stop all answers.
"""

CONCURRENT_PAUSE_S: Final = 0.02
"""The same while the coordinator still writes the end of the previous transaction."""

UNUSUAL_S: Final = 1.0
"""How long a step may be refused before the log names it."""

MISSING_S: Final = 30.0
"""How long a partition may be unknown to the coordinator: brokers learn of a new topic one after another."""


class _Again(NamedTuple):
    """A step that did not count, and is repeated."""

    reason: str
    longest_pause_s: float


class CoordinatorSteps:
    """The steps of the transactions of one transactional id, except for the records."""

    def __init__(
        self,
        brokers: BrokerConnections,
        transactional_id: str,
        timeout_ms: int,
        access: Access,
        is_overdue: Callable[[], bool],
    ) -> None:
        """`timeout_ms`: the time after which the coordinator aborts a transaction on its own; `is_overdue`:
        whether there is no reason to wait for the brokers any longer.
        """
        self._brokers = brokers
        self._id = transactional_id
        self._timeout_ms = timeout_ms
        self._access = access
        self._is_overdue = is_overdue
        self._nodes: dict[Role, int] = {}
        self._missing_since = float("inf")
        """Time of the event loop since which a partition of the running step has been unknown."""
        self._calls = itertools.count(1)
        self._waiting: set[int] = set()
        """Numbers of the requests whose answers steps wait for."""

    @property
    def call(self) -> int | None:
        """Number of the oldest request whose answer a step waits for, or None."""
        return min(self._waiting, default=None)

    def forget_coordinators(self) -> None:
        """Look up the coordinators again before the next step."""
        self._nodes.clear()

    async def init_producer_id(self, seconds: float) -> ProducerIdentity:
        """Return a new identity; transactions of earlier ones are ended, and their producers fenced.

        All steps take at most `seconds` and raise UnfinishedError, AbortedError, FencedError or BrokerError.
        """
        answer = await self._step("InitProducerId", InitProducerId(self._id, self._timeout_ms), seconds)
        return ProducerIdentity(answer.producer_id, answer.producer_epoch)

    async def add_partitions(
        self, identity: ProducerIdentity, places: Sequence[Place], seconds: float
    ) -> None:
        """Make partitions a part of the transaction, before any record is sent to them.

        Raises BrokerError if one of them does not exist.
        """
        self._missing_since = float("inf")
        await self._step("AddPartitionsToTxn", AddPartitions(self._id, identity, places), seconds)

    async def add_group(self, identity: ProducerIdentity, group: str, seconds: float) -> None:
        """Make a group a part of the transaction, before any offset of it is sent."""
        await self._step("AddOffsetsToTxn", AddOffsets(self._id, identity, group), seconds, group=group)

    async def send_offsets(
        self,
        identity: ProducerIdentity,
        member: GroupMember,
        offsets: Mapping[Place, OffsetToCommit],
        seconds: float,
    ) -> None:
        """Make offsets a part of the transaction; AbortedError if the group has moved on."""
        request = TxnOffsetCommit(self._id, identity, member, offsets)
        await self._step("TxnOffsetCommit", request, seconds, "group", group=member.group)

    async def end(self, identity: ProducerIdentity, *, committed: bool, seconds: float) -> None:
        """Commit or abort the transaction; after an UnfinishedError either may have happened."""
        await self._step("EndTxn", EndTxn(self._id, identity, committed=committed), seconds)

    async def _step(
        self, step: str, request: Any, seconds: float, role: Role = "transaction", group: str = ""
    ) -> Any:
        """Return the answer of the coordinator once it has taken the step."""
        loop = asyncio.get_running_loop()
        began, pause, reason, is_logged = loop.time(), FIRST_PAUSE_S, "", False
        deadline = began + seconds
        while True:
            try:
                async with asyncio.timeout_at(deadline):
                    outcome = await self._attempt(step, request, role, group)
            except TimeoutError:
                raise self._unfinished(step, seconds, reason) from None
            if not isinstance(outcome, _Again):
                return outcome
            reason, longest = outcome
            if loop.time() - began >= UNUSUAL_S and not is_logged:
                logger.warning("transactional.id=%s: %s: %s; trying again", self._id, step, reason)
                is_logged = True
            if self._is_overdue():
                message = "a transaction was not finished before the worker stopped: the broker is away"
                raise UnfinishedError(message)
            pause = min(pause, longest)
            if loop.time() + pause >= deadline:
                raise self._unfinished(step, seconds, reason)
            await asyncio.sleep(pause)
            pause *= 2

    async def _attempt(self, step: str, request: Any, role: Role, group: str) -> Any:
        """Return the answer of the coordinator, or _Again."""
        number = next(self._calls)
        self._waiting.add(number)
        of_places: dict[Place | None, int] = {}
        try:
            if role not in self._nodes:
                name = group if role == "group" else self._id
                self._nodes[role] = await self._brokers.coordinator(role, name)
            answer = await self._brokers.send(self._nodes[role], request, to_coordinator=True)
        except LostAnswerError as error:
            if self._nodes.pop(role, None) is not None:
                await self._brokers.look_up_brokers()
            return _Again(str(error), LONGEST_PAUSE_S)
        except RefusedLookUpError as error:
            step, codes = "FindCoordinator", [error.code]
        else:
            of_places = codes_of(answer)
            codes = [*of_places.values()]
            if step == "AddPartitionsToTxn":
                self._check_existence(of_places)
        finally:
            self._waiting.discard(number)
        verdict, code = verdict_on(step, codes)
        if verdict is Verdict.DONE:
            return answer
        if verdict is Verdict.LOOK_UP:
            self._nodes.pop(role, None)
        if verdict <= Verdict.LOOK_UP:
            is_busy = code == Codes.CONCURRENT_TRANSACTIONS
            return _Again(Codes(code).str(), CONCURRENT_PAUSE_S if is_busy else REFUSED_PAUSE_S)
        raise self._refused(step, verdict, code, group, [at for at, own in of_places.items() if own == code])

    def _check_existence(self, codes: Mapping[Place | None, int]) -> None:
        """Raise BrokerError if a partition has been unknown for too long."""
        missing = [place for place, code in codes.items() if code == Codes.UNKNOWN_TOPIC_OR_PART]
        now = asyncio.get_running_loop().time()
        self._missing_since = min(self._missing_since, now) if missing else float("inf")
        if missing and missing[0] is not None and now - self._missing_since >= MISSING_S:
            topic, partition = missing[0]
            message = (
                f"topic {topic} does not exist, or has no partition {partition}: the broker has refused "
                f"records for it for {MISSING_S:g} s; create it with 'grove topics create'"
            )
            raise BrokerError(message)

    def _refused(
        self, step: str, verdict: Verdict, code: int, group: str, places: Sequence[Place | None]
    ) -> BrokerError:
        """Return the error for a code that a step does not survive; `places`: those that have it."""
        text = Codes(code).str()
        if verdict is Verdict.FENCED:
            return FencedError(
                f"transactional.id={self._id}: the broker has ended the transaction, or another producer has "
                f"this id ({step}: {text})"
            )
        kind = denied_kind(code)
        if kind == "transactional-id":
            return BrokerError(self._access.denied(kind, self._id, "Write,Describe"))
        if kind == "group":
            return AbortedError(self._access.denied(kind, group, "Read"))
        if kind == "cluster":
            return BrokerError(self._access.denied(kind, "", "IdempotentWrite"))
        place = places[0] if places else None
        if kind == "topic" and place is not None:
            operation = "Read" if step == "TxnOffsetCommit" else "Write"
            return AbortedError(self._access.denied(kind, place[0], operation))
        at = "" if place is None else f"{place[0]}[{place[1]}]: "
        message = f"transactional.id={self._id}: {step}: {at}{text}"
        if code == Codes.INVALID_TRANSACTION_TIMEOUT:
            remedy = "lower transaction.timeout.ms, or raise the brokers' transaction.max.timeout.ms"
            return BrokerError(f"{message}: {self._timeout_ms} ms; {remedy}")
        if verdict is Verdict.ABORT:
            return AbortedError(message)
        return FailedProducerError(message)

    def _unfinished(self, step: str, seconds: float, reason: str) -> UnfinishedError:
        return UnfinishedError(
            f"transactional.id={self._id}: {step} was not answered within {seconds:.1f} s: "
            f"{reason or 'the coordinator is silent'}"
        )
