"""A record that an operator has skipped: a dead letter, and no trace in the state, live and replayed."""

from __future__ import annotations

from typing import Any

import numpy as np
import orjson
import pytest

from streamapp.worker.journal.entry import Entry, Step, decode, encode
from streamapp.worker.journal.ledger import step_of
from streamapp.worker.restore.journal_replay import Replay
from streamapp.worker.task.error_isolation import ProcessingError
from streamapp.worker.task.sources import SourceName
from streamapp.worker.task.task import Task, TaskRun
from tests.topology.logged import Logged
from tests.topology.partition import ALWAYS, NOW, PARTITION, Record, config, instance, label
from tests.topology.test_careful import POISON, rows, spec
from topics.codecs import encode_instances
from topics.columns.records import Features


class Skipping(Logged):
    """A partition with logs and a journal, in which records are to be skipped."""

    def __init__(self, *to_skip: tuple[SourceName, int], given: Any = None) -> None:
        super().__init__(given or config(ALWAYS))
        self.to_skip.update(to_skip)

    def replayed(self, piece: int = 1000) -> Task:
        """Replay all of the journal, of which a replay knows the steps and no skip."""
        replay = Replay(PARTITION, self.reader(piece))
        for entry in self.ledger.cut():
            read = decode(encode(entry))
            assert isinstance(read, Entry)
            replay.apply(read)
        assert replay.task is not None
        return replay.task

    def without(self, *missing: tuple[SourceName, int]) -> Task:
        """Return a task that went through the same logs of one source, which never had some records."""
        other = Logged(self.task.config)
        for source, logged in self.logs.items():
            for raw in logged:
                for at, offset in enumerate(raw.offsets):
                    other._offsets[source] = offset
                    if (source, offset) not in missing:
                        time = raw.timestamps[at] - NOW
                        other.feed(Record(source, raw.keys[at], raw.values[at], time, raw.headers[at]))
                other.task.advance(source, raw.offsets[-1] + 1)
        return other.task


def labelled(n: int) -> list[dict[str, Any]]:
    return [{"id": f"i{i}", "features": {"x": i % 7}, "label": "ab"[i % 7 > 3]} for i in range(n)]


@pytest.mark.parametrize(
    "at",
    [(0,), (7,), (11,), (3, 8), (4, 5), (0, 11), tuple(range(12))],
    ids=["begin", "middle", "end", "two", "neighbours", "both ends", "all"],
)
def test_in_a_run_it_is_a_dead_letter_and_the_others_are_processed(at: tuple[int, ...]) -> None:
    skips: list[tuple[SourceName, int]] = [("instances", offset) for offset in at]
    partition = Skipping(*skips)
    effects = partition.instances(*labelled(12))
    assert [letter.reason for letter in partition.dead_letters] == ["skipped"] * len(at)
    assert [letter.record for letter in effects.dead_letters] == list(at)
    assert [answer["id"] for answer in partition.predictions] == [f"i{i}" for i in range(12) if i not in at]
    assert partition.counts["instances.dead-letter"] == len(at)
    assert partition.task.next == {"instances": 12}
    assert partition.replayed().digest() == partition.task.digest()
    assert partition.without(*skips).digest() == partition.task.digest()


def test_the_dead_letter_is_the_untouched_record_and_says_who_decided() -> None:
    partition = Skipping(("instances", 1))
    headers = (("mine", b"1"),)
    partition.feed(
        *(Record("instances", b"m", value, 5, headers) for value in (b'{"features":{"x":1}}', b"any\xff"))
    )
    (letter,) = partition.dead_letters
    header_of = dict(letter.headers)
    assert (letter.key, letter.value, letter.timestamp) == (b"m", b"any\xff", NOW + 5)
    assert (header_of["mine"], header_of["grove-dlq-reason"]) == (b"1", b"skipped")
    assert header_of["__streams.errors.offset"] == b"1"
    assert header_of["__streams.errors.message"] == b"an operator skipped it (grove dlq skip)"
    assert header_of["__streams.errors.exception"] == b"SkippedRecord"
    (notice,) = partition.notices
    assert (notice.level, notice.offset, notice.model) == ("warning", 1, "m")


