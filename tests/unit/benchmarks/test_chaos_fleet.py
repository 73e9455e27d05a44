"""The fleet of the chaos program: a restore is waited for while it goes on, and no longer."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks.chaos import fleet as module
from benchmarks.chaos.fleet import ChaosError, Fleet


def fleet_of(tmp_path: Path, says: list[str]) -> tuple[Fleet, list[str]]:
    """Return a fleet of one worker that says this of its partitions, and the last of it again and again."""
    asked: list[str] = []

    def readiness() -> str:
        asked.append(says[min(len(asked), len(says) - 1)])
        return asked[-1]

    worker: Any = SimpleNamespace(
        start=lambda: None,
        is_ready=lambda: asked[-1:] == ["live"],
        readiness=readiness,
        log="what it did",
    )
    fleet = Fleet({}, tmp_path, 0, [])
    fleet.workers = [worker]
    return fleet, asked


def test_a_long_restore_is_waited_for_while_it_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOOK_S", 0.01)
    monkeypatch.setattr(module, "READY_S", 0.1)
    steps = [f"replayed {n} of 60" for n in range(60)]
    fleet, asked = fleet_of(tmp_path, [*steps, "live"])
    fleet.wait_until_ready()
    assert asked == [*steps, "live"], "it took several times what it may stand still"


def test_one_that_stands_still_is_told_with_what_it_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOOK_S", 0.01)
    monkeypatch.setattr(module, "READY_S", 0.1)
    fleet, _ = fleet_of(tmp_path, ["waits"])
    with pytest.raises(ChaosError, match=r"without a change: \['waits'\] what it did"):
        fleet.wait_until_ready()


def test_a_group_that_never_settles_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOOK_S", 0.0)
    monkeypatch.setattr(module, "READY_MOST_S", 0.2)
    fleet, _ = fleet_of(tmp_path, [str(n) for n in range(1_000_000)])
    with pytest.raises(ChaosError, match="not ready after"):
        fleet.wait_until_ready()
