"""JSON labels and controls."""

import numpy as np
import orjson
import pytest

from tests.unit.topics.codecs.samples import cells, classes, label, only_flaw, reasons, run_of
from topics.codecs import decode_controls, decode_labels, encode_controls


def of(**members: object) -> bytes:
    return orjson.dumps({"id": "i", "label": "a"} | members)


def test_columns() -> None:
    values = [
        of(),
        of(id=7, label=1, weight=2.5, annotator="ann"),
        b'{"id":"d","declined":true}',
        b'{"id":"d","declined":true,"label":null}',
        of(declined=False),
        of(annotator=12),
    ]
    decoded = decode_labels(run_of(values))
    assert decoded.malformed == []
    assert decoded.ids == ["i", "7", "d", "d", "i", "i"]
    assert classes(decoded) == ["a", "1", None, None, "a", "a"]
    assert decoded.weight.tolist() == [1, 2.5, 1, 1, 1, 1]
    assert decoded.annotators == [None, "ann", None, None, None, "12"]
    assert decoded.features == []
    assert decoded.row.tolist() == [0] * 6
    assert decoded.record.dtype == np.int32


def test_some_labels_carry_features() -> None:
    decoded = decode_labels(
        run_of([of(), of(features={"a": 1, "b": "x"}), of(features=[2]), of(features=None)])
    )
    assert cells(decoded) == [None, {"a": 1, "b": "x"}, {0: 2}, None]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b'{"label":"a"}', "missing-field"),
        (b'{"id":null,"label":"a"}', "missing-field"),
        (b'{"id":"","label":"a"}', "wrong-type"),
        (b'{"id":true,"label":"a"}', "wrong-type"),
        (b'{"id":"i"}', "missing-field"),
        (b'{"id":"i","label":null}', "missing-field"),
        (b'{"id":"i","declined":false}', "missing-field"),
        (b'{"id":"i","label":"a","declined":true}', "wrong-type"),
        (b'{"id":"i","declined":1}', "wrong-type"),
        (b'{"id":"i","declined":"yes"}', "wrong-type"),
        (b'{"id":"i","label":0.5}', "wrong-type"),
        (b'{"id":"i","label":[]}', "wrong-type"),
        (b'{"id":"i","label":"a","weight":-1}', "bad-weight"),
        (b'{"id":"i","label":"a","weight":1e20}', "bad-weight"),
        (b'{"id":"i","label":"a","weight":1000000000.0000001}', "bad-weight"),
        (b'{"id":"i","label":"a","annotator":[]}', "wrong-type"),
        (b'{"id":"i","label":"a","features":{}}', "missing-field"),
        (b'{"id":"i","label":"a","features":7}', "wrong-type"),
        (b'{"id":"i","label":"a","features":[{}]}', "wrong-type"),
        (b"[]", "wrong-type"),
        (b"x", "not-json"),
    ],
)
def test_bad_labels(value: bytes, reason: str) -> None:
    assert only_flaw(label(value))[0] == reason


def test_good_labels_go_on() -> None:
    decoded = decode_labels(run_of([b"{", of(id="x"), of(weight=0), of(id="y", features=[1])]))
    assert reasons(decoded) == {0: "not-json", 2: "bad-weight"}
    assert decoded.record.tolist() == [1, 3]
    assert decoded.ids == ["x", "y"]
    assert cells(decoded) == [None, {0: 1}]


def test_controls_keep_order_key_and_body() -> None:
    values = encode_controls([("create", {"spec": {"learner": {"name": "h-tree"}}}), ("delete", {})])
    controls = decode_controls(run_of(values, keys=[b"a", b"b"]))
    assert [(control.record, control.key, control.command, control.body) for control in controls.items] == [
        (0, "a", "create", {"spec": {"learner": {"name": "h-tree"}}}),
        (1, "b", "delete", {}),
    ]
    assert len(controls) == 2


def test_bad_controls() -> None:
    values = [
        b"{",
        b"{}",
        b'{"command":7}',
        b'{"command":"explode"}',
        b'{"command":"reset"}',
        b"[]",
        b'{"command":[]}',
    ]
    controls = decode_controls(run_of(values))
    assert reasons(controls) == {
        0: "not-json",
        1: "missing-field",
        2: "wrong-type",
        3: "unknown-command",
        5: "wrong-type",
        6: "wrong-type",
    }
    assert controls.malformed[3].detail == (
        "command 'explode' is unknown; known: create, configure, freeze, reset, delete, import, "
        "challenge, promote, drop"
    )
    assert [malformed.record for malformed in controls.malformed] == [0, 1, 2, 3, 5, 6]
    assert [control.record for control in controls.items] == [4]
