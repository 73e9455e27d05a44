"""Reading a log again: what the client says in the midst of it, and when silence is too long."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable
from typing import Any

import pytest
from confluent_kafka import KafkaError, TopicPartition

from streamapp.errors import NotYetError
from streamapp.worker.journal.offset_metadata import UNKNOWN, id_in, is_anew, metadata_of, partitions_in
from streamapp.worker.restore import log_reader
from streamapp.worker.restore.errors import AbandonedError, RestoreError
from streamapp.worker.restore.log_reader import SILENCE_S, LogReader, Offset
from topics.columns.records import RawRecords
from topics.fetching.message import FetchedMessage, FetchedRun


class Client:
    """A consumer that gives what it is told to."""

    def __init__(self) -> None:
        self.polls: list[list[Any]] = []
        self.offsets: list[TopicPartition] = []
        self.committed_last: list[TopicPartition] = []
        self.first = 0
        self.limit: Any = None
        self.before: Any = None
        self.unread: Any = ()

    def get_watermark_offsets(self, here: TopicPartition, timeout: float) -> tuple[int, int]:
        return self.first, 9

    def assign(self, partitions: list[TopicPartition]) -> None:
        assert [each.offset for each in partitions] == [3]

    def consume(self, most: int, seconds: float) -> list[Any]:
        return self.polls.pop(0) if self.polls else []

    def committed(self, wanted: list[TopicPartition], timeout: float) -> list[TopicPartition]:
        return self.offsets

    def commit(self, offsets: list[TopicPartition], asynchronous: bool) -> None:
        assert not asynchronous
        self.committed_last = offsets

    def next_offset(self, place: tuple[str, int]) -> int:
        return -1

    def unassign(self) -> None:
        """Nothing is fetched."""

    def close(self) -> None:
        """Nothing is open."""


class Failure:
    def __init__(self, code: int, offset: int = 9) -> None:
        self._error = KafkaError(code)
        self._offset = offset

    def error(self) -> KafkaError:
        return self._error

    def offset(self) -> int:
        return self._offset


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look at it takes a second."""
    monkeypatch.setattr(time, "monotonic", itertools.count().__next__)


@pytest.fixture
def client() -> Client:
    return Client()


@pytest.fixture
def reader(client: Client, monkeypatch: pytest.MonkeyPatch) -> LogReader:
    monkeypatch.setattr(log_reader, "BoundedConsumer", lambda properties, runs: client)
    return LogReader({"bootstrap.servers": "none:1"}, "group", lambda: False)


@pytest.mark.usefixtures("clock")
def test_a_log_that_is_silent_for_long_is_asked_again_later(reader: LogReader) -> None:
    reader.open("labels", 2, 3)
    with pytest.raises(NotYetError, match="topic labels partition 2: nothing is read, has it a leader"):
        list(reader.to_end())


@pytest.mark.usefixtures("clock")
def test_a_pause_is_no_silence(reader: LogReader, client: Client) -> None:
    end = [Failure(KafkaError._PARTITION_EOF)]
    client.polls.extend([*[[]] * int(SILENCE_S - 2), end])
    reader.open("labels", 2, 3)
    assert list(reader.to_end()) == []
    client.polls.extend([*[[]] * int(SILENCE_S - 2), end])
    assert list(reader.to_end()) == []
    assert reader.position == 9


def test_a_log_that_begins_behind_what_is_needed_has_lost_it_and_both_ways_out_are_said(
    reader: LogReader,
    client: Client,
) -> None:
    client.first = 5
    with pytest.raises(RestoreError, match="begins at offset 5, but records from 3 on are needed") as raised:
        reader.open("labels", 2, 3)
    assert "'grove models restore --partition 2'" in str(raised.value)
    assert str(raised.value).count("'grove models reset --partition 2'") == 1
    assert "grove models" not in raised.value.reason, "a command that only looks changes nothing"


def test_a_log_that_ends_before_what_was_processed_is_another_one(reader: LogReader, client: Client) -> None:
    client.polls.append([Failure(KafkaError._PARTITION_EOF)])
    reader.open("labels", 2, 3)
    with pytest.raises(RestoreError, match="ends at offset 9, but records up to 12 were processed"):
        list(reader.up_to(12))


def test_a_leader_that_does_not_serve_the_end_yet_is_asked_again(reader: LogReader, client: Client) -> None:
    """Its high watermark lags behind the log's end until its followers have fetched."""
    client.polls.append([Failure(KafkaError._PARTITION_EOF, offset=5)])
    reader.open("labels", 2, 3)
    with pytest.raises(NotYetError, match="topic labels partition 2: its end is not served yet"):
        list(reader.up_to(9))


@pytest.mark.parametrize("code", [KafkaError._TRANSPORT, KafkaError.NOT_LEADER_FOR_PARTITION])
def test_what_passes_is_waited_out(reader: LogReader, client: Client, code: int) -> None:
    client.polls.extend([[Failure(code)], [Failure(KafkaError._PARTITION_EOF)]])
    reader.open("labels", 2, 3)
    assert list(reader.to_end()) == []


@pytest.mark.parametrize("code", [KafkaError._AUTO_OFFSET_RESET, KafkaError.UNKNOWN_TOPIC_OR_PART])
def test_what_stays_is_an_error(reader: LogReader, client: Client, code: int) -> None:
    client.polls.append([Failure(code)])
    reader.open("labels", 2, 3)
    with pytest.raises(RestoreError, match="topic labels: "):
        list(reader.to_end())


