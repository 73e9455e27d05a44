"""The check of mixed groups finds what it is there for."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from benchmarks.versions import installed
from benchmarks.versions.__main__ import broken, live, stopped
from benchmarks.versions.installed import NoReleaseError, newest_release, revision

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


def test_a_repository_without_the_release_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed, "ROOT", tmp_path)
    with pytest.raises(NoReleaseError, match=r"v0\.1\.0 is not in this repository"):
        newest_release()


def test_a_release_has_its_commit_without_tags(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed, "ROOT", tmp_path)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@localhost"]
    for command in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "first"]):
        subprocess.run([*git, *command], cwd=tmp_path, check=True)
    monkeypatch.setattr(installed, "RELEASES", {"v7": "HEAD"})
    untagged = revision("v7")
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "second"], cwd=tmp_path, check=True)
    subprocess.run([*git, "tag", "v6", untagged], cwd=tmp_path, check=True)
    assert revision("v6") == untagged != revision("v7")
    with pytest.raises(NoReleaseError, match="v5"):
        revision("v5")
