"""Requests of clients are counted however their bytes are cut, and beside those of other connections."""

from __future__ import annotations

import asyncio
from struct import pack
from typing import cast

from hypothesis import given
from hypothesis import strategies as st

from benchmarks.chaos.network import Connection
from benchmarks.rig.client_requests import RequestCounter

PRODUCE, FETCH, HEARTBEAT = 0, 1, 12


def request(kind: int, client: str | None, body: int) -> bytes:
    name = pack(">h", -1) if client is None else pack(">h", len(client)) + client.encode()
    content = pack(">hhi", kind, 7, 1) + name + bytes(body)
    return pack(">i", len(content)) + content


def connection() -> Connection:
    writer = cast("asyncio.StreamWriter", None)
    return Connection(frozenset({1}), 1, writer, writer)


SENT = [(PRODUCE, "worker", 300), (FETCH, "worker", 0), (HEARTBEAT, "worker", 11), (PRODUCE, "worker", 1)]


@given(st.lists(st.integers(1, 60), min_size=1, max_size=20))
def test_requests_are_counted_wherever_their_bytes_are_cut(cuts: list[int]) -> None:
    counter, worker, other = RequestCounter(), connection(), connection()
    data = b"".join(request(*words) for words in SENT)
    number = 0
    while data:
        n = cuts[number % len(cuts)]
        counter(worker, True, data[:n])
        counter(other, True, request(PRODUCE, None, 5))
        data, number = data[n:], number + 1
    counts = counter.counts
    assert counts.requests == {
        ("worker", "Produce"): 2,
        ("worker", "Fetch"): 1,
        ("worker", "Heartbeat"): 1,
        ("", "Produce"): number,
    }
    assert counts.sent["worker", "Produce"] == len(request(*SENT[0])) + len(request(*SENT[3]))
    assert counts.sent["", "Produce"] == number * len(request(PRODUCE, None, 5))


def test_answers_count_for_the_client_of_their_connection_and_differences_are_those_of_the_time() -> None:
    counter, worker, reader = RequestCounter(), connection(), connection()
    counter(worker, True, request(FETCH, "worker", 10))
    counter(reader, True, request(FETCH, "reader", 10))
    counter(worker, False, bytes(100))
    before = counter.counts.copy()
    counter(reader, False, bytes(50))
    counter(worker, True, request(99, "worker", 1))
    during = counter.counts - before
    assert during.received == {"reader": 50}
    assert during.requests == {("worker", "99"): 1}
