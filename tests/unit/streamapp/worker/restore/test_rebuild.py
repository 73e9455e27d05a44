"""Rebuilding a task when snapshots are damaged, resets lie between, offsets and journal disagree."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.state_version import READABLE, STATE_VERSION
from streamapp.worker.journal.entry import Entry, Manifest, Reset, Skip, Step
from streamapp.worker.journal.skips import offsets_to_skip, outstanding
from streamapp.worker.restore.errors import RestoreError
from streamapp.worker.restore.journal_replay import Replay, SourceLog
from streamapp.worker.restore.rebuild import Committed, EndMismatchError, Rebuild, Restored, RestoreRequest
from streamapp.worker.restore.restore_progress import RestoreProgress
from streamapp.worker.restore.tail import WINDOW
from streamapp.worker.snapshots.chunks import pack
from streamapp.worker.snapshots.index import index_keys
from streamapp.worker.snapshots.snapshot_table import Chunks
from streamapp.worker.task.sources import SourceName
from streamapp.worker.task.task import Task
from streamapp.worker.task.task_config import TaskConfig
from tests.positions import at, committed
from tests.topology.snapshot_store import SnapshotStore
from tests.unit.streamapp.worker.restore.test_tail import Journal

CONFIG = TaskConfig(models_auto_create=False)


class Partition:
    """A journal whose sources have no records, only positions; and a table."""

    def __init__(self) -> None:
        self.journal = Journal()
        self.store = SnapshotStore()
        self.chunks, self.forget = self.store.chunks, self.store.forget
        self.task = Task(0, CONFIG)
        self.at = 0
        self.said: list[str] = []
        self.progress = RestoreProgress(0, self.said.append)

    def commit(self) -> None:
        """Process what has no records."""
        before, self.at = self.at, self.at + 10
        self.task.advance("instances", self.at)
        step = Step("instances", self.at, ((before, self.at),))
        positions = at(instances=before), at(instances=self.at)
        self.journal.add(Entry(1, STATE_VERSION, "", *positions, (step,), CONFIG.to_json()))

    def snapshot(self) -> Manifest:
        manifest = self.store.put(self.task, at(instances=self.at), self.journal.end - 2)
        self.journal.add(manifest)
        return manifest

    def restore(self, position: int | None = None) -> Restored:
        return self._restore(committed(instances=self.at if position is None else position))

    def restore_unread(self) -> Restored:
        """Restore without offsets of the group."""
        return self._restore(committed())

    def _restore(self, offsets: Committed) -> Restored:
        def no_log(source: SourceName, position: int) -> SourceLog:
            raise AssertionError

        chunks = Chunks(self.chunks.get, lambda: list(self.chunks))
        wanted = RestoreRequest(0, at(), None, chunks, lambda: False, self.progress)
        replay = Replay(0, no_log)
        return Rebuild(wanted, CONFIG, self.journal.reader(), replay).run(offsets)


def two_snapshots() -> tuple[Partition, Manifest, Manifest]:
    partition = Partition()
    partition.commit()
    old = partition.snapshot()
    partition.commit()
    new = partition.snapshot()
    partition.commit()
    return partition, old, new


def test_the_newest_snapshot_and_what_is_behind_it() -> None:
    partition, _, new = two_snapshots()
    restored = partition.restore()
    assert restored.base.manifest == new
    assert restored.positions == at(instances=30)
    assert restored.task is not None
    assert restored.task.digest() == partition.task.digest()
    assert partition.said[-1] == "replayed 10 of 10 records"
    assert partition.progress.beginning == "snapshot"


def test_an_incarnation_is_higher_than_any_that_left_chunks() -> None:
    partition, _, _ = two_snapshots()
    assert partition.restore().incarnation == 1
    (left, _), *_ = pack(b"u", b"unit", 7, 2, b"data")[1]
    partition.chunks[left] = b""
    partition.chunks[b"torn"] = b""
    assert partition.restore().incarnation == 7
    partition.journal = Journal()
    partition.at = 0
    assert partition.restore_unread().incarnation == 7, "also where nothing is known of the partition"


def test_what_no_snapshot_names_is_garbage() -> None:
    partition, old, _ = two_snapshots()
    partition.chunks[b"torn"] = b""
    garbage = set(partition.restore().base.garbage)
    assert b"torn" in garbage
    partition.forget(old)
    assert garbage >= {key for key in garbage if key in partition.chunks}


def test_a_damaged_snapshot_is_told_and_the_one_before_is_taken(caplog: pytest.LogCaptureFixture) -> None:
    partition, old, new = two_snapshots()
    partition.forget(new)
    restored = partition.restore()
    assert restored.base.manifest == old
    assert restored.task is not None
    assert restored.task.digest() == partition.task.digest()
    assert partition.progress.beginning == "older-snapshot"
    assert "partition 0: a snapshot cannot be used: unit index of snapshot 1.2: 1 of 1" in caplog.text


def test_without_a_whole_snapshot_a_whole_journal_does() -> None:
    partition, old, new = two_snapshots()
    partition.forget(old)
    partition.forget(new)
    restored = partition.restore()
    assert partition.progress.beginning == "journal"
    assert restored.base.manifest is None
    assert restored.task is not None
    assert restored.task.digest() == partition.task.digest()


def test_of_snapshots_whose_units_are_gone_nothing_stays_and_a_whole_journal_does() -> None:
    partition, old, new = two_snapshots()
    for key in set(partition.chunks) - {*index_keys(old), *index_keys(new)}:
        del partition.chunks[key]
    restored = partition.restore()
    assert (partition.progress.beginning, restored.base.manifest) == ("journal", None)
    assert restored.task is not None
    assert restored.task.digest() == partition.task.digest()


def test_without_a_whole_snapshot_and_without_the_beginning_nothing_is_guessed() -> None:
    partition, old, new = two_snapshots()
    partition.forget(old)
    partition.forget(new)
    partition.journal.records = partition.journal.records[1:]
    partition.journal.first = partition.journal.records[0][0]
    with pytest.raises(RestoreError, match="none of the 2 snapshots .* 'grove models reset --partition 0'"):
        partition.restore()


def test_after_a_reset_a_new_task_goes_on() -> None:
    partition, *_ = two_snapshots()
    partition.journal.add(Reset(4, at(instances=30)))
    restored = partition.restore()
    assert (restored.positions, restored.incarnation) == (at(instances=30), 4)
    assert restored.base.manifest is None
    assert len(list(restored.base.garbage)) == len(partition.chunks)


@pytest.mark.parametrize(("position", "ahead"), [(20, True), (40, False)])
def test_a_journal_that_does_not_end_at_the_offsets_is_no_state(position: int, ahead: bool) -> None:
    partition, *_ = two_snapshots()
    with pytest.raises(EndMismatchError) as caught:
        partition.restore(position)
    assert caught.value.ahead is ahead


def skip(offset: int, source: SourceName = "instances", topic_id: str = "I") -> Skip:
    return Skip(1, source, offset, topic_id)


def ahead(restored: Restored) -> list[tuple[SourceName, int]]:
    """Return what a worker that restored a partition has to skip."""
    found = outstanding(
        restored.skips, restored.positions, {"controls": "C", "instances": "I", "labels": "L"}
    )
    return [(each.source, each.offset) for each in found]


def test_a_skip_is_known_until_the_partition_has_passed_the_record() -> None:
    partition = Partition()
    partition.commit()
    for each in (skip(13), skip(25), skip(13), skip(4, "labels", "L")):
        partition.journal.add(each)
    assert ahead(partition.restore()) == [("instances", 13), ("instances", 25), ("labels", 4)]
    partition.commit()
    assert ahead(partition.restore()) == [("instances", 25), ("labels", 4)]
    partition.commit()
    assert ahead(partition.restore()) == [("labels", 4)]


def test_a_skip_of_a_partition_that_never_processed_anything() -> None:
    partition = Partition()
    partition.journal.add(skip(0))
    restored = partition.restore_unread()
    assert (restored.task, ahead(restored)) == (None, [("instances", 0)])


def test_what_was_said_behind_a_snapshot_outlives_what_lies_before_it() -> None:
    partition = Partition()
    partition.journal.add(skip(35))
    partition.commit()
    partition.snapshot()
    partition.journal.add(skip(35))  # as the task manager does
    partition.commit()
    old = partition.snapshot()
    partition.journal.add(skip(35))
    partition.commit()
    new = partition.snapshot()
    partition.journal.add(skip(35))
    partition.journal.first = old.start
    partition.journal.records = [each for each in partition.journal.records if each[0] >= old.start]
    assert ahead(partition.restore()) == [("instances", 35)]
    partition.forget(new)
    assert ahead(partition.restore()) == [("instances", 35)], "the snapshot before does as well"
    assert partition.progress.beginning == "older-snapshot"


def test_a_skip_far_behind_the_end_of_the_journal_is_found_without_reading_all() -> None:
    partition = Partition()
    partition.journal.commits(3 * WINDOW)
    partition.at = 3 * WINDOW
    partition.task.advance("instances", partition.at)
    partition.journal.add(
        partition.store.put(partition.task, at(instances=partition.at), partition.journal.end)
    )
    partition.journal.add(skip(10**6))
    for _ in range(WINDOW):
        partition.commit()
    partition.journal.read = 0
    assert ahead(partition.restore()) == [("instances", 10**6)]
    assert partition.journal.read < 6 * WINDOW


def test_a_skip_of_a_topic_that_was_made_anew_is_void() -> None:
    partition = Partition()
    partition.commit()
    for each in (skip(13, topic_id="another"), skip(17, topic_id=""), skip(19)):
        partition.journal.add(each)
    assert ahead(partition.restore()) == [("instances", 17), ("instances", 19)]


def test_a_run_knows_its_own() -> None:
    skips = [skip(13), skip(15, source="labels"), skip(17)]
    assert offsets_to_skip(skips, "instances", [11, 13, 15, 20]) == {13}
    assert offsets_to_skip(skips, "controls", [13, 15]) == frozenset()


def test_what_an_older_release_wrote_is_replayed_under_its_configuration_and_specs() -> None:
    partition = Partition()
    partition.commit()
    partition.snapshot()
    for index in (0, 1):
        offset, record = partition.journal.records[index]
        assert isinstance(record, Entry | Manifest)
        partition.journal.records[index] = offset, replace(record, state_version=READABLE[0])
        partition.restore()
    task = partition.restore().task
    assert task is not None
    assert task.config == replace(CONFIG, state_version=READABLE[0])
    partition.commit()
    newer = partition.restore().task
    assert newer is not None
    assert newer.config == CONFIG
