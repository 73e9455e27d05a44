"""A batch that was refused: one dead letter, no trace in the state, and a replay that passes over it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import pytest

from streamapp.worker.journal.entry import Entry, Ranges, Step, decode, encode
from streamapp.worker.journal.ledger import step_of
from streamapp.worker.restore.errors import RestoreError
from streamapp.worker.restore.journal_replay import Replay
from streamapp.worker.task.sources import SourceName
from streamapp.worker.task.task import TaskRun
from tests.topology.logged import Logged
from tests.topology.partition import ALWAYS, PARTITION, Record, config, instance
from topics.columns.records import RawRecords
from topics.errors import Reason
from topics.fetching.refused import RefusedBatch

CREATE = b'{"command": "create", "spec": {"query": "never"}, "schema": {"attributes": [{"name": "x"}]}}'


def refused(first: int, last: int) -> RefusedBatch:
    return RefusedBatch(first, last, 17, Reason.BATCH_TOO_LARGE, "the batch becomes too large", b"\0\0head")


def run_around(partition: Logged, source: SourceName, batch: RefusedBatch, position: int) -> Step:
    """Process two records and, between them, the one that stands for a batch."""
    records = [
        instance({"features": {"x": n}, "label": "a"})
        if source == "instances"
        else Record("controls", b"m", CREATE if n == 1 else b'{"command": "freeze"}')
        for n in (1, 2)
    ]
    raw = partition._raw(source, records)
    a, b = raw.part(0, 1), raw.part(1, 2)
    raw = RawRecords(
        raw.topic,
        raw.partition,
        [0, batch.first, batch.last + 1],
        [a.timestamps[0], batch.timestamp, b.timestamps[0]],
        [a.keys[0], None, b.keys[0]],
        [a.values[0], None, b.values[0]],
        [(), (), ()],
    )
    batches = {batch.first: batch}
    effects, _ = partition.process(TaskRun(source, raw, position=position, refused=batches))
    (letter,) = [letter for letter in effects.dead_letters if letter.reason is Reason.BATCH_TOO_LARGE]
    assert (letter.origin.offset, letter.last_offset) == (batch.first, batch.last)
    assert letter.origin.value == batch.head
    assert effects.counts[f"{source}.dead-letter"] == 1
    partition.logs[source] = [raw.chosen([0, 2])]
    return step_of(source, raw, position, effects, batches)


class PassingLog:
    """The log, of which a reader has to be told what to pass over."""

    def __init__(self, raw: RawRecords, batch: RefusedBatch) -> None:
        self._raw, self._batch = raw, batch

    def up_to(self, position: int, unread: Ranges = ()) -> Iterator[RawRecords]:
        assert (position, unread) == (self._batch.last + 3, ((self._batch.first, self._batch.last + 1),))
        yield self._raw


def test_a_replay_passes_over_it_and_counts_the_others() -> None:
    partition, batch = Logged(config(ALWAYS)), refused(1, 40)
    step = run_around(partition, "instances", batch, 43)
    assert step == Step("instances", 43, count=2, unread=((1, 41),))
    partition.ledger.note(step)
    (entry,) = partition.ledger.cut()
    read = decode(encode(entry))
    assert isinstance(read, Entry)
    replay = Replay(PARTITION, lambda source, at: PassingLog(partition.logs[source][0], batch))
    replay.apply(read)
    assert replay.task is not None
    assert replay.task.digest() == partition.task.digest()
    assert partition.task.next["instances"] == 43


def test_a_log_without_its_records_is_still_noticed() -> None:
    partition, batch = Logged(config(ALWAYS)), refused(1, 40)
    partition.ledger.note(run_around(partition, "instances", batch, 43))
    (entry,) = partition.ledger.cut()
    short = partition.logs["instances"][0].part(0, 1)
    replay = Replay(PARTITION, lambda source, at: PassingLog(short, batch))
    with pytest.raises(RestoreError, match="2 records of instances .* were processed, 1 are left"):
        replay.apply(entry)


def test_the_journal_keeps_the_controls_around_it() -> None:
    partition, batch = Logged(config(ALWAYS)), refused(1, 40)
    step = run_around(partition, "controls", batch, 43)
    assert (step.unread, step.count) == ((), None)
    assert step.records is not None
    assert list(step.records.offsets) == [0, 41]


def test_steps_that_follow_each_other_are_one_with_all_its_batches() -> None:
    partition = Logged(config(ALWAYS), random.Random(1))
    partition.ledger.note(Step("instances", 5, count=5))
    partition.ledger.note(Step("instances", 9, count=1, unread=((6, 9),)))
    partition.ledger.note(Step("instances", 20, count=0, unread=((9, 15), (16, 20))))
    (entry,) = partition.ledger.cut()
    assert entry.steps == (Step("instances", 20, count=6, unread=((6, 15), (16, 20))),)
    assert replace(entry.steps[0]) == entry.steps[0]
