"""Events as JSON lines."""

import json
from pathlib import Path
from typing import Any, Literal

import pytest

from core.events import Drift, NodeTest, Pruned, Split
from core.schema.schema import Attribute, Schema
from streamapp.cli.main import main
from streamapp.worker.observability.event_lines import event_of


def lines(tmp_path: Path, data: str, spec: str) -> list[dict[str, Any]]:
    file = tmp_path / "events"
    assert main(["prequential", "--data", data, "--spec", spec, "--events", str(file), "--json"]) == 0
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def test_every_split_has_its_reasons(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = '{"learner": {"name": "h-tree", "tau": 0.1, "evidence": "observed"}}'  # n is the leaf's own
    found = lines(tmp_path, "gen:agrawal?function=2&n=20000", spec)
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
        "action": "split",
        "former": None,
        "depth": None,
        "classes": None,
        "masses": [],
        "member": None,
    }


def test_events_of_a_forest_name_pair_node_and_depth() -> None:
    schema = Schema.of([Attribute("x")], ("a", "b", "c"))
    split = Split(3, 0, 4, 0, "numeric", 0.5, (0.5, 0.1), 0.2, 200.0, "gap", depth=2, pair=(0, 2))
    found = event_of(7, split, schema)
    assert (found["classes"], found["node"], found["depth"]) == (["a", "c"], 4, 2)
    drift = Drift(3, 0, "drift", "ddm", 0.25, "subtree pruned", node=2, depth=1, pair=(1, 2))
    assert event_of(8, drift, schema) == {
        "event": "drift",
        "record": 8,
        "level": "drift",
        "detector": "ddm",
        "error_rate": 0.25,
        "action": "subtree pruned",
        "node": 2,
        "depth": 1,
        "classes": ["b", "c"],
        "member": None,
    }
    whole = event_of(8, Drift(3, 0, "drift", "ddm", 0.25, "new tree"), schema)
    assert (whole["node"], whole["depth"], whole["classes"]) == (None, None, None)


def test_a_revised_split_says_what_was_there() -> None:
    schema = Schema.of([Attribute("colour", "nominal", ("red", "green")), Attribute("x")], ("a", "b"))
    figures: tuple[tuple[float, float], float, float, Literal["gap"]] = ((0.5, 0.2), 0.1, 900.0, "gap")
    colour = {"attribute": "colour", "test": "category", "value": "green"}
    replaced = Split(3, 0, 4, 1, "numeric", 0.25, *figures, "replaced", NodeTest(0, "category", 1.0))
    found = event_of(7, replaced, schema)
    assert (found["attribute"], found["value"], found["action"]) == ("x", 0.25, "replaced")
    assert found["former"] == colour
    pruned = event_of(8, Pruned(3, 0, 4, *figures, former=NodeTest(0, "multiway", 0.0)), schema)
    assert (pruned["event"], pruned["node"]) == ("pruned", 4)
    assert pruned["former"] == colour | {"test": "multiway", "value": None}


def test_efdt_says_what_it_replaced(tmp_path: Path) -> None:
    data = "gen:drift?before=(stagger?function=2)&after=(stagger?function=3)&position=2000&width=1&n=16000"
    found = lines(tmp_path, data, '{"learner": {"name": "efdt", "revisit_period": 500}}')
    splits = [event for event in found if event["event"] == "split"]
    assert all(split["former"] is None for split in splits if split["action"] == "split")
    # Green or a circle before the drift; medium or large afterwards.
    (root,) = (split for split in splits if split["node"] == 0 and split["action"] == "replaced")
    assert root["record"] > 2000
    assert root["attribute"] == "size"
    assert root["former"]["attribute"] in ("color", "shape")


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = tmp_path / "missing" / "file"
    assert main(["prequential", "--data", "gen:sea?n=10", "--events", str(where)]) == 64
    assert f"--events {where}" in capsys.readouterr().err
