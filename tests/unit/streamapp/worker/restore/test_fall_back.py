"""A partition that goes on from its newest whole snapshot, because its journal cannot be replayed."""

from __future__ import annotations

import pytest

from streamapp.tools.offline.errors import OfflineError
from streamapp.worker.journal.entry import Manifest
from streamapp.worker.restore.errors import RestoreError
from streamapp.worker.restore.fall_back import newest_whole, restarted_from
from streamapp.worker.restore.journal_replay import Replay, SourceLog
from streamapp.worker.restore.rebuild import Rebuild, Restored, RestoreRequest
from streamapp.worker.restore.reset import ResetError
from streamapp.worker.restore.restore_progress import RestoreProgress
from streamapp.worker.snapshots.snapshot_table import Chunks
from streamapp.worker.task.sources import Positions, SourceName
from streamapp.worker.task.task import Task
from tests.positions import at
from tests.topology.partition import ALWAYS, PARTITION, config
from tests.unit.streamapp.tools.offline.archive import Archive


def grown() -> tuple[Archive, list[Manifest]]:
    """Return a partition with two snapshots, and something learned after each."""
    archive, manifests = Archive(config(ALWAYS), keeps_digests=True), []
    for n in range(90):
        archive.instances({"id": str(n), "features": {"x": n % 7}, "label": "ab"[n % 7 > 3]})
        if n in (29, 59):
            manifests.append(archive.snapshot())
            archive.journal.add(manifests[-1])
    archive.commit()
    return archive, manifests


def restored(archive: Archive, committed: Positions) -> Restored:
    """Restore as a worker does; the logs are gone."""

    def no_log(source: SourceName, position: int) -> SourceLog:
        raise AssertionError

    chunks = Chunks(archive.chunks.get, lambda: list(archive.chunks))
    wanted = RestoreRequest(PARTITION, at(), None, chunks, lambda: False, RestoreProgress(PARTITION))
    return Rebuild(wanted, config(), archive.journal.reader(), Replay(PARTITION, no_log)).run(committed)


def models(task: Task) -> dict[str, bytes]:
    return {key: task.models.cache.model(slot).snapshot() for key, slot in task.models.keys.names()}


@pytest.mark.parametrize("damaged", [False, True])
def test_it_goes_on_where_it_stood_with_what_it_had_learned_at_the_snapshot(damaged: bool) -> None:
    archive, manifests = grown()
    if damaged:
        archive.store.forget(manifests[1])
    newest = newest_whole(archive.journal.reader(), archive.chunks.get, PARTITION)
    assert newest == manifests[0 if damaged else 1]
    then = archive.travel().to_record(newest.positions["instances"])
    positions = archive.commit()
    for record in restarted_from(newest, 7, positions, archive.journal.end):
        archive.journal.add(record)
    found = restored(archive, positions)
    assert found.task is not None
    assert models(found.task) == models(then.task)
    assert (found.positions, found.incarnation, found.records) == (positions, 7, 0)


def test_what_is_processed_afterwards_is_replayed_from_there() -> None:
    archive, _ = grown()
    newest = newest_whole(archive.journal.reader(), archive.chunks.get, PARTITION)
    positions = archive.commit()
    for record in restarted_from(newest, 7, positions, archive.journal.end):
        archive.journal.add(record)
    task = restored(archive, positions).task
    assert task is not None
    archive.task = task
    archive.instances({"id": "later", "features": {"x": 1}, "label": "a"})
    arrived = archive.travel().to_committed(archive.commit())
    assert arrived is not None
    assert arrived.records == 1
    assert models(arrived.task) == models(archive.task)


def test_if_what_it_fell_back_to_is_damaged_later_it_stops_and_does_not_begin_with_new_models() -> None:
    archive, _ = grown()
    newest = newest_whole(archive.journal.reader(), archive.chunks.get, PARTITION)
    positions = archive.commit()
    for record in restarted_from(newest, 7, positions, archive.journal.end):
        archive.journal.add(record)
    archive.store.forget(newest)
    with pytest.raises(RestoreError, match="'grove models restore' let it go on from is not whole here"):
        restored(archive, positions)


def test_nor_is_it_explained_with_new_models_then() -> None:
    archive, _ = grown()
    newest = newest_whole(archive.journal.reader(), archive.chunks.get, PARTITION)
    before = archive.commit()
    for record in restarted_from(newest, 7, before, archive.journal.end):
        archive.journal.add(record)
    task = restored(archive, before).task
    assert task is not None
    archive.task = task
    for n in range(90, 100):
        archive.instances({"id": str(n), "features": {"x": 1}, "label": "a"})
    after = archive.commit()
    assert archive.travel().to_record(95).task.digest() == archive.digests[95]
    with pytest.raises(OfflineError, match=f"was not processed yet; .* from {before['instances']} to 99$"):
        archive.travel().to_record(100)
    archive.store.forget(newest)
    not_whole = "'grove models restore' let it go on from is not whole"
    with pytest.raises(OfflineError, match=not_whole):
        archive.travel().to_record(95)
    with pytest.raises(OfflineError, match=not_whole):
        archive.travel().to_committed(after)
    with pytest.raises(OfflineError, match="was not processed yet; .* no snapshot is whole"):
        archive.travel().to_record(100)


def test_without_a_whole_snapshot_nothing_is_guessed() -> None:
    archive, _ = grown()
    archive.chunks.clear()
    with pytest.raises(
        ResetError, match=r"no whole snapshot \(unit index .* 'grove models reset --partition 3'"
    ):
        newest_whole(archive.journal.reader(), archive.chunks.get, PARTITION)


def test_what_was_given_up_by_a_reset_does_not_come_back() -> None:
    archive, _ = grown()
    archive.reset()
    with pytest.raises(ResetError, match="partition 3 has no whole snapshot; "):
        newest_whole(archive.journal.reader(), archive.chunks.get, PARTITION)
