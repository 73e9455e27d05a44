"""The local copy of the snapshot table on real RocksDB: a damaged one is deleted and read again."""

import asyncio
import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import faust
import pytest
from faust.types import TP

from streamapp.errors import LocalCopyError
from streamapp.worker.snapshots.snapshot_table import SnapshotTable, add_table

PLACE = TP("t.snapshots", 0)
MIB = 1 << 20


def open_table(directory: Path) -> Any:
    app = faust.App("test", store="rocksdb://", autodiscover=False, datadir=str(directory))
    return add_table(app, PLACE.topic)


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """A directory whose copy of partition 0 has values and an offset; the folder of its files."""
    data = open_table(tmp_path).data
    db = data._db_for_partition(0)
    for number in range(100):
        db.put(b"%d" % number, bytes(range(256)) * 8)
    data.set_persisted_offset(PLACE, 7)
    db.flush()
    db.close()
    return Path(data.partition_path(0))


def test_the_memory_and_the_log_of_a_partition_stay_within_their_bounds(tmp_path: Path) -> None:
    """A worker has such a copy for each of its partitions, and for each that it is a standby of."""
    data = open_table(tmp_path).data
    db = data._db_for_partition(0)
    most = 0
    for number in range(800):  # 24 MiB in parts of snapshots, each replaced eight times
        db.put(b"%d" % (number % 100), bytes(range(256)) * 120)
        most = max(most, db.property_int_value("rocksdb.cur-size-all-mem-tables"))
    db.close()
    log = sum(file.stat().st_size for file in Path(data.partition_path(0)).glob("*.log"))
    assert 1 * MIB < most <= 4 * MIB + MIB // 2
    assert log <= 6 * MIB


def test_reads_of_a_restore_leave_nothing_in_memory(tmp_path: Path) -> None:
    """A cache would keep blocks of tables that are deleted since: a worker would grow with each restore."""
    db = open_table(tmp_path).data._db_for_partition(0)
    for restore in range(3):
        for number in range(100):
            db.put(b"%d.%d" % (restore, number), bytes(range(256)) * 8)
            db.delete(b"%d.%d" % (restore - 1, number))
        db.flush()
        assert len(list(db.items())) == 100
        assert all(len(db.get(b"%d.%d" % (restore, number))) == 2048 for number in range(100))
    assert not db.property_int_value("rocksdb.block-cache-usage")  # None: there is no cache


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
        data = open_table(tmp_path).data
        assert data.persisted_offset(PLACE) is None  # so the topic is read from its beginning
    assert f"partition 0: the copy of the snapshot table in {written} is damaged (Corruption" in caplog.text
    data.set_persisted_offset(PLACE, 9)
    assert data.persisted_offset(PLACE) == 9


def test_a_copy_whose_values_are_damaged_is_deleted_at_the_next_start(tmp_path: Path, written: Path) -> None:
    (file,) = written.glob("*.sst")
    flip(file, slice(10, 400))
    table = open_table(tmp_path)
    chunks = SnapshotTable(table).chunks(0)
    with pytest.raises(LocalCopyError, match=r"is damaged \(Corruption.*next start deletes it"):
        [chunks.get(b"%d" % number) for number in range(100)]
    chunks.close()
    table.data._dbs.pop(0).close()
    again = open_table(tmp_path).data
    assert again.persisted_offset(PLACE) is None
    assert again._db_for_partition(0).get(b"1") is None


class Refusing:
    """A database that does not take any value; it stands for RocksDB after an error in the background."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def put(self, key: bytes, value: bytes) -> None:
        raise Exception(self._reason)


@pytest.mark.parametrize(
    ("reason", "words", "remains"),
    [
        ("IO error: No space left on device", "cannot be written", True),
        ("Corruption: block checksum mismatch", "is damaged", False),
    ],
)
def test_a_write_that_fails_is_named_and_only_a_damaged_copy_goes(
    tmp_path: Path, written: Path, reason: str, words: str, remains: bool
) -> None:
    async def story() -> None:
        table = open_table(tmp_path)
        sent = []
        stands_for_faust = SimpleNamespace(data=table.data, send_changelog=lambda *item: sent.append(item))
        table.data._dbs[0] = Refusing(reason)
        with pytest.raises(LocalCopyError, match=words):
            await SnapshotTable(stands_for_faust).write(0, [(b"k", b"v")])
        assert sent == []
        table.data._dbs.clear()
        assert (table.data.persisted_offset(PLACE) == 7) is remains

    asyncio.run(story())
