"""Effects to records: merged in input order, with the right key each."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from streamapp.worker.outputs.encoder import Encoder
from streamapp.worker.task.effects.effects import Alert, Effects, Evaluated, PredictionGroup, Requests
from topics.codecs import decode_predictions
from topics.columns.records import (
    DriftAlert,
    EvaluationRecord,
    Headers,
    LabelRequests,
    Predictions,
    RawRecords,
)
from topics.definitions import TopicNames

NAMES = TopicNames("t.")
RAW = RawRecords(
    "t.instances", 0, [10, 11, 12, 13], [1, 2, 3, 4], [b"a", b"b", b"c", b"d"], [b"{}"] * 4, [()] * 4
)


def answers(record: list[int], classes: tuple[str, ...]) -> PredictionGroup:
    n = len(record)
    columns = (np.zeros(n, dtype=np.int32), np.ones((n, len(classes))), np.array(record, dtype=np.int64))
    return PredictionGroup(
        np.array(record, dtype=np.int32), Predictions(classes, [f"i{i}" for i in record], *columns)
    )


def test_answers_of_models_with_other_classes_are_merged_in_input_order() -> None:
    effects = Effects(answers=[answers([0, 3], ("x", "y")), answers([1, 2], ("z",))])
    (outgoing,) = Encoder(NAMES).encode(RAW, effects)
    assert outgoing.keys == [b"a", b"b", b"c", b"d"]
    assert outgoing.timestamps == [1, 2, 3, 4]
    decoded = decode_predictions([value for value in outgoing.values if value])
    assert decoded.ids == ["i0", "i1", "i2", "i3"]
    assert decoded.labels == ["x", "z", "z", "x"]
    assert outgoing.headers is None


def test_reports_about_one_record_have_its_key_and_numbers_of_their_own() -> None:
    metrics = EvaluationRecord(1, 1, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0, 1.0)
    effects = Effects(evaluations=[Evaluated(2, metrics) for _ in range(4)])
    (outgoing,) = Encoder(NAMES, headers="full").encode(RAW, effects)
    assert outgoing.topic == "t.evaluations"
    assert outgoing.keys == [b"c"] * 4
    assert outgoing.headers is not None
    ids = [dict(headers)["ce_id"] for headers in outgoing.headers]
    assert ids == [b"evaluation-t.instances-0-12-%d" % i for i in range(4)]


def test_the_number_of_a_report_does_not_depend_on_what_else_is_in_the_run() -> None:
    metrics = EvaluationRecord(1, 1, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0, 1.0)
    effects = Effects(evaluations=[Evaluated(record, metrics) for record in (1, 2, 2)])
    (outgoing,) = Encoder(NAMES, headers="full").encode(RAW, effects)
    assert outgoing.headers is not None
    ids = [dict(headers)["ce_id"] for headers in outgoing.headers]
    assert ids == [b"evaluation-t.instances-0-" + number for number in (b"11", b"12-0", b"12-1")]


@pytest.mark.parametrize("headers", ["minimal", "full"])
def test_no_record_is_larger_than_the_bound_says(headers: Any) -> None:
    given: list[Headers] = [[("céleste", b"x" * i), ("grove-x", None), *[("h", b"")] * i] for i in range(4)]
    raw = replace(RAW, keys=[b"k" * 900, b"b", None, b"d"], headers=given)
    metrics = EvaluationRecord(1, 1, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0, 1.0)
    requests = LabelRequests(
        ["r1"], ["\x01" * 5000], [], ["x"], ["random"], np.zeros(1), np.zeros(1, np.int64)
    )
    effects = Effects(
        answers=[answers([0, 3], ("x", "y" * 3000)), answers([1, 2], ("z",))],
        requests=[Requests(np.array([2], np.int32), requests)],
        evaluations=[Evaluated(0, metrics)] * 3,
        alerts=[Alert(1, DriftAlert("drift", "ddm", 0.5, "none", instance_id="é" * 4000))],
    )
    found = Encoder(NAMES, headers=headers).encode(raw, effects)
    assert len(found) == 4
    for outgoing in found:
        sizes = [outgoing.bytes_of(at) for at in range(len(outgoing))]
        assert max(sizes) <= outgoing.most_bytes <= 4 * max(sizes) + 6000


def test_no_effects_are_no_records() -> None:
    assert Encoder(NAMES).encode(RAW, Effects()) == []
