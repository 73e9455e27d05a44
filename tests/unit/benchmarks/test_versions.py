"""The check of mixed groups finds what it is there for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.versions import installed
from benchmarks.versions.__main__ import broken, live, stopped
from benchmarks.versions.installed import NoReleaseError, newest_tag

SOUND: dict[str, Any] = {
    "guarantee": "exactly_once",
    **dict.fromkeys(
        ("lost", "invented", "disordered", "labels_unasked", "not_learned", "learned_twice", "doubled"), 0
    ),
    "state_equal": True,
    "new_word": {"partition": 3, "stopped": [3]},
    "workers_that_ended": {},
}
READINESS = """
[+]assigned ok
[+]partition-0 ok: live
[-]partition-3 failed: stopped: partition 3 cannot be restored: its journal has state version 10
[+]partition-12 ok: live
"""


class Told:
    """A worker that reports the state of its partitions."""

    def readiness(self) -> str:
        return READINESS


def test_partitions_are_read_from_a_page_of_readiness() -> None:
    told: Any = Told()
    assert live(told) == {0, 12}
    assert stopped(told) == {3: "partition 3 cannot be restored: its journal has state version 10"}


@pytest.mark.parametrize(
    ("change", "flaw"),
    [
        ({}, None),
        ({"doubled": 1}, "doubled"),
        ({"state_equal": False}, "state_equal"),
        ({"new_word": {"partition": 3, "stopped": []}}, "stopped"),
        ({"new_word": {"partition": 3, "stopped": [3, 4]}}, "stopped"),
        ({"workers_that_ended": {"chaos-0": [1]}}, "workers_that_ended"),
    ],
)
def test_a_report_is_wrong_if_a_promise_is_broken(change: dict[str, Any], flaw: str | None) -> None:
    assert set(broken(SOUND | change)) == ({flaw} if flaw else set())


def test_a_checkout_without_tags_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed, "ROOT", tmp_path)
    with pytest.raises(NoReleaseError, match="no git checkout"):
        newest_tag()
