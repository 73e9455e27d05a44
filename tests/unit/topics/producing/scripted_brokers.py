"""Brokers whose answers are scripted: faults that a real broker cannot be made to show at a given request."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import Any

from topics.producing.broker_connections import (
    BrokerConnections,
    LostAnswerError,
    RefusedLookUpError,
    Role,
)
from topics.producing.produce_request import Outcome, Produce
from topics.producing.transaction_requests import Place

LOST = "lost"
SILENT = "silent"
Script = dict[Any, list[Any]]
"""Codes, LOST (taken, but the answer is lost) or SILENT (never answered): by the place of batches, or by the
name of a step; for batches also a code with the places of the refused records. Everything beyond the script
succeeds.
"""


class ScriptedBrokers(BrokerConnections):
    """Brokers that answer requests with the next code of a script, and note what they got."""

    def __init__(self, script: Script, leaders: Mapping[Place, list[int | None]] | None = None) -> None:
        """`leaders`: numbers of brokers, the next at each look-up; all others lead to broker 1."""
        super().__init__({})
        self.script = script
        self.leaders = dict(leaders or {})
        self.coordinators: dict[Role, list[int]] = {"transaction": [1], "group": [2]}
        self.sent: list[tuple[int, list[bytes]]] = []
        self.steps: list[tuple[int, str, Any]] = []
        self.log: dict[Place, list[bytes]] = {}
        self.epoch = 0
        self.producer = 7
        self.absent: set[Place] = set()
        """Partitions that are in no metadata."""
        self.lines: list[tuple[int, bool]] = []
        self.n_opened = 0
        self._busy: set[tuple[int, bool]] = set()
        self._adding = 0
        """Steps that add something to the transaction, and are not answered."""

    def _next(self, name: Any) -> Any:
        return self.script[name].pop(0) if self.script.get(name) else 0

    async def open(self) -> None:
        self.n_opened += 1

    async def reopen(self) -> None:
        self.n_opened += 1

    async def close(self) -> None:
        pass

    async def send(self, node: int, request: Any, *, to_coordinator: bool = False) -> Any:
        if isinstance(request, Produce):
            line = node, to_coordinator
            assert line not in self._busy, "one request in flight"
            assert not self._adding, "a broker refuses batches while something is added"
            self._busy.add(line)
            self.lines.append(line)
            await asyncio.sleep(0)
            self._busy.discard(line)
            return await self._append(node, request)
        assert to_coordinator or request._fields[0] is None, "any broker gives an id without transactions"
        name = type(request).__name__
        self.steps.append((node, name, request._fields))
        assert name != "TxnOffsetCommit" or not self._busy, "a broker refuses offsets that come with batches"
        code = self._next(name)
        if code == SILENT:
            await asyncio.Event().wait()
        if name in ("AddPartitions", "AddOffsets"):
            self._adding += 1
            await asyncio.sleep(0)
            self._adding -= 1
        if code == LOST:
            raise LostAnswerError(LOST)
        if name == "AddPartitions":
            places = [place for _, rows in request._fields[-1] for place in rows]
            return SimpleNamespace(topics=[("a", [(place, code) for place in places])])
        if name == "InitProducerId" and code == 0:
            self.epoch += request._fields[0] is not None
            self.producer += request._fields[0] is None
        return SimpleNamespace(
            error_code=code, producer_id=self.producer, producer_epoch=self.epoch, throttle_time_ms=0
        )

    async def _append(self, node: int, request: Produce) -> Any:
        self.sent.append((node, [batch.wire for batch in request.batches]))
        outcomes = {}
        for batch in request.batches:
            place = (batch.topic, batch.partition)
            code = self._next(place)
            records: tuple[int, ...] = ()
            if isinstance(code, tuple):
                code, *refused = code
                records = tuple(refused)
            if code == SILENT:
                await asyncio.Event().wait()
            log = self.log.setdefault(place, [])
            if code in (0, LOST) and batch.wire not in log:
                log.append(batch.wire)
            if code == LOST:
                raise LostAnswerError(LOST)
            outcomes[place] = Outcome(code, "", records)
        return SimpleNamespace(outcomes=outcomes, throttle_time_ms=0)

    def leader(self, place: Place) -> int | None:
        return self.leaders.get(place, [1])[0]

    def knows(self, place: Place) -> bool:
        return place not in self.absent

    def any_node(self) -> int | None:
        return 1

    def is_denied(self, topic: str) -> bool:
        return topic == "denied"

    async def look_up_leaders(self, topics: Iterable[str]) -> bool:
        return await self.look_up_brokers()

    async def look_up_brokers(self) -> bool:
        for nodes in self.leaders.values():
            if len(nodes) > 1:
                nodes.pop(0)
        return True

    async def coordinator(self, role: Role, key: str) -> int:
        code = self._next("FindCoordinator")
        if code == LOST:
            raise LostAnswerError(LOST)
        if code:
            raise RefusedLookUpError(code)
        nodes = self.coordinators[role]
        return nodes.pop(0) if len(nodes) > 1 else nodes[0]
