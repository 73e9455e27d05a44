"""Parts of snapshots as their topic has them, those that were removed since or not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from streamapp.worker.restore.changelog import Changelog
from topics.columns.records import RawRecords


class Log:
    """One part that stays, one that is removed, and a record without a key, in two pieces."""

    def open(self, topic: str, partition: int, position: int | None = None) -> None:
        assert (topic, partition, position) == ("grove.snapshots", 3, None)

    def range(self) -> tuple[int, int]:
        return 0, 5

    def to_end(self) -> Iterator[RawRecords]:
        yield _raw([(b"stays", b"1"), (b"goes", b"2"), (None, b"3")])
        yield _raw([(b"goes", None), (b"never was", None)])


def _raw(records: list[tuple[bytes | None, bytes | None]]) -> RawRecords:
    n, keys, values = len(records), [key for key, _ in records], [value for _, value in records]
    return RawRecords("grove.snapshots", 3, list(range(n)), [0] * n, keys, values, [()] * n)


@pytest.mark.parametrize("removed", [True, False])
def test_what_was_removed_is_there_only_for_who_looks_back(removed: bool) -> None:
    parts = Changelog(Log(), "grove.snapshots", 3, removed=removed)
    assert parts.get(b"stays") == b"1"
    assert parts.get(b"goes") == (b"2" if removed else None)
    assert parts.get(b"never was") is None
