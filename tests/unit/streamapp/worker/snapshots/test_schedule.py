"""When a snapshot is due."""

from streamapp.worker.snapshots.schedule import REST, SnapshotLimits, SnapshotSchedule


def schedule() -> SnapshotSchedule:
    return SnapshotSchedule(SnapshotLimits(replay_seconds=3.0, replay_bytes=1000, interval=60.0))


def test_nothing_is_due_of_a_partition_that_has_not_changed() -> None:
    assert not schedule().is_due(1e9)


def test_computing_time_that_a_restore_would_need() -> None:
    s = schedule()
    s.note(2.9, 1, 0.0)
    assert not s.is_due(1.0)
    s.note(0.1, 1, 1.0)
    assert s.is_due(1.0)
    s.cut()
    assert not s.is_due(1e9)


def test_bytes_that_a_restore_would_read() -> None:
    s = schedule()
    s.note(0.0, 1000, 0.0)
    assert s.is_due(0.0)


def test_a_partition_that_is_idle_since_it_changed() -> None:
    s = schedule()
    s.note(0.0, 1, 5.0)
    assert not s.is_due(64.9)
    assert s.is_due(65.0)


def test_a_costly_snapshot_is_not_followed_by_another_one_at_once() -> None:
    s = schedule()
    s.written(2.0, now=100.0)
    s.note(10.0, 1, 100.0)
    assert not s.is_due(100.0 + 2 * REST - 0.1)
    assert s.is_due(100.0 + 2 * REST)


def test_changes_are_unsaved_until_a_snapshot_with_them_is_complete() -> None:
    s = schedule()
    assert s.unsaved_since is None
    s.note(1.0, 1, now=5.0)
    s.note(1.0, 1, now=6.0)
    s.cut()
    assert s.unsaved_since == 5.0
    s.note(1.0, 1, now=7.0)  # after the cut
    assert s.unsaved_since == 5.0
    s.written(0.1, now=8.0)
    assert s.unsaved_since == 7.0
    s.cut()
    s.written(0.1, now=9.0)
    assert s.unsaved_since is None
