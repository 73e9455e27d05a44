"""How far a table says that it has its changelog, and how long it is held."""

import asyncio
from pathlib import Path

import faust
import pytest
import rocksdict

from streamapp.errors import NotYetError
from streamapp.worker.snapshots.local_copy import LocalCopy, UncachedOptions
from streamapp.worker.snapshots.snapshot_table import ClosedError, SnapshotTable, add_table
from tests.unit.streamapp.worker.snapshots.copies import Copies


def after(directory: Path, known: int | None, *acknowledged: int) -> int | None:
    copy = LocalCopy(0, directory / "db", directory, UncachedOptions())
    copy.ensure()
    if known is not None:
        copy.apply(copy.opened, [(b"k", b"v")], known)
    copy.note(copy.write([(b"other", b"v")]), acknowledged)
    copy.close()
    copy.ensure()
    return copy.persisted


def test_its_own_writes_one_after_the_other_count(tmp_path: Path) -> None:
    assert after(tmp_path, None, 0, 1, 2) == 2
    assert after(tmp_path, 7, 8, 9) == 9


def test_behind_a_write_of_another_worker_everything_is_to_be_read_again(tmp_path: Path) -> None:
    assert after(tmp_path, 7, 8, 10, 11) == 8


def test_a_first_write_after_those_of_another_worker_does_not_count(tmp_path: Path) -> None:
    assert after(tmp_path, None, 3) is None


def test_writes_to_a_copy_that_was_opened_again_do_not_count(tmp_path: Path) -> None:
    copy = LocalCopy(0, tmp_path / "db", tmp_path, UncachedOptions())
    opened = copy.write([(b"k", b"v")])
    copy.discard()
    copy.ensure()
    copy.note(opened, [0])
    assert copy.persisted is None


def test_chunks_that_are_closed_let_go_of_rocksdb_and_its_lock(tmp_path: Path) -> None:
    """A restore that was abandoned may be at work for a while; the partition may come back before."""

    async def story() -> None:
        copies = Copies(tmp_path)
        await copies.assign(3)
        chunks = copies.table.chunks(3)
        await copies.table.write(3, [(b"k", b"v")])
        assert (chunks.get(b"k"), chunks.get(b"none"), list(chunks.keys())) == (b"v", None, [b"k"])
        chunks.close()
        path = copies.path(3)
        await copies.store.stop()
        again = rocksdict.Rdict(str(path), rocksdict.Options(raw_mode=True))
        assert again[b"k"] == b"v"
        for asks in (chunks.keys, lambda: chunks.get(b"k")):
            with pytest.raises(ClosedError):
                asks()

    asyncio.run(story())


def test_a_copy_that_an_abandoned_restore_still_lists_is_opened_later(tmp_path: Path) -> None:
    """RocksDB's lock lasts as long as an iterator; the partition left and came back meanwhile."""

    async def story() -> None:
        copies = Copies(tmp_path)
        await copies.assign(0)
        await copies.table.write(0, [(b"k", b"v")])
        keys = copies.copy().db.keys()
        await copies.assign()
        await copies.assign(0)
        chunks = copies.table.chunks(0)
        for asks in (chunks.check, chunks.keys, lambda: chunks.get(b"k")):
            with pytest.raises(NotYetError, match=r"partition 0: .* is still open"):
                asks()
        del keys
        await copies.join_again()
        assert copies.values() == {b"k": b"v"}
        await copies.store.stop()

    asyncio.run(story())


def test_a_look_at_the_disk_before_the_start_does_not_make_the_store(tmp_path: Path) -> None:
    """Faust would bind it to a loop of the looking thread, and an end would wait for that loop for ever."""
    app = faust.App("test", store="rocksdb://", autodiscover=False, datadir=str(tmp_path / "topics"))
    table = add_table(app, "t.snapshots")
    assert SnapshotTable(table).failure() == ""
    assert table.store is None
