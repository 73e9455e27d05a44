"""Events as JSON lines."""

import json
from pathlib import Path
from typing import Any

import pytest

from core.events import Split
from core.features import Attribute, Schema
from streamapp.cli.main import main
from streamapp.event_lines import event_of


def lines(tmp_path: Path, data: str, spec: str) -> list[dict[str, Any]]:
    file = tmp_path / "events"
    assert main(["prequential", "--data", data, "--spec", spec, "--events", str(file), "--json"]) == 0
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def test_every_split_has_its_reasons(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = lines(tmp_path, "gen:agrawal?function=2&n=20000", '{"learner": {"name": "h-tree", "tau": 0.1}}')
    result = json.loads(capsys.readouterr().out)
    splits = [event for event in found if event["event"] == "split"]
    assert len(splits) == result["splits"] > 3
    for split in splits:
        best, second = split["merits"]
        if split["reason"] == "gap":
            assert best - second > split["bound"]
        else:
            assert (split["reason"], split["bound"] < 0.1) == ("tie", True)
        assert split["n"] % 200 == 0
        assert isinstance(split["attribute"], str)
    assert {"salary", "age"} <= {split["attribute"] for split in splits}
    evaluations = [event for event in found if event["event"] == "evaluation-due"]
    assert [event["labels"] for event in evaluations] == list(range(1000, 20_001, 1000))
    assert [event["record"] for event in found] == sorted(event["record"] for event in found)


def test_a_drift_says_what_was_done(tmp_path: Path) -> None:
    data = "gen:drift?before=(stagger?function=1)&after=(stagger?function=3)&position=3000&width=1&n=6000"
    found = lines(tmp_path, data, '{"drift": {"name": "ddm", "reaction": "reset"}}')
    drifts = [event for event in found if event["event"] == "drift" and event["level"] == "drift"]
    assert [event["action"] for event in drifts if 3000 <= event["record"] < 3200] == ["new tree"]


def test_values_are_named_and_infinities_null() -> None:
    schema = Schema.of([Attribute("colour", "nominal", ("red", "green"))], ("a", "b"))
    split = Split(3, 0, 0, 0, "category", 1.0, (0.5, float("-inf")), 0.1, 200.0, "only")
    assert event_of(7, split, schema) == {
        "event": "split",
        "record": 7,
        "node": 0,
        "attribute": "colour",
        "test": "category",
        "value": "green",
        "merits": [0.5, None],
        "bound": 0.1,
        "n": 200.0,
        "reason": "only",
    }


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = tmp_path / "missing" / "file"
    assert main(["prequential", "--data", "gen:sea?n=10", "--events", str(where)]) == 64
    assert f"--events {where}" in capsys.readouterr().err
