"""Sources are read by two clients, aiokafka live and librdkafka in a replay: of the same bytes both make the
same columns, whatever the bytes are.
"""

import asyncio
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.chaos.raw_client import RawClient
from benchmarks.chaos.wire import Record
from streamapp.worker.restore.log_reader import LogReader
from streamapp.worker.transport.fetched_columns import decode, has_more
from tests.broker.workers import PATIENCE
from tests.conftest import Broker
from topics.columns.headers import UNREADABLE
from topics.fetching.fetched_records import keep_bytes

pytestmark = pytest.mark.broker

MOST_MS = (1 << 61) - 1  # the difference of two has to fit into 8 bytes
NAMES = st.one_of(
    st.binary(max_size=6),
    st.text(max_size=6).map(str.encode),
    st.sampled_from([b"", b"\0", b"content-type\0x", b"a\0\xff", b"\xff\0", b"\xed\xa0\x80"]),
    st.just("\N{REPLACEMENT CHARACTER}".encode()),
)
MAYBE = st.none() | st.just(b"") | st.binary(max_size=40)
RECORDS = st.builds(
    Record,
    key=MAYBE,
    value=MAYBE,
    headers=st.lists(st.tuples(NAMES, MAYBE), max_size=3),
    time_ms=st.one_of(
        st.sampled_from([-1, 0, -2, MOST_MS, -MOST_MS]),
        st.integers(-MOST_MS, MOST_MS),
        st.integers(1_700_000_000_000, 1_800_000_000_000),
    ),
)
BATCHES = st.tuples(st.lists(RECORDS, min_size=1, max_size=8), st.booleans())  # compressed?


@dataclass
class Log:
    """One partition, and those who write and read it."""

    topic: str
    writer: RawClient
    live: AIOKafkaConsumer
    replay: LogReader
    loop: asyncio.AbstractEventLoop

    def read_live(self, start: int, end: int) -> list[tuple[object, ...]]:
        return self.loop.run_until_complete(self._fetched(start, end))

    async def _fetched(self, start: int, end: int) -> list[tuple[object, ...]]:
        place, fetched_rows, at = TopicPartition(self.topic, 0), list[tuple[object, ...]](), start
        self.live.seek(place, start)
        fetcher = self.live._fetcher
        async with asyncio.timeout(PATIENCE):
            while at < end:
                result = fetcher._records.pop(place, None)
                if result is None:
                    await fetcher._create_fetch_waiter()
                    continue
                if not result.check_assignment(place):
                    continue  # of a position before the seek
                columns = decode(result._partition_records, None)
                assert not has_more(result._partition_records)
                at = columns.position
                fetcher._subscriptions.subscription.assignment.state_value(place).consumed_to(at)
                fetcher._notify(fetcher._wait_consume_future)
                fetched_rows += rows(columns.records)
        return fetched_rows

    def read_again(self, start: int, end: int) -> list[tuple[object, ...]]:
        self.replay.open(self.topic, 0, start)
        return [row for raw in self.replay.up_to(end) for row in rows(raw)]


def rows(columns) -> list[tuple[object, ...]]:
    headers = [tuple(pairs) for pairs in columns.headers]
    return list(zip(columns.offsets, columns.timestamps, columns.keys, columns.values, headers, strict=True))


@pytest.fixture(scope="module")
def log(broker: Broker) -> Iterator[Log]:
    topic, servers = f"two-clients-{uuid.uuid4().hex[:8]}", broker.bootstrap_servers
    config = {
        "retention.ms": "-1",
        "message.timestamp.before.max.ms": str((1 << 63) - 1),
        "message.timestamp.after.max.ms": str((1 << 63) - 1),
    }
    admin = AdminClient({"bootstrap.servers": servers})
    (made,) = admin.create_topics([NewTopic(topic, 1, 1, config=config)]).values()
    made.result(PATIENCE)
    keep_bytes()
    loop = asyncio.new_event_loop()

    async def consumer() -> AIOKafkaConsumer:
        live = AIOKafkaConsumer(
            bootstrap_servers=servers,
            isolation_level="read_committed",
            auto_offset_reset="none",
            fetch_max_wait_ms=10,
            enable_auto_commit=False,
        )
        await live.start()
        live.assign([TopicPartition(topic, 0)])
        return live

    live = loop.run_until_complete(consumer())
    kafka = {"bootstrap.servers": servers}
    try:
        with RawClient(servers, topic, 0) as writer, LogReader(kafka, topic, lambda: False) as replay:
            yield Log(topic, writer, live, replay, loop)
    finally:
        loop.run_until_complete(live.stop())
        loop.close()


def expected(record: Record, offset: int) -> tuple[object, ...]:
    """What both have to make of a record, in words of docs/records.md."""
    names = [name.split(b"\0")[0] for name, _ in record.headers]
    try:
        decoded = [name.decode() for name in names]
    except UnicodeDecodeError:
        headers: Sequence[object] = UNREADABLE
    else:
        headers = [(name, value) for name, (_, value) in zip(decoded, record.headers, strict=True)]
    return offset, record.time_ms, record.key, record.value, tuple(headers)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batches=st.lists(BATCHES, min_size=1, max_size=3))
def test_both_make_the_same_columns_of_the_same_bytes(
    log: Log, batches: list[tuple[list[Record], bool]]
) -> None:
    starts = [log.writer.write(records, compressed=compressed) for records, compressed in batches]
    rows_wanted = [
        expected(record, start + at)
        for start, (records, _) in zip(starts, batches, strict=True)
        for at, record in enumerate(records)
    ]
    end = starts[-1] + len(batches[-1][0])
    assert log.read_live(starts[0], end) == rows_wanted
    assert log.read_again(starts[0], end) == rows_wanted
    assert [expected(record, record.offset) for record in log.writer.read(starts[0], end)] == rows_wanted
