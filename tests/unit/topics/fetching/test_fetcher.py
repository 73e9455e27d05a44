"""What a fetcher returns of answers that have come: which batches it opens, and where the log ends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.codec import zstd_encode
from confluent_kafka import KafkaError

from benchmarks.chaos.wire import TRANSACTIONAL, Producer, Record, encode_records, frame_batch
from topics.columns.spans import RecordSpans
from topics.errors import Reason
from topics.fetching import batches
from topics.fetching.batches import PROCESSED, Limit
from topics.fetching.fetcher import Fetcher, Place, Taken
from topics.fetching.inflate import inflated as inflate
from topics.fetching.refused import BATCH_BYTES, RefusedBatch

HERE, THERE = ("t", 0), ("t", 1)
LIMIT = Limit(1 << 20)


def batch(base: int, n: int, size: int = 10, producer: int = -1) -> bytes:
    body = zstd_encode(encode_records([Record(b"k", bytes(size), (), 5)] * n))
    attributes = 4 | (TRANSACTIONAL if producer >= 0 else 0)
    raw = frame_batch(body, n, (5, 5), Producer(producer, 0, 0) if producer >= 0 else Producer(), attributes)
    return base.to_bytes(8, "big") + raw[8:]


BOMB = 400_000  # bytes of a record, of which four are too large


@pytest.fixture(params=[False, True], ids=["records", "spans"])
def fetcher(request: pytest.FixtureRequest) -> Iterator[Fetcher]:
    made = Fetcher({"bootstrap.servers": "none:1"}, LIMIT, spans=request.param)
    made.assign({HERE: 0, THERE: 0})
    yield made
    made.close()


@pytest.fixture
def inflated(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of what is inflated."""
    sizes: list[int] = []

    def noted(codec: int, data: bytes, most: int) -> bytes:
        sizes.append(len(data))
        return inflate(codec, data, most)

    monkeypatch.setattr(batches, "inflated", noted)
    return sizes


def answer(
    fetcher: Fetcher, place: Place, log: bytes, stable: int, aborted: Iterable[tuple[int, int]] = ()
) -> None:
    """Let an answer of the broker's come (version 11 of its protocol)."""
    fetcher._came(place, fetcher._places[place], stable, [0, list(aborted), -1, log])


def offsets(taken: Mapping[Place, Taken], place: Place = HERE) -> list[Any]:
    """Return the offsets of records, and both ends of refused batches."""
    found: list[Any] = []
    for each in taken[place].records:
        if isinstance(each, RecordSpans):
            found += each.offsets
        else:
            found.append((each.first, each.last) if isinstance(each, RefusedBatch) else each.offset)
    return found


def test_a_bomb_is_refused_and_the_end_is_told_once(fetcher: Fetcher) -> None:
    answer(fetcher, HERE, batch(0, 2) + batch(2, 4, BOMB) + batch(6, 1), 7)
    first = fetcher.take(100)
    assert offsets(first) == [0, 1, (2, 5)]
    (refused,) = [each for each in first[HERE].records if isinstance(each, RefusedBatch)]
    assert refused.reason is Reason.BATCH_TOO_LARGE
    assert first[HERE].end is None
    second = fetcher.take(100)
    assert (offsets(second), second[HERE].position, second[HERE].end) == ([6], 7, 7)
    assert fetcher.take(100) == {}


def test_what_a_worker_passed_over_is_not_inflated_and_nor_is_what_it_had_not_come_to(
    fetcher: Fetcher, inflated: list[int]
) -> None:
    fetcher.limit = PROCESSED
    log = batch(0, 2) + batch(2, 4, BOMB) + batch(6, 1) + batch(7, 4, BOMB)
    answer(fetcher, HERE, log, 11)
    assert offsets(fetcher.take(100, {HERE: 7}, [(2, 6)])) == [0, 1, 6]
    assert len(inflated) == 2
    assert fetcher.position(HERE) == 7
    assert fetcher.take(100, {HERE: 7}) == {}
    assert offsets(fetcher.take(100, {HERE: 11})) == [7, 8, 9, 10], "it was processed, whatever the limit is"


