"""Model events: what happens to models, as records of their topic."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.topology.partition import ALWAYS, NEVER, NOW, QUICK, Partition, config, instance
from tests.topology.test_reports import DDM, turned

DEFAULTS = {"learner": "h-tree", "query": "never", "budget": "count", "drift": "ddm"}


def events(partition: Partition) -> list[dict[str, Any]]:
    return [message.json for message in partition.sent["model-events"]]


def grown(spec: dict[str, Any], n: int = 900, at: int = 500) -> Partition:
    partition = Partition(config(spec))
    rows = turned(n, at)
    partition.feed(*(instance(row | {"id": f"i{i}"}, at=i) for i, row in enumerate(rows)))
    return partition


def test_a_model_is_made_splits_and_drifts_and_each_is_an_event_of_its_record() -> None:
    partition = grown(DDM)
    sent = partition.sent["model-events"]
    made, *others = events(partition)
    parts = {**DEFAULTS, "attributes": 1, "classes": 0}
    assert (made["event"], made["offset"], made["instance_id"]) == ("created", 0, "i0")
    assert made["detail"].keys() == parts.keys()
    assert made["detail"]["drift"] == "ddm"
    assert {event["event"] for event in others} == {"split", "drift"}
    for event, record in zip(events(partition), sent, strict=True):
        number = event["offset"]
        assert event["topic"] == "t.instances"
        assert event["instance_id"] == f"i{number}"
        assert record.timestamp == event["time_ms"] == NOW + number
        assert record.key == b"m"
        if event["event"] != "created":
            assert (event["records"], event["version"]) == (number + 1, number)
    drifts = [event["detail"] for event in others if event["event"] == "drift"]
    alerts = [message.json for message in partition.sent["drift-alerts"]]
    assert [drift["error_rate"] for drift in drifts] == [
        alert["error_rate"] for alert in alerts if alert["level"] == "drift" or alert["action"] != "none"
    ]


def test_a_split_says_what_was_decided_and_what_the_leaf_had() -> None:
    partition = grown(NEVER, 400, 999)
    splits = [event for event in events(partition) if event["event"] == "split"]
    assert len(splits) == partition.model().summary().splits > 1
    for split in splits:
        detail = split["detail"]
        assert detail["attribute"] == "x"
        assert (detail["test"], detail["category"], detail["former"]) == ("numeric", None, None)
        assert 0 < detail["threshold"] < 10
        assert detail["gap"] == detail["merits"][0] - detail["merits"][1]
        assert detail["gap"] > detail["bound"] or detail["reason"] != "gap"
        assert sum(detail["counts"].values()) + detail["counts_of_others"] == pytest.approx(detail["labels"])
    first = splits[0]["detail"]
    assert (first["node"], first["depth"]) == (0, 0)
    assert first["labels"] == splits[0]["version"] + 1, "the root has seen every label"
    assert splits[1]["detail"]["depth"] >= 1


def test_revisions_have_the_test_that_was_there() -> None:
    learner = {"name": "efdt", "grace_period": 20, "revisit_period": 20, "delta": 0.2, "tau": 0.4}
    partition = Partition(config(NEVER | {"learner": learner}))
    values = np.random.default_rng(3).uniform(0, 10, (6000, 2)).round(1).tolist()
    for i, (x, y) in enumerate(values):
        partition.instances({"features": {"x": x, "y": y}, "label": str((x if i < 1500 else y) > 5)})
    changed = [event for event in events(partition) if event["event"] in ("revised", "pruned")]
    assert changed
    for event in changed:
        assert event["detail"]["former"]["attribute"] in ("x", "y")
        assert event["detail"]["depth"] >= 0


def test_controls_are_events_and_what_only_has_a_spec_has_none() -> None:
    partition = Partition(config(ALWAYS))
    partition.control("create", key="waits")
    partition.control("configure", key="waits", spec={"query": "random"})
    partition.control("create", key="m", schema={"attributes": [{"name": "x"}], "classes": ["a", "b"]})
    partition.instances({"features": {"x": 1}, "id": "i"}, key="waits")
    for command in ("configure", "freeze", "reset", "delete"):
        body: dict[str, Any] = {"spec": {"query": "never"}} if command == "configure" else {}
        partition.control(command, **body)
    partition.control("freeze", key="waits")
    partition.control("freeze", key="waits", frozen=False)
    partition.control("freeze", key="nobody")
    rows = [
        (message.key, message.json["event"], message.json["instance_id"])
        for message in partition.sent["model-events"]
    ]
    assert rows == [
        (b"m", "created", None),
        (b"waits", "created", "i"),
        (b"m", "configured", None),
        (b"m", "frozen", None),
        (b"m", "reset", None),
        (b"m", "deleted", None),
        (b"waits", "frozen", None),
        (b"waits", "unfrozen", None),
    ]
    assert events(partition)[2]["detail"]["query"] == "never"


def test_a_tree_that_may_not_grow_is_an_event_once() -> None:
    partition = grown(NEVER | {"learner": QUICK | {"max_leaves": 1}}, 400, 999)
    assert [event["detail"] for event in events(partition) if event["event"] == "growth-stopped"] == [
        {"leaves": 1}
    ]


def test_labels_that_come_later_lead_to_the_same_events() -> None:
    at_once, later = Partition(config(DDM)), Partition(config(DDM, pending_keep="all"))
    rows = turned(700, 300)
    at_once.instances(*(row | {"id": f"i{i}"} for i, row in enumerate(rows)))
    for i, row in enumerate(rows):
        later.instances({"features": row["features"], "id": f"i{i}"})
        later.labels({"id": f"i{i}", "label": row["label"]})
    mine, other = (
        [{k: v for k, v in event.items() if k != "topic"} for event in events(partition)]
        for partition in (at_once, later)
    )
    assert mine == other
    assert len(mine) > 3


def test_of_many_classes_the_heaviest_are_named() -> None:
    partition = Partition(config(NEVER | {"learner": QUICK | {"grace_period": 400}, "max_classes": 200}))
    partition.instances(*({"features": {"x": i % 100}, "label": f"c{i % 100}"} for i in range(3000)))
    splits = [event["detail"] for event in events(partition) if event["event"] == "split"]
    assert splits
    assert len(splits[0]["counts"]) == 64
    total = sum(splits[0]["counts"].values()) + splits[0]["counts_of_others"]
    assert total == pytest.approx(splits[0]["labels"])
