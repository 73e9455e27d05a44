"""What stands in for Kafka and RocksDB in unit tests does what the real ones do: one contract for both."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from streamapp.worker.journal.entry import Reset, encode
from streamapp.worker.journal.log import JournalLog
from streamapp.worker.restore.errors import RestoreError
from streamapp.worker.restore.log_reader import LogReader
from streamapp.worker.snapshots.snapshot_table import ClosedError
from streamapp.worker.snapshots.writer_protocols import Table
from tests.conftest import Broker
from tests.positions import at
from tests.topology.logged import Log as SourceLog
from tests.unit.streamapp.worker.restore.test_tail import Journal as MemoryLog
from tests.unit.streamapp.worker.snapshots.copies import Copies
from tests.unit.streamapp.worker.snapshots.memory import MemoryJournal, MemoryTable
from topics.clients.cluster import Cluster
from topics.columns.records import RawRecords

PATIENCE = 60
Tell = Callable[[Callable[[Table], Awaitable[None]]], None]
REAL = pytest.param("real", marks=pytest.mark.broker)


# -- the table of snapshots ---------------------------------------------------------------------------------


@pytest.fixture(params=["stand-in", "real"])
def tell(request: pytest.FixtureRequest, tmp_path: Path) -> Tell:
    """Return a function that runs a story with a table that has partitions 0 and 1."""

    async def with_rocksdb(story: Callable[[Table], Awaitable[None]]) -> None:
        copies = Copies(tmp_path)
        await copies.assign(0, 1)
        await story(copies.table)
        await copies.store.stop()

    async def with_stand_in(story: Callable[[Table], Awaitable[None]]) -> None:
        await story(MemoryTable())

    told = with_stand_in if request.param == "stand-in" else with_rocksdb
    return lambda story: asyncio.run(told(story))


def test_a_table_puts_and_removes(tell: Tell) -> None:
    async def story(table: Table) -> None:
        await table.write(0, [(b"a", b"1"), (b"b", b"2")])
        await table.write(0, [(b"a", b"3"), (b"b", None), (b"never there", None)])
        await table.write(1, [(b"a", b"of another partition")])
        await table.remove(0, [b"never there either"])
        chunks = table.chunks(0)
        chunks.check()
        assert sorted(chunks.keys()) == [b"a"]
        assert (chunks.get(b"a"), chunks.get(b"b")) == (b"3", None)
        await table.remove(0, [b"a"])
        assert (list(chunks.keys()), chunks.get(b"a")) == ([], None), "what is read is what lies there now"
        assert table.failure() == ""

    tell(story)


def test_chunks_that_are_closed_give_nothing_any_more(
    tell: Tell,
) -> None:
    async def story(table: Table) -> None:
        await table.write(0, [(b"a", b"1")])
        chunks = table.chunks(0)
        chunks.close()
        for ask in (chunks.keys, lambda: chunks.get(b"a")):
            with pytest.raises(ClosedError):
                ask()
        assert table.chunks(0).get(b"a") == b"1"

    tell(story)


# -- logs ---------------------------------------------------------------------------------------------------


class RealLog:
    """A topic of its own with one partition; a record and the marker of its transaction take two offsets."""

    def __init__(self, servers: str) -> None:
        self.topic = f"stand-in-{uuid.uuid4().hex[:8]}"
        self.kafka = {"bootstrap.servers": servers}
        admin = AdminClient({**self.kafka})
        (made,) = admin.create_topics([NewTopic(self.topic, 1, 1)]).values()
        made.result(PATIENCE)
        # Answered once the new partition has a leader who knows that it is one.
        Cluster(self.kafka, PATIENCE).offsets([TopicPartition(self.topic, 0)], OffsetSpec.latest())
        self._producer = Producer({**self.kafka, "transactional.id": self.topic})
        self._producer.init_transactions(PATIENCE)
        self._reader = Consumer({**self.kafka, "group.id": self.topic, "isolation.level": "read_committed"})
        self._reader.assign([TopicPartition(self.topic, 0, 0)])

    def add(self, value: bytes) -> None:
        """Return when the marker is in the log: it may come after the end of the commit, and before it nobody
        is given the record."""
        self._producer.begin_transaction()
        self._producer.produce(self.topic, value, partition=0)
        self._producer.commit_transaction(PATIENCE)
        marker = self._reader.poll(PATIENCE)
        assert marker is not None, "the transaction has no marker yet"
        assert (marker.error(), marker.value()) == (None, value)

    def close(self) -> None:
        self._reader.close()


RECORDS = [Reset(number, at(instances=number)) for number in range(4)]


@pytest.fixture
def real_log(broker: Broker) -> Iterator[RealLog]:
    real = RealLog(broker.bootstrap_servers)
    yield real
    real.close()


CutLog = tuple[Any, str, Callable[[], object], Callable[[int], None]]


@pytest.fixture(params=["stand-in", REAL])
def log(request: pytest.FixtureRequest) -> Iterator[CutLog]:
    """Yield a log with nothing in it, its topic, what adds RECORDS, and what cuts it off before an offset."""
    if request.param == "stand-in":
        here = MemoryLog()

        def cut_off(before: int) -> None:
            here.first = before
            here.records = [record for record in here.records if record[0] >= before]

        yield here, "j", lambda: [here.add(record) for record in RECORDS], cut_off
        return
    real: RealLog = request.getfixturevalue("real_log")

    def add() -> None:
        for record in RECORDS:
            real.add(encode(record))

    with LogReader(real.kafka, real.topic, lambda: False) as reader:
        reader.of(real.topic, 0)
        yield reader, real.topic, add, lambda before: JournalLog(real.kafka, real.topic).trim(0, before)


def read(log: Any) -> list[tuple[int, bytes]]:
    return [pair for raw in log.to_end() for pair in zip(raw.offsets, raw.values, strict=True)]


def test_a_log_is_read_from_any_offset_to_its_end(log: CutLog) -> None:
    reader, topic, add, cut_off = log
    assert reader.range() == (0, 0)
    reader.open(topic, 0)
    assert read(reader) == []
    add()
    everything = [(2 * number, encode(record)) for number, record in enumerate(RECORDS)]
    assert reader.range() == (0, 8)
    for position, first in ((None, 0), (0, 0), (3, 2), (4, 2), (8, 4)):
        reader.open(topic, 0, position)
        assert read(reader) == everything[first:], position
    cut_off(3)
    assert reader.range() == (3, 8)
    reader.open(topic, 0)
    assert read(reader) == everything[2:]
    with pytest.raises(RestoreError, match="begins at offset 3, but records from 2 on are needed"):
        reader.open(topic, 0, 2)


@pytest.mark.parametrize("kind", ["stand-in", REAL])
def test_a_source_is_read_in_pieces_up_to_a_position(kind: str, request: pytest.FixtureRequest) -> None:
    values = [b"%d" % number for number in range(5)]
    offsets = [2 * number for number in range(5)]
    if kind == "stand-in":
        raw = RawRecords("t", 0, offsets, [0] * 5, [None] * 5, list(values), [()] * 5)
        check_pieces(SourceLog([raw], 2, 2))
        return
    real: RealLog = request.getfixturevalue("real_log")
    for value in values:
        real.add(value)
    with LogReader(real.kafka, real.topic, lambda: False) as reader:
        reader.open(real.topic, 0, 2)
        check_pieces(reader)


def check_pieces(log: Any) -> None:
    for position, offsets in ((3, [2]), (3, []), (7, [4, 6]), (10, [8])):
        pieces = list(log.up_to(position))
        assert [offset for raw in pieces for offset in raw.offsets] == offsets
        assert all(len(raw) for raw in pieces), "no empty pieces"


@pytest.mark.parametrize("kind", ["stand-in", REAL])
def test_a_journal_ends_behind_all_that_is_in_it_and_is_cut_off_up_to_there(
    kind: str, request: pytest.FixtureRequest
) -> None:
    if kind == "stand-in":
        memory = MemoryJournal()
        journal: Any = memory

        def add() -> None:
            memory.ends[0] = memory.ends.get(0, 0) + 2
    else:
        real: RealLog = request.getfixturevalue("real_log")
        journal = JournalLog(real.kafka, real.topic)

        def add() -> None:
            real.add(b"entry")

    assert journal.end(0) == 0
    add()
    add()
    assert journal.end(0) == 4
    journal.trim(0, 2)
    journal.trim(0, 2)
    journal.trim(0, 4)
    with pytest.raises(KafkaException):
        journal.trim(0, 5)
    assert journal.end(0) == 4
