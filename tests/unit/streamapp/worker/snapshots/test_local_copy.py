"""The local copy of a partition on real RocksDB: one that is damaged or gone is replaced by an empty one."""

import asyncio
import logging
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streamapp.errors import LocalCopyError
from streamapp.worker.snapshots import local_copy
from streamapp.worker.snapshots.local_copy import OFFSET_KEY, LocalCopy, UncachedOptions
from streamapp.worker.snapshots.snapshot_table import OPTIONS
from tests.unit.streamapp.worker.snapshots.copies import Copies

MIB = 1 << 20


def opened(directory: Path) -> LocalCopy:
    options = UncachedOptions(**{"block_cache_size": 0, **OPTIONS})  # type: ignore[arg-type]
    copy = LocalCopy(0, directory / "tables" / "snapshots-0.db", directory, options)
    copy.ensure()
    return copy


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """The folder of a copy that has values and an offset."""
    copy = opened(tmp_path)
    copy.apply(copy.opened, [(b"%d" % number, bytes(range(256)) * 8) for number in range(100)], 7)
    copy.close()
    return tmp_path / "tables" / "snapshots-0.db"


def test_the_memory_of_a_partition_stays_within_its_bounds_and_there_is_no_log(tmp_path: Path) -> None:
    """A worker has such a copy for each of its partitions, and for each that it is a standby of."""
    copy = opened(tmp_path)
    most = 0
    for start in range(0, 800, 200):  # 24 MiB in parts of snapshots, each replaced eight times
        copy.write(
            [(b"%d" % (number % 100), bytes(range(256)) * 120) for number in range(start, start + 200)]
        )
        most = max(most, copy.db.property_int_value("rocksdb.cur-size-all-mem-tables"))
    copy.close()
    assert most <= 4 * MIB + MIB // 2
    assert sum(file.stat().st_size for file in (tmp_path / "tables").rglob("*.log")) == 0


def test_reports_of_rocksdb_have_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_copy, "REPORT_BYTES", 32 << 10)
    copy = opened(tmp_path)
    for number in range(100):
        copy.write([(b"%d" % number, b"value")])
        copy.flush()
    copy.close()
    sizes = [file.stat().st_size for file in (tmp_path / "tables").rglob("LOG*")]
    assert len(sizes) == 2
    assert sum(sizes) < 3 * 32 << 10


def test_reads_of_a_restore_leave_nothing_in_memory(tmp_path: Path) -> None:
    """A cache would keep blocks of tables that are deleted since: a worker would grow with each restore."""
    copy = opened(tmp_path)
    for restore in range(3):
        copy.write([(b"%d.%d" % (restore, number), bytes(range(256)) * 8) for number in range(100)])
        copy.write([(b"%d.%d" % (restore - 1, number), None) for number in range(100)])
        copy.db.flush()
        assert len(list(copy.db.items())) == 100
        assert all(len(copy.db.get(b"%d.%d" % (restore, number))) == 2048 for number in range(100))
    assert not copy.db.property_int_value("rocksdb.block-cache-usage")  # None: there is no cache


def test_values_in_memory_when_a_process_dies_are_read_again(tmp_path: Path) -> None:
    """Their offset is in memory, too; so the copy never has a later offset than values."""
    script = textwrap.dedent("""
        import os, sys
        from pathlib import Path
        from tests.unit.streamapp.worker.snapshots.test_local_copy import opened

        copy = opened(Path(sys.argv[1]))
        copy.apply(copy.opened, [(b"a", b"1")], 0)
        copy.note(copy.write([(b"b", b"2")]), [1])
        copy.flush()
        copy.note(copy.write([(b"c", b"3")]), [2])
        os._exit(0)
    """)
    subprocess.run([sys.executable, "-c", script, tmp_path], check=True)
    copy = opened(tmp_path)
    assert (copy.persisted, dict(copy.db.items()).keys() - {OFFSET_KEY}) == (1, {b"a", b"b"})


def flip(file: Path, at: slice) -> None:
    content = bytearray(file.read_bytes())
    content[at] = bytes(byte ^ 0xFF for byte in content[at])
    file.write_bytes(content)


@pytest.mark.parametrize(("pattern", "at"), [("CURRENT", slice(None)), ("MANIFEST-*", slice(20, 60))])
def test_a_copy_that_cannot_be_opened_is_deleted(
    tmp_path: Path, written: Path, pattern: str, at: slice, caplog: pytest.LogCaptureFixture
) -> None:
    (file,) = written.glob(pattern)
    flip(file, at)
    with caplog.at_level(logging.WARNING):
        copy = opened(tmp_path)
    assert copy.persisted is None, "so the topic is read from its beginning"
    assert f"partition 0: the copy of the snapshot table in {written} is damaged (Corruption" in caplog.text
    copy.apply(copy.opened, [(b"k", b"v")], 9)
    copy.close()
    assert opened(tmp_path).persisted == 9


