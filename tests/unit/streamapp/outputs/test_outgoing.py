"""Effects to records: merged in input order, with the right key each."""

from __future__ import annotations

import numpy as np

from streamapp.outputs.outgoing import Encoder
from streamapp.task.effects import Answers, Effects, Evaluated
from topics.codecs import decode_predictions
from topics.definitions import TopicNames
from topics.records import EvaluationRecord, Predictions, RawRecords

NAMES = TopicNames("t.")
RAW = RawRecords(
    "t.instances", 0, [10, 11, 12, 13], [1, 2, 3, 4], [b"a", b"b", b"c", b"d"], [b"{}"] * 4, [()] * 4
)


def answers(record: list[int], classes: tuple[str, ...]) -> Answers:
    n = len(record)
    columns = (np.zeros(n, dtype=np.int32), np.ones((n, len(classes))), np.array(record, dtype=np.int64))
    return Answers(
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


def test_no_effects_are_no_records() -> None:
    assert Encoder(NAMES).encode(RAW, Effects()) == []