def test_it_is_not_looked_at_and_the_partition_goes_on(explosive: str) -> None:
    documents = rows(30)
    poisoned = [*documents[:17], POISON, *documents[17:]]
    with pytest.raises(ProcessingError, match="'grove dlq skip 3:17' makes this record a dead letter"):
        Skipping(given=config(spec(explosive))).instances(*poisoned)
    partition = Skipping(("instances", 17), given=config(spec(explosive)))
    partition.instances(*poisoned)
    assert len(partition.dead_letters) == 1
    assert partition.replayed(3).digest() == partition.task.digest()
    assert partition.without(("instances", 17)).digest() == partition.task.digest()


def test_with_the_other_handler_what_fails_behind_it_is_put_aside_too(explosive: str) -> None:
    given = config(spec(explosive), processing_exception_handler="dead-letter")
    partition = Skipping(("instances", 4), given=given)
    partition.instances(*rows(8), POISON, *rows(8, 8))
    assert [letter.reason for letter in partition.dead_letters] == ["skipped", "processing-error"]
    assert partition.counts["instances.dead-letter"] == 2
    assert partition.replayed(3).digest() == partition.task.digest()
    assert partition.without(("instances", 4), ("instances", 8)).digest() == partition.task.digest()


def test_what_fails_behind_it_is_named_with_its_own_offset(explosive: str) -> None:
    partition = Skipping(("labels", 0), given=config(spec(explosive)))
    partition.instances(*rows(8))
    with pytest.raises(ProcessingError, match="offset=2 .*'grove dlq skip 3:2 --source labels' makes"):
        partition.labels(
            {"id": "i0", "label": "a"}, {"id": "i0", "label": "a"}, {"id": "i3", "label": "b", "weight": 1.5}
        )


def test_a_label_that_is_skipped_leaves_its_instance_waiting() -> None:
    partition = Skipping(("labels", 1))
    partition.instances(*({"id": f"i{i}", "features": {"x": i}} for i in range(3)))
    partition.labels(*({"id": f"i{i}", "label": "a"} for i in range(3)))
    assert partition.counts["labels.learned"] == 2
    assert partition.task.pending.waiting == 1
    assert partition.replayed(1).digest() == partition.task.digest()
    partition.labels({"id": "i1", "label": "b"})
    assert partition.counts["labels.learned"] == 3


@pytest.mark.parametrize("at", [(0,), (1,), (0, 1)])
def test_a_control_that_is_skipped_is_not_in_the_journal(at: tuple[int, ...]) -> None:
    partition = Skipping(*(("controls", offset) for offset in at))
    commands = [
        {"command": "create", "spec": {"query": "never"}},
        {"command": "freeze"},
        {"command": "reset"},
    ]
    partition.feed(*(Record("controls", b"m", orjson.dumps(command), 0) for command in commands))
    assert [letter.reason for letter in partition.dead_letters][: len(at)] == ["skipped"] * len(at)
    skipped = [step.records for step in partition.ledger._steps]
    written = [offset for raw in skipped if raw is not None for offset in raw.offsets]
    assert written == [offset for offset in range(3) if offset not in at]
    assert partition.replayed().digest() == partition.task.digest()


def test_a_block_is_skipped_as_a_whole() -> None:
    partition = Skipping(("instances", 1))
    block = encode_instances(Features.of(("x",), np.array([[1.0], [2.0]])), format="arrow")[0]
    around = [instance({"features": {"x": i}, "id": f"b{i}"}) for i in range(2)]
    partition.feed(around[0], Record("instances", b"m", block), around[1])
    (letter,) = partition.dead_letters
    assert letter.value == block
    assert partition.counts["instances.dead-letter"] == 1
    assert [answer["id"] for answer in partition.predictions] == ["b0", "b1"]
    assert partition.replayed().digest() == partition.task.digest()


def test_event_time_does_not_see_it() -> None:
    partition = Skipping(("instances", 1))
    partition.feed(*(instance({"features": {"x": 1}}, at=at) for at in (10, 90_000, 20)))
    assert partition.task.clock == NOW + 20
    assert partition.replayed().digest() == partition.task.digest()


def test_the_position_behind_a_gap_in_the_log_is_kept() -> None:
    partition = Skipping(("labels", 1))
    raw = partition._raw("labels", [label({"id": "a", "label": "b"}), label({"id": "b", "label": "b"})])
    effects, _ = partition.process(TaskRun("labels", raw, position=29, skipped=frozenset([1])))
    assert partition.task.next == {"labels": 29}
    assert step_of("labels", raw, 29, effects) == Step("labels", 29, skipped=((1, 2),), count=2)
