# ruff: noqa: SLF001 - what is changed of aiokafka is held by tests/contract/test_transport_aiokafka.py
"""Fetch sessions (KIP-227): requests and answers name only the partitions that have changed.

aiokafka names every partition in every request, and the broker answers for every partition. That is most of
the work of an idle worker with many partitions. In a session the broker remembers partitions and positions. A
request then names the partitions whose position has changed, and the partitions to forget. An answer names
the partitions with records, a new high watermark or an error.

A session begins with a request of all partitions. It ends when a request fails or is cancelled, and when the
broker reports an error of the session. It also ends when aiokafka does not take an answer: with the
assignment, or if a partition was sought meanwhile. The broker would not repeat the high watermark, without
which the end of the log is unknown. A broker without room for another session gets requests of all
partitions.

Requests to a broker may overlap, as those of aiokafka's own routine do. Each of them has a session of its
own.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, Final

from aiokafka.errors import for_code
from aiokafka.protocol.fetch import FetchRequest, FetchRequest_v11

from streamapp.worker.transport.fetch_frames import FetchFrame

FIRST_VERSION: Final = 7
"""First version of a fetch that has sessions."""

NO_SESSION: Final = 0
INITIAL_EPOCH: Final = 0
"""Epoch of a request that begins a session; if it has the number of a session, that one ends."""

UNKNOWN: Final = -1
"""Of a consumer: its number as a replica, the epoch of a leader, and the first offset of a log."""

MOST_EPOCHS: Final = (1 << 31) - 1

SESSION_NOT_FOUND: Final = 70
"""Code of an error: the broker needed the room of the session for another client."""

Place = tuple[str, int]
"""Topic and partition."""

Row = tuple[int, int]
"""Position and most bytes, which a request has for each partition."""


@dataclass(slots=True)
class Session:
    """The state of a session, as the broker has it, too."""

    number: int
    assignment: Any
    epoch: int = INITIAL_EPOCH
    """Epoch of the next request."""
    rows: dict[Place, Row] = field(default_factory=dict)


class SessionRequest(FetchRequest):  # type: ignore[misc]  # aiokafka's has no types
    """A request of a session. It becomes the whole request for a broker that has no sessions.

    The version is chosen when the request is sent.
    """

    def __init__(
        self,
        whole: Any,
        number: int,
        epoch: int,
        topics: list[tuple[str, list[Any]]],
        forgotten: list[tuple[str, list[int]]],
    ) -> None:
        """`whole`: the request of all partitions; `topics`, `forgotten`: the partitions in this one."""
        limits = whole._max_wait_ms, whole._min_bytes, whole._max_bytes, whole._isolation_level
        super().__init__(*limits, topics, whole._rack_id)
        self._whole = whole
        self._number, self._epoch, self._forgotten = number, epoch, forgotten

    def build(self, request_struct_class: Any) -> Any:
        """Return the request as aiokafka's structure of a version."""
        if request_struct_class.API_VERSION < FIRST_VERSION:
            return self._whole.build(request_struct_class)
        if request_struct_class is FetchRequest_v11:
            # The same structure, with shorter ways from and to bytes.
            topics = [
                (topic, [(number, UNKNOWN, at, UNKNOWN, most) for number, at, most in rows])
                for topic, rows in self._topics
            ]
            limits = self._max_wait_ms, self._min_bytes, self._max_bytes, self._isolation_level
            session = self._number, self._epoch
            return FetchFrame(UNKNOWN, *limits, *session, topics, self._forgotten, self._rack_id)
        built = super().build(request_struct_class)
        built.session_id, built.session_epoch = self._number, self._epoch
        built.forgotten_topics_data = self._forgotten
        return built


class FetchSessions:
    """The sessions of aiokafka's client, one for each broker, in the loop of the consumer's thread."""

    def __init__(self, client: Any, subscriptions: Any) -> None:
        """`subscriptions`: aiokafka's SubscriptionState."""
        self._send = client.send
        self._subscriptions = subscriptions
        self._sessions: dict[int, Session] = {}  # by broker; without those whose request is in flight
        self._to_end: dict[int, int] = {}  # numbers, by broker
        client.send = self._send_in_session

    async def _send_in_session(self, node_id: int, request: Any, **options: Any) -> Any:
        if not isinstance(request, FetchRequest):
            return await self._send(node_id, request, **options)
        rows = _rows_of(request)
        session = self._sessions.pop(node_id, None)
        if session is not None:
            self._to_end[node_id] = session.number
            if session.assignment is self._assignment:
                response = await self._send(node_id, _continued(request, session, rows), **options)
                if response.API_VERSION < FIRST_VERSION:
                    return response
                if not response.error_code:
                    self._keep(node_id, session, rows, response)
                    return response
                if response.error_code == SESSION_NOT_FOUND:
                    self._has_ended(node_id, session.number)
        return await self._begin(node_id, request, rows, **options)

    async def _begin(self, node_id: int, request: Any, rows: dict[Place, Row], **options: Any) -> Any:
        """Send a request that begins a session, in the place of any former one."""
        overtaken = self._sessions.pop(node_id, None)  # of another request, which was sent meanwhile
        if overtaken is not None:
            self._to_end[node_id] = overtaken.number
        ended, assignment = self._to_end.get(node_id, NO_SESSION), self._assignment
        begin = SessionRequest(request, ended, INITIAL_EPOCH, request.topics, [])
        response = await self._send(node_id, begin, **options)
        self._has_ended(node_id, ended)
        if response.API_VERSION < FIRST_VERSION:
            return response
        if response.error_code:
            raise for_code(response.error_code)
        if response.session_id != NO_SESSION:
            self._to_end[node_id] = response.session_id
            self._keep(node_id, Session(response.session_id, assignment), rows, response)
        return response

    def _has_ended(self, node_id: int, number: int) -> None:
        """Forget a session that was to be ended; another request may have named another one meanwhile."""
        if self._to_end.get(node_id) == number:
            del self._to_end[node_id]

    @property
    def _assignment(self) -> Any:
        """aiokafka's current assignment; it makes another object for each."""
        subscription = self._subscriptions.subscription
        return None if subscription is None else subscription.assignment

    def _keep(self, node_id: int, session: Session, rows: dict[Place, Row], response: Any) -> None:
        """Keep a session after an answer, unless aiokafka will drop a part of it."""
        states = session.assignment._tp_state
        for topic, answered in response.topics:
            for number, *_ in answered:
                place = topic, number
                if states[place]._position != rows[place][0]:  # or there is none
                    return
        session.epoch = 1 if session.epoch == MOST_EPOCHS else session.epoch + 1
        session.rows = rows
        self._sessions[node_id] = session
        self._has_ended(node_id, session.number)  # or it goes on: no request has to end it


def _continued(request: Any, session: Session, rows: dict[Place, Row]) -> SessionRequest:
    """Return the next request of a session."""
    before = session.rows
    changed = [
        (place[0], (place[1], *row))
        for place, row in rows.items()
        if place not in before or before[place] != row
    ]
    forgotten = [place for place in before if place not in rows]
    return SessionRequest(request, session.number, session.epoch, _by_topic(changed), _by_topic(forgotten))


def _rows_of(request: Any) -> dict[Place, Row]:
    return {(topic, number): (at, most) for topic, rows in request.topics for number, at, most in rows}


def _by_topic(pairs: Iterable[tuple[str, Any]]) -> list[tuple[str, list[Any]]]:
    """Return the second elements of pairs by topic."""
    groups = itertools.groupby(sorted(pairs), key=itemgetter(0))
    return [(topic, [value for _, value in group]) for topic, group in groups]
