"""How far a table says that it has its changelog."""

from types import SimpleNamespace
from typing import Any

import faust
from faust.types import TP

from streamapp.snapshots.table import add_table


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
