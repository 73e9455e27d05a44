"""Inputs that change: alerts without labels, events, requested labels, controls of the detector."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from streamapp.web.formatting import event_in_words
from streamapp.worker.outputs.encoder import Encoder
from tests.topology.partition import ALWAYS, NAMES, NEVER, NOW, Partition, config, instance
from tests.topology.test_avro_outputs import IDS, schema_of
from topics.codecs.avro.output_reader import OutputReader

WATCHED = {"name": "input", "window": 50, "reference": 60, "bins": 5}
SPEC = NEVER | {"drift": ["ddm", WATCHED]}
BEFORE = 40 + 60 + 50
"""Records up to the end of the first window."""


def rows(n: int = 400, at: int = 170) -> list[dict[str, Any]]:
    """Return unlabelled instances whose amount and colour change at a record."""
    colours = ("red", "green", "blue")
    return [
        {
            "id": f"i{i}",
            "features": {
                "amount": i * 7 % 10 + (10 if i >= at else 0),
                "age": i * 3 % 11,
                "colour": colours[i % 2 + (i >= at)],
            },
        }
        for i in range(n)
    ]


def test_changed_inputs_raise_an_alert_that_names_them() -> None:
    partition = Partition(config(SPEC))
    partition.feed(*(instance(row, at=i) for i, row in enumerate(rows())))
    (sent,) = partition.sent["drift-alerts"]
    alert = sent.json
    assert (alert["level"], alert["detector"], alert["action"]) == ("input", "input", "none")
    assert (alert["error_rate"], alert["node"], alert["version"]) == (None, None, 0)
    assert alert["instance_id"] == f"i{BEFORE + 50}"
    assert sent.timestamp == NOW + BEFORE + 50
    assert alert["moved"] == 2
    amount, colour = sorted(alert["inputs"], key=lambda moved: moved["feature"])
    assert (amount["feature"], colour["feature"]) == ("amount", "colour")
    assert 0.2 < amount["ks"] <= 0.62
    assert amount["psi"] > 0.1
    assert 0.0 < amount["hellinger"] <= 1.0
    assert colour["unseen"] == pytest.approx(0.3)
    assert colour["missing"] == [0.0, 0.0]
    (event,) = (sent.json for sent in partition.sent["model-events"] if sent.json["event"] == "drift")
    assert event["detail"] == {
        "level": "input",
        "detector": "input",
        "action": "none",
        "inputs": alert["inputs"],
        "moved": 2,
    }
    words = event_in_words(event)
    assert words.startswith("input: inputs moved: ")
    assert "amount (KS 0." in words
    (notice,) = (notice for notice in partition.notices if notice.text.startswith("input: "))
    assert "'amount' (KS 0." in notice.text
    made = partition.sent["model-events"][0].json
    assert made["detail"]["drift"] == "ddm + input"


def test_one_by_one_and_together_lead_to_the_same_bytes() -> None:
    together, single = Partition(config(SPEC)), Partition(config(SPEC))
    together.feed(*(instance(row, at=i) for i, row in enumerate(rows())))
    for i, row in enumerate(rows()):
        single.feed(instance(row, at=i))
    assert [m.value for m in together.sent["drift-alerts"]] == [m.value for m in single.sent["drift-alerts"]]
    assert together.model().snapshot() == single.model().snapshot()


def test_values_that_a_closed_attribute_does_not_have_are_unseen() -> None:
    partition = Partition(config(SPEC))
    colour = {"name": "colour", "kind": "nominal", "values": ["red", "green"]}
    partition.control("create", schema={"attributes": [colour], "classes": ["a", "b"]})
    partition.instances(
        *({"id": row["id"], "features": {"colour": row["features"]["colour"]}} for row in rows())
    )
    (alert,) = (sent.json for sent in partition.sent["drift-alerts"])
    (moved,) = alert["inputs"]
    assert moved["unseen"] == pytest.approx(0.3)
    assert moved["missing"] == [0.0, 0.0]


def test_an_alert_in_avro_holds_what_it_holds_in_json() -> None:
    plain = Partition(config(SPEC))
    avro = Partition(config(SPEC), encoder=Encoder(NAMES, schema_ids=IDS))
    for partition in (plain, avro):
        partition.instances(*rows())
    (expected,) = (sent.json for sent in plain.sent["drift-alerts"])
    reader = OutputReader(schema_of)
    (text,) = reader.texts([sent.value or b"" for sent in avro.sent["drift-alerts"]])
    assert orjson.loads(text) == expected


def test_labels_are_requested_after_an_alarm_although_the_budget_is_closed() -> None:
    spec = ALWAYS | {"budget": {"limit": 0.01}, "drift": WATCHED | {"open_records": 20}}
    partition = Partition(config(spec))
    partition.instances(*rows())
    (alert,) = (sent.json for sent in partition.sent["drift-alerts"])
    assert alert["action"] == "label budget open for 20 records"
    asked = [int(request["instance_id"][1:]) for request in partition.requests]
    first = BEFORE + 50
    assert [i for i in asked if first <= i < first + 20] == list(range(first, first + 20))
    assert not [i for i in asked if i >= first + 20], "they count as spent"


def test_a_control_changes_one_detector_and_keeps_the_other() -> None:
    partition = Partition(config(SPEC))
    partition.instances(*rows(100))
    partition.control("configure", spec={"drift": {"name": "input", "alpha": 0.5}})
    partition.control("configure", spec={"drift": {"warning": 2.5}})
    spec = partition.model().spec
    assert (spec.inputs.alpha, spec.inputs.window, spec.drift.warning) == (0.5, 50, 2.5)
    partition.control("configure", spec={"drift": ["ddm"]})
    assert partition.model().spec.inputs.name == "none"
    assert not partition.dead_letters
    partition.control("configure", spec={"drift": 3})
    assert partition.dead_letters


def test_null_switches_the_input_detector_off() -> None:
    partition = Partition(config(NEVER | {"drift": WATCHED}))
    partition.instances(*rows(100))
    assert partition.model().spec.inputs.name == "input"
    partition.control("configure", spec={"drift": None})
    assert partition.model().spec.inputs.name == "none"
    assert not partition.dead_letters