def test_a_wait_does_not_end_because_of_batches_that_must_not_be_opened(fetcher: Fetcher) -> None:
    answer(fetcher, HERE, batch(0, 2) + batch(2, 1), 3)
    assert fetcher._has_some(None)
    assert fetcher._has_some({HERE: 2})
    assert offsets(fetcher.take(100, {HERE: 2})) == [0, 1]
    assert not fetcher._has_some({HERE: 2})


def test_an_aborted_bomb_is_not_inflated(fetcher: Fetcher, inflated: list[int]) -> None:
    answer(fetcher, HERE, batch(0, 4, BOMB, producer=7) + batch(4, 1), 5, [(7, 0)])
    assert offsets(fetcher.take(100)) == [4]
    assert len(inflated) == 1


def test_one_turn_inflates_no_more_than_a_batch_may_become_and_one_more(fetcher: Fetcher) -> None:
    for place in (HERE, THERE):
        answer(fetcher, place, b"".join(batch(at, 1, 600_000) for at in range(4)), 4)
    turns = []
    while taken := fetcher.take(100):
        turns.append({place: offsets(taken, place) for place in taken if taken[place].records})
    assert turns == [{HERE: [0, 1]}, {HERE: [2, 3]}, {THERE: [0, 1]}, {THERE: [2, 3]}]


def test_a_turn_over_processed_batches_inflates_no_more_than_one_over_others(fetcher: Fetcher) -> None:
    fetcher.limit = PROCESSED
    answer(fetcher, HERE, b"".join(batch(at, 1, BATCH_BYTES // 2) for at in range(3)), 3)
    assert [offsets(fetcher.take(100)), offsets(fetcher.take(100))] == [[0, 1], [2]]


def test_a_batch_with_too_many_headers_is_refused(fetcher: Fetcher) -> None:
    body = zstd_encode(encode_records([Record(b"k", b"", [(b"", None)] * (LIMIT.most_headers + 1), 5)]))
    answer(fetcher, HERE, frame_batch(body, 1, (5, 5), Producer(), 4) + batch(1, 1), 2)
    assert offsets(fetcher.take(100)) == [(0, 0), 1]


def test_paused_partitions_keep_what_has_come(fetcher: Fetcher) -> None:
    answer(fetcher, HERE, batch(0, 2), 2)
    answer(fetcher, THERE, batch(0, 1), 1)
    fetcher.pause([HERE])
    assert list(fetcher.take(100)) == [THERE]
    fetcher.pause([HERE], paused=False)
    assert offsets(fetcher.take(100)) == [0, 1]


def test_a_batch_that_is_not_what_was_sent_is_told_and_fetched_again(fetcher: Fetcher) -> None:
    log = bytearray(batch(0, 2) + batch(2, 2))
    log[-1] ^= 1
    answer(fetcher, HERE, bytes(log), 4)
    assert offsets(fetcher.take(100)) == [0, 1]
    assert fetcher.failures() == [(HERE, 2, KafkaError.INVALID_MSG)]
    answer(fetcher, HERE, batch(2, 2), 4)
    assert offsets(fetcher.take(100)) == [2, 3]
    assert fetcher.failures() == []


@pytest.mark.parametrize(
    ("code", "reported"),
    [
        (KafkaError.OFFSET_NOT_AVAILABLE, []),
        (KafkaError.KAFKA_STORAGE_ERROR, []),
        (KafkaError.BROKER_NOT_AVAILABLE, []),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, [(HERE, 0, KafkaError.TOPIC_AUTHORIZATION_FAILED)]),
    ],
)
def test_an_error_that_passes_is_not_reported(
    fetcher: Fetcher, code: int, reported: list[tuple[Place, int, int]]
) -> None:
    class Client:
        cluster = SimpleNamespace(unauthorized_topics=set(), partitions_for_topic=lambda topic: {0, 1})
        updates = 0

        async def send(self, node: int, request: Any) -> Any:
            return SimpleNamespace(topics=[("t", [(0, code, -1, -1, -1, [], -1, b"")])])

        async def force_metadata_update(self) -> None:
            self.updates += 1

        async def close(self) -> None: ...

    fetcher._client = client = Client()
    fetcher._loop.run_until_complete(fetcher._fetch(1, {HERE: fetcher._places[HERE]}))
    assert fetcher.failures() == reported
    assert client.updates == (not reported), "another leader is looked for"
