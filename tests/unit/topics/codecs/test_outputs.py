"""Predictions, label requests, drift alerts and evaluations: written, and read back."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import orjson
import pytest

from tests.unit.topics.codecs.samples import cells, reasons
from topics.codecs import (
    decode_audit,
    decode_drift_alerts,
    decode_evaluations,
    decode_label_requests,
    decode_model_events,
    decode_predictions,
    encode_drift_alerts,
    encode_evaluations,
    encode_label_requests,
    encode_model_events,
    encode_predictions,
)
from topics.codecs.compiled.encode import encode_answers
from topics.codecs.json.predictions import _Middles, _middles
from topics.columns.records import (
    AuditEntry,
    DriftAlert,
    EvaluationRecord,
    Features,
    Format,
    LabelRequests,
    Malformed,
    ModelEvent,
    Predictions,
    Seen,
)
from topics.errors import CodecError

FORMATS: tuple[Format, ...] = ("json", "packed", "arrow")


def predictions(
    probability: list[list[float]],
    *,
    classes: tuple[str, ...] = ("a", "b"),
    ids: list[str] | None = None,
    prediction: list[int] | None = None,
    version: list[int] | None = None,
    explanation: list[str | None] | None = None,
) -> Predictions:
    n = len(probability)
    matrix = np.array(probability, dtype=np.float64).reshape(n, -1 if n else 0)
    codes = prediction if prediction is not None else matrix.argmax(axis=1) if n else []
    return Predictions(
        classes,
        ids if ids is not None else [f"3-{row}" for row in range(n)],
        np.array(codes, dtype=np.int32),
        matrix,
        np.array(version if version is not None else range(n), dtype=np.int64),
        explanation,
    )


def test_the_texts_that_are_kept_are_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_Middles, "MOST_BYTES", 100_000)
    classes = tuple(f"class number {i}" for i in range(100))  # a text of some 2,000 bytes
    draw = np.random.default_rng(1)
    for _ in range(20):
        given = predictions(draw.dirichlet(np.ones(100), size=30).tolist(), classes=classes)
        assert [orjson.loads(text)["id"] for text in encode_predictions(given)] == given.ids
    kept = _middles(classes)._kept
    assert 60_000 < sum(len(key) + len(text) for key, text in kept.items()) < 200_000


def test_json_bytes() -> None:
    written = encode_predictions(predictions([[0.25, 0.75], [1.0, 0.0], [0.00004, 0.99996]]))
    assert written == [
        b'{"id":"3-0","label":"b","probabilities":{"a":0.25,"b":0.75},"version":0,"untrained":true}',
        b'{"id":"3-1","label":"a","probabilities":{"a":1.0,"b":0.0},"version":1}',
        b'{"id":"3-2","label":"b","probabilities":{"a":0.0,"b":1.0},"version":2}',
    ]


def test_every_probability_is_rounded_to_four_decimals() -> None:
    rng = np.random.default_rng(3)
    matrix = np.concatenate(
        [np.arange(10_001)[:, None] / 10_000 * [1, 1, 1], rng.dirichlet(np.ones(3), 2000)]
    )
    received = decode_predictions(encode_predictions(predictions(matrix.tolist(), classes=("x", "y", "z"))))
    read = np.array([list(row.values()) for row in received.probabilities])
    assert np.abs(read - matrix).max() <= 0.5e-4 + 1e-12
    assert all(value == round(value, 4) for value in read.ravel().tolist())


@pytest.mark.parametrize("form", FORMATS)
def test_texts_that_need_escaping(form: Format) -> None:
    ids = ['say "hi"', "back\\slash", "new\nline", 'x",', "é\u2028", ",", "\x00", "100%", "{}"]
    classes = ('quote"', "new\nline", "100%s", "{0}")
    sent = predictions(
        [[0.1, 0.2, 0.3, 0.4]] * len(ids), classes=classes, ids=ids, prediction=[0, 1, 2, 3, 0, 1, 2, 3, 0]
    )
    received = decode_predictions(encode_predictions(sent, form))
    assert received.malformed == []
    assert received.ids == ids
    assert received.labels == [classes[code] for code in sent.prediction]
    assert [list(row) for row in received.probabilities] == [list(classes)] * len(ids)


@pytest.mark.parametrize("form", FORMATS)
def test_a_model_without_classes(form: Format) -> None:
    sent = predictions([[], []], classes=(), prediction=[-1, -1])
    received = decode_predictions(encode_predictions(sent, form))
    assert received.malformed == []
    assert received.labels == [None, None]
    assert received.probabilities == [{}, {}]
    assert received.version.tolist() == [0, 1]


@pytest.mark.parametrize("form", FORMATS)
def test_more_columns_than_classes(form: Format) -> None:
    received = decode_predictions(encode_predictions(predictions([[0.5, 0.5, 9.0]], prediction=[1]), form))
    assert received.probabilities == [{"a": 0.5, "b": 0.5}]
    assert received.labels == ["b"]


@pytest.mark.parametrize("form", FORMATS)
def test_explanations(form: Format) -> None:
    sent = predictions([[0.5, 0.5], [1.0, 0.0]], explanation=['amount > 3 and country = "DE"', None])
    assert decode_predictions(encode_predictions(sent, form)).explanation == sent.explanation


@pytest.mark.parametrize("form", FORMATS)
def test_no_rows_are_no_records(form: Format) -> None:
    assert encode_predictions(predictions([]), form) == []


def test_a_block_keeps_its_order_and_is_null_where_a_row_was_dead_lettered() -> None:
    sent = predictions([[0.5, 0.5]] * 3, ids=["x", "", "z"], version=[4, -1, 5], prediction=[0, -1, -1])
    (value,) = encode_predictions(sent, "arrow")
    received = decode_predictions([value])
    assert received.record.tolist() == [0, 0, 0]
    assert received.row.tolist() == [0, 1, 2]
    assert received.ids == ["x", None, "z"]
    assert received.labels == ["a", None, None]
    assert received.version.tolist() == [4, -1, 5]
    assert received.probabilities == [{"a": 0.5, "b": 0.5}, {}, {"a": 0.5, "b": 0.5}]


def test_probabilities_that_are_none_are_written_as_zero() -> None:
    (value,) = encode_predictions(predictions([[math.nan, 1.2]], prediction=[1]))
    assert orjson.loads(value)["probabilities"] == {"a": 0.0, "b": 1.0}


@pytest.mark.parametrize("encode", [encode_predictions, encode_answers])
def test_probabilities_beyond_float32_are_held_to_what_a_probability_may_be(encode: Any) -> None:
    given = np.array([[1e39, -1e308, math.inf, -math.inf, math.nan, 5e-324, 0.25]])
    classes = tuple("abcdefg")
    predictions = Predictions(classes, ["i"], np.zeros(1, np.int32), given, np.ones(1, np.int64))
    for form in ("json", "packed"):
        decoded = decode_predictions([*encode(predictions, form)])
        assert [*decoded.probabilities[0].values()] == [1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.25], form


def test_formats_may_be_mixed_and_strangers_are_malformed() -> None:
    sent = predictions([[0.25, 0.75]])
    good = [encode_predictions(sent, form)[0] for form in FORMATS]
    wrong_id = b'{"id":1,"label":"a","probabilities":{},"version":1}'
    bad = [b"", b"{}", b"[]", b"7", b"\xd6G", b"\xff\xff\xff\xff", wrong_id]
    bad += [good[1][:-1], good[1] + b"x", good[1][:30], good[2][:-40]]
    received = decode_predictions([*bad, *good])
    assert set(reasons(received).values()) == {"wrong-type"}
    assert [malformed.record for malformed in received.malformed] == list(range(len(bad)))
    assert received.record.tolist() == [len(bad), len(bad) + 1, len(bad) + 2]
    assert received.labels == ["b"] * 3
    assert len(received) == 3


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(CodecError, match="format='avro' must be one of json, packed, arrow"):
        encode_predictions(predictions([[1.0, 0.0]]), "avro")  # type: ignore[arg-type]


def requests() -> LabelRequests:
    values = np.array([[1.5, math.nan], [math.nan, math.nan]])
    named = Features(("amount", "country"), np.array([0, 2]), values, {1: ["DE", None]})
    positional = Features(None, np.array([1]), np.array([[2.0]]))
    return LabelRequests(
        request_ids=["r0", "r1", "r2"],
        instance_ids=["i0", "i1", 'i"2'],
        features=[named, positional],
        predictions=["spam", None, "ham"],
        strategies=["random", "variable_uncertainty", "always"],
        utility=np.array([0.5, math.nan, 1.0]),
        expires_ms=np.array([1_800_000_000_000, -1, 0]),
    )


def test_label_requests() -> None:
    written = encode_label_requests(requests())
    assert orjson.loads(written[0]) == {
        "request_id": "r0",
        "instance_id": "i0",
        "features": {"amount": 1.5, "country": "DE"},
        "prediction": "spam",
        "strategy": "random",
        "utility": 0.5,
        "expires_ms": 1_800_000_000_000,
    }
    received = decode_label_requests(written)
    sent = requests()
    assert received.malformed == []
    assert received.request_ids == sent.request_ids
    assert received.instance_ids == sent.instance_ids
    assert received.predictions == sent.predictions
    assert received.strategies == sent.strategies
    assert np.array_equal(received.utility, sent.utility, equal_nan=True)
    assert received.expires_ms.tolist() == sent.expires_ms.tolist()
    assert cells(received) == cells(sent)  # type: ignore[arg-type]
    assert received.record is not None
    assert received.record.tolist() == [0, 1, 2]


def test_label_requests_of_models_that_explain_themselves() -> None:
    explanation = {
        "explanations": ["amount <= 2", None, "all"],
        "probabilities": [{"spam": 0.5}, None, {}],
        "ranges": [{"amount": Seen(-0.5, 1e300, 7), "": Seen(1.0, 1.0, 1)}, {}, {}],
    }
    written = encode_label_requests(replace(requests(), **explanation))  # type: ignore[arg-type]
    assert orjson.loads(written[0])["ranges"] == {"amount": [-0.5, 1e300, 7], "": [1.0, 1.0, 1]}
    assert all("ranges" not in orjson.loads(text) for text in written[1:])
    assert orjson.loads(written[1]).keys() == orjson.loads(encode_label_requests(requests())[1]).keys()
    received = decode_label_requests(written)
    assert {name: getattr(received, name) for name in explanation} == explanation


def test_ranges_that_are_none_are_left_out() -> None:
    document = orjson.loads(encode_label_requests(requests())[0])
    odd = [None, 7, [], [1, 2], [2, 1, 5], [1, 2, 0], [1, "2", 5], [1, 2, True], [1, 2, 1e300], [1, None, 5]]
    ranges = {str(number): odd_range for number, odd_range in enumerate(odd)} | {"fine": [1, 2.5, 5]}
    received = decode_label_requests(
        [orjson.dumps(document | {"ranges": ranges_tried}) for ranges_tried in (ranges, None)]
    )
    assert received.ranges == [{"fine": Seen(1.0, 2.5, 5)}, {}]
    assert reasons(decode_label_requests([orjson.dumps(document | {"ranges": 7})])) == {0: "wrong-type"}


def test_label_requests_of_strangers() -> None:
    good = encode_label_requests(requests())[0]
    document = orjson.loads(good)
    changes: list[dict[str, object]] = [
        {"request_id": None},
        {"instance_id": 7},
        {"strategy": None},
        {"utility": "much"},
        {"expires_ms": 1.5},
        {"features": {"a": []}},
        {"prediction": 1},
    ]
    changed = [orjson.dumps(document | change) for change in changes]
    received = decode_label_requests([b"{", *changed, b"[]", good])
    assert reasons(received) == {
        0: "not-json",
        1: "missing-field",
        2: "wrong-type",
        3: "missing-field",
        4: "wrong-type",
        5: "wrong-type",
        6: "wrong-type",
        7: "wrong-type",
        8: "wrong-type",
    }
    assert received.request_ids == ["r0"]
    assert received.record is not None
    assert received.record.tolist() == [9]


def test_drift_alerts() -> None:
    alerts = [
        DriftAlert("warning", "ddm", 0.25, "none", node=7, version=12, instance_id="i"),
        DriftAlert("drift", "ddm", 0.5, "rebuild"),
    ]
    assert decode_drift_alerts(encode_drift_alerts(alerts)) == alerts
    bad = decode_drift_alerts([b"{", b"[]", b'{"level":"drift"}', b"7"])
    assert [flawed.reason.value for flawed in bad if isinstance(flawed, Malformed)] == ["not-json"] + [
        "missing-field"
    ] * 3


def test_model_events() -> None:
    detail = {"node": 0, "counts": {"a": 2.5}, "former": None}
    events = [
        ModelEvent("split", "t.labels", 7, 1_700, 12, 30, "i", detail),
        ModelEvent("deleted", "t.controls", 8, 1_800, 12, 30, None, {}),
    ]
    assert decode_model_events(encode_model_events(events)) == events
    bad = decode_model_events([b"{", b"[]", b'{"event":"split"}', b"7"])
    assert [flawed.reason.value for flawed in bad if isinstance(flawed, Malformed)] == ["not-json"] + [
        "missing-field"
    ] * 3


@pytest.mark.parametrize(
    "members",
    [
        {"user": 7},
        {"user": ["ann"]},
        {"at_ms": "now"},
        {"at_ms": True},
        {"at_ms": 1 << 62},
        {"at_ms": -2},
        {"label": {"a": 1}},
        {"votes": ["a"]},
        {"votes": {"ann": 7}},
        {"prior": {"a": "half"}},
        {"weight": "1"},
        {"posterior": []},
        {"reason": 7},
        {"key": None, "instance_id": 4711},
    ],
    ids=str,
)
def test_an_audit_entry_of_wrong_types_is_none(members: dict[str, object]) -> None:
    entry = {"id": "x-1", "user": "ann", "action": "label", "at_ms": 5, "key": "k", "weight": 1}
    good, bad = decode_audit([orjson.dumps(entry), orjson.dumps(entry | members)])
    assert isinstance(good, AuditEntry)
    assert isinstance(bad, Malformed)
    assert bad.reason.value == "wrong-type"
    assert next(reversed(members)) in bad.detail


def test_evaluations_write_nan_as_null() -> None:
    sent = EvaluationRecord(10, 5, 0.5, 0.25, math.nan, math.nan, 0.1, math.nan, 0.5, version=5)
    (value,) = encode_evaluations([sent])
    assert orjson.loads(value)["kappa"] is None
    (received,) = decode_evaluations([value])
    assert isinstance(received, EvaluationRecord)
    assert math.isnan(received.kappa)
    assert math.isnan(received.f1_rarer_windowed)
    assert (received.records, received.labels, received.accuracy, received.version) == (10, 5, 0.5, 5)
