"""Which record can be skipped: one that is there, is not processed yet, and of a partition that can go on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from dataclasses import replace

import pytest

from core.state_version import STATE_VERSION
from streamapp.tools.dead_letters import skip as skipping
from streamapp.tools.dead_letters.skip import SkipError, Skippable, look_up
from streamapp.worker.journal.entry import Entry, Skip
from streamapp.worker.restore.errors import RestoreError
from streamapp.worker.restore.log_reader import Offset
from streamapp.worker.restore.rebuild import EndMismatchError
from streamapp.worker.task.sources import SOURCES, SourceName
from tests.positions import at
from tests.unit.streamapp.worker.restore.test_tail import Journal
from topics.columns.records import RawRecords
from topics.definitions import TopicNames

NAMES = TopicNames("grove.")
IDS = {NAMES.controls: "C", NAMES.instances: "I", NAMES.feature_values: "F", NAMES.labels: "L"}
HOLE = 63


class Kafka:
    """Logs of the sources from 10 to 100 with one hole; the group stands at 5, 60 and 7."""

    def __init__(self) -> None:
        self.at = {
            NAMES.controls: Offset(5, "C"),
            NAMES.instances: Offset(60, "I"),
            NAMES.feature_values: Offset(None, ""),
            NAMES.labels: Offset(7, "L"),
        }
        self.journal = Journal()
        self.journal.add(Entry(4, STATE_VERSION, "", at(), at(controls=5, instances=60, labels=7), ()))
        self._here = ("", 0)
        self._position = 0

    def offsets(self, topics: Iterable[str], partition: int) -> dict[str, Offset]:
        return {topic: self.at[topic] for topic in topics}

    def topic_ids(self, topics: Iterable[str]) -> dict[str, str]:
        return {topic: IDS[topic] for topic in topics}

    def of(self, topic: str, partition: int) -> Kafka:
        self._here = topic, partition
        return self

    def range(self) -> tuple[int, int]:
        return self.journal.range() if self._here[0] == NAMES.journal else (10, 100)

    def open(self, topic: str, partition: int, position: int | None = None) -> None:
        self._here, self._position = (topic, partition), position or 0
        self.journal.open(topic, partition, position)

    def to_end(self) -> Iterator[RawRecords]:
        assert self._here[0] == NAMES.journal
        return self.journal.to_end()

    def up_to(self, position: int) -> Iterator[RawRecords]:
        for offset in range(self._position, position):
            if offset != HOLE:
                topic, partition = self._here
                yield RawRecords(topic, partition, [offset], [1_000 + offset], [b"m"], [b"four"], [()])

    def look_up(self, offset: int, source: SourceName = "instances") -> Skippable:
        return look_up(self, self, NAMES, 3, source, offset)  # type: ignore[arg-type]


@pytest.mark.parametrize("offset", [60, 61, 99])
def test_one_that_is_next_or_later(offset: int) -> None:
    assert Kafka().look_up(offset) == Skippable(
        NAMES.instances,
        3,
        Skip(4, "instances", offset, "I"),
        b"m",
        4,
        1_000 + offset,
        60,
        already=False,
        committed={NAMES.controls: 5, NAMES.instances: 60, NAMES.labels: 7},
        topic_ids=IDS,
    )


@pytest.mark.parametrize(("source", "topic_id"), [("controls", "C"), ("labels", "L")])
def test_of_every_source(source: SourceName, topic_id: str) -> None:
    assert Kafka().look_up(12, source).skip == Skip(4, source, 12, topic_id)


def test_of_no_source_whose_records_must_be_processed(monkeypatch: pytest.MonkeyPatch) -> None:
    row = replace(SOURCES["labels"], may_be_dead_letter=False)
    monkeypatch.setattr(skipping, "SOURCES", {**SOURCES, "labels": row})
    with pytest.raises(SkipError, match="a record of labels must be processed"):
        Kafka().look_up(12, "labels")


@pytest.mark.parametrize(
    ("offset", "source", "reason"),
    [
        (59, "instances", "grove.instances partition 3 offset 59 was processed already: 60 is the next"),
        (100, "instances", "offset 100 is not there yet: the log ends at 100"),
        (10**30, "labels", "is not there yet"),
        (8, "labels", "grove.labels partition 3 offset 8 is deleted: .* from 10 on"),
        (HOLE, "instances", f"offset {HOLE} has no record .a marker, or compaction removed it"),
    ],
)
def test_others_cannot_be_skipped(offset: int, source: SourceName, reason: str) -> None:
    with pytest.raises(SkipError, match=reason):
        Kafka().look_up(offset, source)


def test_it_is_seen_that_it_was_said_before() -> None:
    kafka = Kafka()
    kafka.journal.add(Skip(4, "instances", 70, "I"))
    kafka.journal.add(Skip(4, "instances", 71, "another topic"))
    assert [kafka.look_up(offset).already for offset in (70, 71, 72)] == [True, False, False]
    assert not kafka.look_up(70, "labels").already


def test_of_a_partition_that_never_processed_anything() -> None:
    kafka = Kafka()
    kafka.at, kafka.journal = dict.fromkeys(IDS, Offset(None, "")), Journal()
    skippable = kafka.look_up(10)
    assert (skippable.skip, skippable.next, skippable.committed) == (Skip(0, "instances", 10, "I"), 10, {})
    kafka.journal.add(skippable.skip)
    assert kafka.look_up(10).already


def test_not_of_a_partition_that_cannot_be_restored() -> None:
    kafka = Kafka()
    kafka.at[NAMES.instances] = Offset(55, "I")
    with pytest.raises(EndMismatchError):
        kafka.look_up(70)
    kafka.at[NAMES.instances] = Offset(60, "old")
    with pytest.raises(RestoreError, match=r"grove\.instances was created again"):
        kafka.look_up(70)


class Writing:
    """What `skip` does to the group and to the journal, for a record that `find` finds in `kafka`."""

    def __init__(self, kafka: Kafka, monkeypatch: pytest.MonkeyPatch) -> None:
        self.committed: list[dict[str, int]] = []
        self.written: list[Skip] = []
        self.kafka = kafka
        monkeypatch.setattr(
            skipping, "find", lambda _, group, names, number, source, offset: kafka.look_up(offset, source)
        )
        monkeypatch.setattr(skipping, "LogReader", lambda *_: nullcontext(self))
        monkeypatch.setattr(skipping, "check_group_stayed_empty", lambda *_: None)
        monkeypatch.setattr(
            skipping, "write_together", lambda _, group, topic, number, records: self.written.extend(records)
        )

    def commit(self, positions: dict[str, int], partition: int, topic_ids: dict[str, str]) -> None:
        assert positions, "librdkafka refuses to commit nothing"
        self.committed.append(positions)

    def skip(self, skippable: Skippable) -> None:
        skipping.skip({}, "group", NAMES, skippable)


def test_it_is_written_behind_the_offsets_as_they_are_then(monkeypatch: pytest.MonkeyPatch) -> None:
    kafka = Kafka()
    writing, skippable = Writing(kafka, monkeypatch), kafka.look_up(70)
    kafka.at[NAMES.labels] = Offset(9, "L")  # a worker came and went while somebody was asked
    kafka.journal.add(
        Entry(
            4,
            STATE_VERSION,
            "",
            at(controls=5, instances=60, labels=7),
            at(controls=5, instances=60, labels=9),
            (),
        )
    )
    writing.skip(skippable)
    assert writing.committed == [{NAMES.controls: 5, NAMES.instances: 60, NAMES.labels: 9}]
    assert writing.written == [Skip(4, "instances", 70, "I")]
    kafka.journal.add(skippable.skip)
    writing.skip(skippable)
    assert len(writing.written) == 1, "twice is as good as once"
    kafka.at[NAMES.instances] = Offset(71, "I")
    kafka.journal.add(
        Entry(
            4,
            STATE_VERSION,
            "",
            at(controls=5, instances=60, labels=9),
            at(controls=5, instances=71, labels=9),
            (),
        )
    )
    with pytest.raises(SkipError, match="was processed already"):
        writing.skip(skippable)


def test_it_is_written_for_a_partition_that_has_committed_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    kafka = Kafka()
    kafka.at, kafka.journal = dict.fromkeys(IDS, Offset(None, "")), Journal()
    writing = Writing(kafka, monkeypatch)
    writing.skip(kafka.look_up(10))
    assert (writing.committed, writing.written) == ([], [Skip(0, "instances", 10, "I")])


def test_it_is_not_written_for_another_record(monkeypatch: pytest.MonkeyPatch) -> None:
    kafka = Kafka()
    writing, skippable = (
        Writing(kafka, monkeypatch),
        replace(kafka.look_up(70), skip=Skip(4, "instances", 70, "before")),
    )
    with pytest.raises(SkipError, match=r"grove\.instances was created again since"):
        writing.skip(skippable)
    assert writing.written == []