class FullDisk(UncachedOptions):
    """Options with which no copy can be created; they stand for a disk that fills between two openings."""

    def open(self, path: Path, *, read_only: bool = False) -> Any:
        if path.exists():
            return super().open(path, read_only=read_only)
        message = "IO error: No space left on device"
        raise Exception(message)


def test_a_damaged_copy_that_cannot_be_made_anew_is_named(tmp_path: Path, written: Path) -> None:
    (file,) = written.glob("CURRENT")
    flip(file, slice(None))
    options = FullDisk(**{"block_cache_size": 0, **OPTIONS})  # type: ignore[arg-type]
    copy = LocalCopy(0, written, tmp_path, options)
    with pytest.raises(LocalCopyError, match=r"cannot be written \(IO error: No space left.*make room"):
        copy.ensure()
    assert "No space left on device" in copy.failure
    assert opened(tmp_path).persisted is None


def test_a_copy_whose_values_are_damaged_is_deleted_at_the_next_start(tmp_path: Path) -> None:
    async def story() -> None:
        copies = Copies(tmp_path)
        copies.topic[0] = [(b"%d" % number, bytes(range(256)) * 8) for number in range(100)]
        await copies.assign(0)
        copies.copy().db.flush()
        (file,) = copies.path(0).glob("*.sst")
        await copies.store.stop()
        flip(file, slice(10, 400))
        again = Copies(tmp_path)
        again.topic = copies.topic
        await again.assign(0)
        with pytest.raises(LocalCopyError, match=r"is damaged \(Corruption.*next start deletes it"):
            [again.table.chunks(0).get(key) for key, _ in copies.topic[0]]
        await again.store.stop()
        last = Copies(tmp_path)
        last.topic = copies.topic
        await last.assign(0)
        assert last.values() == dict(copies.topic[0])
        await last.store.stop()

    asyncio.run(story())


class Refusing:
    """A database that does not take any value; it stands for RocksDB after an error in the background."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def write(self, batch: Any) -> None:
        raise Exception(self._reason)

    def close(self) -> None:
        pass


REFUSALS = [
    ("IO error: No space left on device", "cannot be written", True),
    ("Corruption: block checksum mismatch", "is damaged", False),
]


@pytest.mark.parametrize(("reason", "words", "remains"), REFUSALS)
def test_a_write_that_fails_is_named_and_only_a_damaged_copy_goes(
    tmp_path: Path, written: Path, reason: str, words: str, remains: bool
) -> None:
    copy = opened(tmp_path)
    copy.db.close()
    copy.db = Refusing(reason)
    with pytest.raises(LocalCopyError, match=words):
        copy.write([(b"k", b"v")])
    copy.close()
    copy.ensure()
    assert (copy.persisted == 7) is remains


@pytest.mark.parametrize(("reason", "words", "remains"), REFUSALS)
def test_a_copy_that_fails_takes_no_later_records_until_it_is_read_from_where_it_ends(
    tmp_path: Path, written: Path, reason: str, words: str, remains: bool
) -> None:
    copy = opened(tmp_path)
    before = copy.opened
    copy.db.close()
    copy.db = Refusing(reason)
    with pytest.raises(LocalCopyError, match=words):
        copy.apply(before, [(b"8", b"missing")], 8)
    copy.apply(before, [(b"9", b"later")], 9)
    copy.ensure()
    copy.apply(before, [(b"10", b"later")], 10)
    assert copy.persisted == (7 if remains else None)
    copy.apply(copy.opened, [(b"8", b"here")], 8)
    assert copy.persisted == 8


def replace(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.mkdir()


@pytest.mark.parametrize("lose", [shutil.rmtree, replace])
def test_a_copy_that_is_gone_is_made_anew_and_reads_its_topic_from_the_beginning(
    tmp_path: Path, written: Path, lose: Callable[[Path], None]
) -> None:
    copy = opened(tmp_path)
    copy.complete(copy.opened)
    assert (copy.persisted, copy.is_whole) == (7, True)
    lose(written)
    number = copy.write([(b"k", b"v")])
    copy.note(number, [8])
    assert (copy.db.get(b"k"), copy.persisted, copy.is_whole) == (b"v", None, False)
    copy.close()
    again = opened(tmp_path)
    assert (again.db.get(b"k"), again.persisted) == (b"v", None)


def test_a_copy_is_not_made_where_the_workers_directory_is_gone(tmp_path: Path) -> None:
    """The disk may have been unmounted: the copy would fill the one below it."""
    home = tmp_path / "w"
    home.mkdir()
    copy = opened(home)
    shutil.rmtree(home)
    for _ in range(2):
        with pytest.raises(LocalCopyError, match=f"{home} is gone"):
            copy.write([(b"k", b"v")])
        with pytest.raises(LocalCopyError, match=f"{home} is gone"):
            copy.ensure()
    assert f"{home} is gone" in copy.failure
    assert not home.exists()
    home.mkdir()
    copy.write([(b"k", b"v")])
    assert (copy.db.get(b"k"), copy.failure) == (b"v", "")