def test_offsets_come_with_the_ids_of_their_topics(reader: LogReader, client: Client) -> None:
    client.offsets = [
        TopicPartition("labels", 2, -1001),
        TopicPartition("instances", 2, 7, metadata=metadata_of("abc")),
        TopicPartition("controls", 2, 0, metadata="by hand"),
    ]
    found = reader.offsets(("controls", "instances", "labels"), 2)
    assert found == {
        "controls": Offset(0, UNKNOWN),
        "instances": Offset(7, "abc"),
        "labels": Offset(None, UNKNOWN),
    }
    client.offsets[1] = TopicPartition("instances", 2, 7, metadata=metadata_of("abc", anew=True))
    assert reader.offsets(("instances",), 2) == {"instances": Offset(7, "abc", anew=True)}


@pytest.mark.parametrize("topic_id", ["xJ3m/ZmnQyWT2U8NR1BlDA", UNKNOWN])
@pytest.mark.parametrize("partitions", [None, 16])
def test_an_id_and_a_number_of_partitions_are_read_as_they_were_written(
    topic_id: str, partitions: int | None
) -> None:
    for anew in (False, True):
        written = metadata_of(topic_id, partitions, anew=anew)
        read = (id_in(written), partitions_in(written), is_anew(written))
        assert read == (topic_id, partitions, anew)


def test_a_release_that_knows_no_number_of_partitions_reads_no_id() -> None:
    assert not metadata_of("abc", 16).startswith("topic-id="), "it would take another id for the topic's"


def test_offsets_that_an_operator_commits_keep_the_number_of_partitions_of_their_topic(
    reader: LogReader,
    client: Client,
) -> None:
    client.offsets = [
        TopicPartition("instances", 2, 7, metadata=metadata_of("abc", 16)),
        TopicPartition("labels", 2, 7, metadata=metadata_of("of before", 16)),
        TopicPartition("controls", 2, 7, metadata=metadata_of("xyz")),
    ]
    topic_ids = {"instances": "abc", "labels": "new", "controls": "xyz"}
    reader.commit(dict.fromkeys(topic_ids, 9), 2, topic_ids)
    noted = {at.topic: (id_in(at.metadata), partitions_in(at.metadata)) for at in client.committed_last}
    assert noted == {"instances": ("abc", 16), "labels": ("new", None), "controls": ("xyz", None)}
    reader.commit(dict.fromkeys(topic_ids, 9), 2, topic_ids, 32)
    assert {partitions_in(at.metadata) for at in client.committed_last} == {32}


def test_a_reader_that_is_reused_knows_nothing_of_before(reader: LogReader, client: Client) -> None:
    client.polls.append([Failure(KafkaError._PARTITION_EOF)])
    reader.open("labels", 2, 3)
    assert list(reader.to_end()) == []
    reader.release()
    client.polls.append([Failure(KafkaError._RESOLVE), Failure(KafkaError._ALL_BROKERS_DOWN)])
    gone = [False]
    reader.reuse(lambda: gone[0])
    client.polls.append([Failure(KafkaError._PARTITION_EOF)])
    reader.open("labels", 2, 3)
    assert list(reader.to_end()) == []
    gone[0] = True
    with pytest.raises(AbandonedError):
        list(reader.to_end())


PLACE = ("labels", 2)


def message(offset: int) -> FetchedMessage:
    return FetchedMessage(*PLACE, offset, 10 * offset, b"k", b"%d" % offset)


def run(first: int, end: int) -> FetchedRun:
    raw = RawRecords(
        *PLACE,
        [*range(first, end)],
        [10 * offset for offset in range(first, end)],
        [b"k"] * (end - first),
        [b"%d" % offset for offset in range(first, end)],
        [()] * (end - first),
    )
    return FetchedRun(raw.spans)


def rows(records: Iterable[RawRecords]) -> list[tuple[Any, ...]]:
    columns = [(raw.offsets, raw.timestamps, raw.keys, raw.values, raw.headers) for raw in records]
    return [row for each in columns for row in zip(*each, strict=True)]


@pytest.mark.parametrize(
    "fetched",
    [
        [message(offset) for offset in range(3, 9)],
        [run(3, 9)],
        [run(3, 5), run(5, 9)],
        [run(3, 6), message(6), message(7), run(8, 9)],
    ],
    ids=["messages", "a run", "two runs", "both"],
)
def test_records_are_read_up_to_a_position_and_from_there_on_whatever_they_come_in(
    reader: LogReader, client: Client, fetched: list[Any]
) -> None:
    expected = rows([RawRecords.over(*PLACE, run(3, 9).records)])
    client.polls.append([*fetched, Failure(KafkaError._PARTITION_EOF)])
    reader.open("labels", 2, 3)
    assert rows(reader.up_to(5)) == expected[:2]
    assert reader.position == 5
    assert rows(reader.up_to(8, unread=((6, 7),))) == [expected[2], expected[4]], "offset 6 is passed over"
    assert rows(reader.up_to(9)) == expected[5:]
    assert reader.position == 9


def test_a_batch_that_was_passed_over_is_left_out_of_a_run(reader: LogReader, client: Client) -> None:
    client.polls.append([run(3, 9), Failure(KafkaError._PARTITION_EOF)])
    reader.open("labels", 2, 3)
    read = rows(reader.up_to(9, unread=((4, 6), (8, 9))))
    assert [offset for offset, *_ in read] == [3, 6, 7]
