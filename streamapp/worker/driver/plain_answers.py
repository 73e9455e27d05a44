# ruff: noqa: SLF001 - what is written of aiokafka is held by tests/unit/streamapp/worker/driver/test_plain_answers.py
"""Plain answers: the parts of an answer that only bring records are noted here, all others by aiokafka.

aiokafka makes an object for each partition that was requested, and calls some forty functions for each that
is answered. A trickle requests all partitions forty times a second, and most answers have nothing but
records.
"""

from __future__ import annotations

import time
from functools import lru_cache
from typing import Any, Final

from aiokafka import TopicPartition
from aiokafka.consumer.fetcher import FetchResult, PartitionRecords
from aiokafka.protocol.fetch import FetchRequest

from streamapp.worker.transport.fetch_frames import FetchAnswer
from topics.fetching.fetched_records import FetchedRecords

_place: Final = lru_cache(maxsize=1 << 14)(TopicPartition)


class PlainAnswers:
    """Takes the plain parts out of the answers to aiokafka's client, in the loop of the consumer's thread.

    A part is plain if it has no error, answers the position at which the partition still is, and either has a
    whole batch or nothing. An answer is left alone if the replica to read from may change (`client.rack`), or
    if the broker has an older version of the protocol.
    """

    def __init__(self, client: Any, fetcher: Any) -> None:
        """`fetcher`: aiokafka's, whose requests go through `client`."""
        self._fetcher = fetcher
        self._send = client.send
        client.send = self._send_and_take

    async def _send_and_take(self, node_id: int, request: Any, **options: Any) -> Any:
        if not isinstance(request, FetchRequest):
            return await self._send(node_id, request, **options)
        subscription = self._fetcher._subscriptions.subscription
        assignment = None if subscription is None else subscription.assignment
        response = await self._send(node_id, request, **options)
        is_readable = isinstance(response, FetchAnswer) and not self._fetcher._client_rack
        if is_readable and assignment is not None and assignment.active:
            self._take(assignment, request, response)
        return response

    def _take(self, assignment: Any, request: Any, response: Any) -> None:
        """Note the plain parts of an answer, and leave the others in it."""
        fetcher = self._fetcher
        now_ms = int(1000 * time.time())
        positions = {(topic, number): at for topic, rows in request.topics for number, at, _ in rows}
        others, brings_records = [], False
        for topic, rows in response.topics:
            others_of_topic = []
            for row in rows:
                number, error, high_watermark, stable_end, _, aborted, _, log = row
                state = assignment._tp_state.get((topic, number))
                records = None if log is None else FetchedRecords(log)
                if (
                    error
                    or records is None
                    or state is None
                    or state._position != positions.get((topic, number))
                    or (log and not records.has_next())
                ):
                    others_of_topic.append(row)
                    continue
                state.highwater, state.lso, state.timestamp = high_watermark, stable_end, now_ms
                if log:
                    tp = _place(topic, number)
                    unread = PartitionRecords(
                        *(tp, records, aborted, state._position, None, None),
                        *(fetcher._check_crcs, fetcher._isolation_level),
                    )
                    fetcher._records[tp] = FetchResult(
                        tp, assignment=assignment, partition_records=unread, backoff=fetcher._prefetch_backoff
                    )
                    brings_records = True
            if others_of_topic:
                others.append((topic, others_of_topic))
        response.topics = others
        if not others:
            request._topics = []  # aiokafka would make an object for each partition in it
        if brings_records:
            for waiter in fetcher._fetch_waiters:
                fetcher._notify(waiter)
