"""What the runs of benchmarks.forest_accuracy come to, and that none is made twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import forest_accuracy
from benchmarks.forest_accuracy import DATA_SETS, GENERATORS, STREAMS, Kept, open_stream, summary


def row(system: str, seed: int, accuracy: float, stream: str = "led") -> dict[str, Any]:
    kind = {"stream": stream, "learner": "arf", "members": 10, "records": 100}
    return kind | {"system": system, "seed": seed, "accuracy": accuracy}


def test_every_generator_can_be_opened() -> None:
    assert (*GENERATORS, *DATA_SETS) == STREAMS
    for name in GENERATORS:
        rows = open_stream(name, 200)
        assert (rows.name, len(rows.y)) == (name, 200)


def test_concepts_change_in_the_middle() -> None:
    rows = open_stream("sea-drift", 20_000)
    total = rows.x[:, 0] + rows.x[:, 1]
    between = (total > 8.0) & (total <= 9.5)  # of class 1 before, of class 0 after
    assert rows.y[:8000][between[:8000]].mean() > 0.8
    assert rows.y[12_000:][between[12_000:]].mean() < 0.2


def test_means_are_over_seeds_and_leads_before_moa() -> None:
    rows = [row("moa", 1, 70.0), row("moa", 2, 72.0), row("compat", 1, 70.5), row("compat", 2, 71.0)]
    (found,) = summary([*rows, row("ours", 1, 73.0)])
    assert (found["moa"], found["moa sd"], found["moa seeds"]) == (71.0, pytest.approx(1.414), 2)
    assert (found["compat ahead"], found["ours ahead"]) == (-0.25, 2.0)
    assert "river" not in found
    assert [each["stream"] for each in summary([*rows, row("moa", 1, 50.0, "rbf")])] == ["led", "rbf"]


def test_what_is_kept_is_not_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    runs: list[tuple[str, list[int]]] = []

    def right(rows: Any, learner: str, members: int, seeds: list[int]) -> list[float]:
        runs.append((learner, seeds))
        return [0.5 + seed / 100.0 for seed in seeds]

    monkeypatch.setitem(forest_accuracy.SYSTEMS, "moa", right)
    kept = tmp_path / "kept"
    given = ["--streams", "led", "--systems", "moa", "--learners", "arf,srp", "--records", "50"]
    given += ["--kept", str(kept)]
    assert forest_accuracy.main([*given, "--seeds", "1"]) == 0
    assert runs == [("arf", [1]), ("srp", [1])]
    capsys.readouterr()
    assert forest_accuracy.main([*given, "--seeds", "2"]) == 0
    assert runs[2:] == [("arf", [2]), ("srp", [2])]
    report = json.loads(capsys.readouterr().out)
    assert [each["accuracy"] for each in report["rows"]] == [51.0, 52.0, 51.0, 52.0]
    assert len(Kept(kept).rows) == 4
