"""Rebuilding a task when snapshots are damaged, resets lie between, offsets and journal disagree."""

from __future__ import annotations

import pytest

from core.snapshot import STATE_VERSION
from streamapp.journal.entry import Entry, Manifest, Reset, Step
from streamapp.restore.errors import RestoreError
from streamapp.restore.progress import Progress
from streamapp.restore.rebuild import EndMismatchError, Rebuild, Restored, Wanted
from streamapp.restore.replay import Replay, SourceLog
from streamapp.snapshots.table import Chunks
from streamapp.task.config import TaskConfig
from streamapp.task.task import Source, Task
from tests.topology.shelf import Shelf
from tests.unit.streamapp.test_tail import Journal

CONFIG = TaskConfig(models_auto_create=False)


class Partition:
    """A journal whose sources have no records, only positions; and a table."""

    def __init__(self) -> None:
        self.journal = Journal()
        self.shelf = Shelf()
        self.chunks, self.forget = self.shelf.chunks, self.shelf.forget
        self.task = Task(0, CONFIG)
        self.at = 0
        self.said: list[str] = []
        self.progress = Progress(0, self.said.append)

    def commit(self) -> None:
        """Process what has no records."""
        before, self.at = self.at, self.at + 10
        self.task.move("instances", self.at)
        step = Step(1, self.at, ((before, self.at),))
        positions = (0, before, 0), (0, self.at, 0)
        self.journal.add(Entry(1, STATE_VERSION, "", *positions, (step,), CONFIG.to_json()))

    def snapshot(self) -> Manifest:
        manifest = self.shelf.put(self.task, (0, self.at, 0), self.journal.end - 2)
        self.journal.add(manifest)
        return manifest

    def restore(self, committed: int | None = None) -> Restored:
        def no_log(source: Source, position: int) -> SourceLog:
            raise AssertionError

        chunks = Chunks(self.chunks.get, lambda: list(self.chunks))
        wanted = Wanted(0, (0, 0, 0), None, chunks, lambda: False, self.progress)
        replay = Replay(0, no_log)
        at = self.at if committed is None else committed
        return Rebuild(wanted, CONFIG, self.journal.reader(), replay).run((None, at, None))


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
    assert restored.positions == (0, 30, 0)
    assert restored.task is not None
    assert restored.task.digest() == partition.task.digest()
    assert partition.said[-1] == "restoring: replayed 10 of 10 records"
    assert partition.progress.beginning == "snapshot"


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
    partition.journal.add(Reset(4, (0, 30, 0)))
    restored = partition.restore()
    assert (restored.positions, restored.incarnation) == ((0, 30, 0), 4)
    assert restored.base.manifest is None
    assert len(list(restored.base.garbage)) == len(partition.chunks)


@pytest.mark.parametrize(("committed", "ahead"), [(20, True), (40, False)])
def test_a_journal_that_does_not_end_at_the_offsets_is_no_state(committed: int, ahead: bool) -> None:
    partition, *_ = two_snapshots()
    with pytest.raises(EndMismatchError) as caught:
        partition.restore(committed)
    assert caught.value.ahead is ahead
