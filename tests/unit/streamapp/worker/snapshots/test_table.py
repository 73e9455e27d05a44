"""How far a table says that it has its changelog, and how long it is held."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import faust
import pytest
import rocksdict
from faust.types import TP

from streamapp.worker.snapshots.snapshot_table import ClosedError, SnapshotTable, add_table


class Offsets:
    """The offset that RocksDB would keep."""

    def __init__(self, known: int | None) -> None:
        self.known = known
        self._dbs = {0: "open"}

    def persisted_offset(self, _tp: TP) -> int | None:
        return self.known

    def set_persisted_offset(self, _tp: TP, offset: int) -> None:
        self.known = offset


def after(known: int | None, *acknowledged: int) -> int | None:
    app = faust.App("test", store="memory://", autodiscover=False)
    table: Any = add_table(app, "t.snapshots")
    table._data = offsets = Offsets(known)
    for offset in acknowledged:
        written = SimpleNamespace(topic_partition=TP("t.snapshots", 0), offset=offset)
        table._on_changelog_sent(SimpleNamespace(result=lambda written=written: written))
    return offsets.known


def test_its_own_writes_one_after_the_other_count() -> None:
    assert after(None, 0, 1, 2) == 2
    assert after(7, 8, 9) == 9


def test_behind_a_write_of_another_worker_everything_is_to_be_read_again() -> None:
    assert after(7, 8, 10, 11) == 8
    assert after(None, 3) is None


def test_chunks_that_are_closed_let_go_of_rocksdb_and_its_lock(tmp_path: Path) -> None:
    """A restore that was abandoned may be at work for a while; the partition may come back before."""
    options = rocksdict.Options(raw_mode=True)
    dbs = {3: rocksdict.Rdict(str(tmp_path / "db"), options)}
    data = SimpleNamespace(_db_for_partition=dbs.__getitem__, offset_key=b"o")
    table = SnapshotTable(SimpleNamespace(data=data))
    chunks = table.chunks(3)
    dbs[3][b"k"], dbs[3][b"o"] = b"v", b"7"
    assert (chunks.get(b"k"), chunks.get(b"none"), list(chunks.keys())) == (b"v", None, [b"k"])
    chunks.close()
    del dbs[3]  # as Faust closes it
    again = rocksdict.Rdict(str(tmp_path / "db"), options)
    assert again[b"k"] == b"v"
    for asks in (chunks.keys, lambda: chunks.get(b"k")):
        with pytest.raises(ClosedError):
            asks()
