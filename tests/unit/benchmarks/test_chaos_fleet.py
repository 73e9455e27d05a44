"""The fleet of the chaos program: a restore is waited for while it goes on, and no longer."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgpack
import pytest

from benchmarks.chaos import fleet as module
from benchmarks.chaos import tape
from benchmarks.chaos.checker import ENTRY
from benchmarks.chaos.fleet import ChaosError, Fleet, wait_until, wait_while_it_falls
from benchmarks.chaos.reference import Reference
from benchmarks.chaos.tape import Tape
from streamapp.worker.reserved_ports import free_ports
from topics.definitions import TopicNames


def fleet_of(tmp_path: Path, says: list[str]) -> tuple[Fleet, list[str]]:
    """Return a fleet of one worker that says this of its partitions, and the last of it again and again."""
    asked: list[str] = []

    def readiness() -> str:
        asked.append(says[min(len(asked), len(says) - 1)])
        return asked[-1]

    worker: Any = SimpleNamespace(
        name="chaos-0",
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


def test_waits_print_what_they_wait_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(module, "TELL_S", 0.0)
    lags, answers = iter([2, 1, 0]), iter([False, True])
    wait_while_it_falls(lambda: next(lags), 60, lambda: "labels wait")
    wait_until(lambda: next(answers), 60, lambda: "no model\n" + "a long log\n" * 1000)
    fleet, _ = fleet_of(tmp_path, ["[+]assigned ok\n[-]partition-3 failed: restoring", "live"])
    fleet.wait_until_ready()
    lines = [line.partition(" s: ")[2] for line in capsys.readouterr().err.splitlines()]
    assert lines == [
        "labels wait (2)",
        "labels wait (1)",
        "no model",
        "chaos-0 is not ready, 1 of its checks fail",
    ]


def test_a_log_that_cannot_be_read_to_its_end_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tape, "END_S", 0.0)
    nobody_listens = f"127.0.0.1:{free_ports()}"
    left = "journal is not read to its end, next offsets by partition: {0: 0, 1: 0}"
    with Tape(nobody_listens, "journal", 2) as journal, pytest.raises(ChaosError, match=left):
        journal.stop()


def test_a_replay_prints_how_far_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(module, "TELL_S", 0.0)
    no_entry = msgpack.packb([1, ENTRY + 1])
    assert Reference(TopicNames("chaos."), {5: [no_entry, no_entry]}, {}).models() == {}
    assert "the replay of partition 5, at record 1 of 2 of its journal" in capsys.readouterr().err
