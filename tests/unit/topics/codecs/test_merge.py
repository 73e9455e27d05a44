"""A run of several formats comes back in the order of its records."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.unit.topics.codecs.samples import cells, classes, keys_of, reasons, run_of
from topics.codecs import decode_instances, decode_labels, encode_instances, encode_labels
from topics.columns.records import Features

ROWS = Features.of(["a", "b"], [[1.0, float("nan")], [2.0, float("nan")]], {1: ["x", "y"]})
NUMBERS = Features.of(["a"], [[3.0], [4.0]])


def test_instances() -> None:
    json = encode_instances(ROWS, labels=["no", "1"], ids=["j0", "j1"])
    packed = encode_instances(NUMBERS, labels=["1", "2"], weights=np.array([2.0, 3.0]), format="packed")
    arrow = encode_instances(ROWS, labels=[None, "no"], ids=["r0", "r1"], format="arrow")
    values = [arrow[0], json[0], b"{", packed[0], arrow[0], None, json[1], packed[1]]
    decoded = decode_instances(run_of(values, keys=[b"p", b"q", b"z", b"p", b"q", b"z", b"r", b"p"]))
    assert reasons(decoded) == {2: "not-json", 5: "null-value"}
    assert decoded.record.tolist() == [0, 0, 1, 3, 4, 4, 6, 7]
    assert decoded.row.tolist() == [0, 1, 0, 0, 0, 1, 0, 0]
    assert decoded.ids == ["r0", "r1", "j0", "3-103", "r0", "r1", "j1", "3-107"]
    assert keys_of(decoded) == ["p", "p", "q", "p", "q", "q", "r", "p"]
    assert sorted(decoded.keys) == ["p", "q", "r"]
    assert classes(decoded) == [None, "no", "no", "1", None, "no", "1", "2"]
    assert len(decoded.label_values) == len(set(decoded.label_values)) == 3
    assert decoded.weight.tolist() == [1, 1, 1, 2, 1, 1, 1, 3]
    assert decoded.blocks.tolist() == [[0, 0, 2], [4, 4, 2]]
    assert cells(decoded) == [
        {"a": 1, "b": "x"},
        {"a": 2, "b": "y"},
        {"a": 1, "b": "x"},
        {0: 3},
        {"a": 1, "b": "x"},
        {"a": 2, "b": "y"},
        {"a": 2, "b": "y"},
        {0: 4},
    ]
    assert decoded.key.dtype == decoded.label.dtype == decoded.record.dtype == np.int32


def test_labels() -> None:
    json = encode_labels(["j"], [None], annotators=["ann"])
    packed = encode_labels(["p"], ["1"], format="packed", features=Features.of(None, [[5.0]]))
    arrow = encode_labels(["r0", "r1"], ["x", None], format="arrow", annotators=[None, "bob"])
    decoded = decode_labels(run_of([packed[0], arrow[0], b"[]", json[0]]))
    assert reasons(decoded) == {2: "wrong-type"}
    assert decoded.ids == ["p", "r0", "r1", "j"]
    assert classes(decoded) == ["1", "x", None, None]
    assert decoded.annotators == [None, None, "bob", "ann"]
    assert cells(decoded) == [{0: 5}, None, None, None]
    assert decoded.row.tolist() == [0, 0, 1, 0]


@pytest.mark.parametrize("decode", [decode_instances, decode_labels])
def test_bad_records_beside_records_of_one_format_have_their_outcomes(decode: Callable[..., Any]) -> None:
    good = b'{"id":"i","features":{"a":1},"label":"x"}'
    decoded = decode(run_of([None, good, good], keys=[b"k", b"k", b""]))
    assert reasons(decoded) == {0: "null-value", 2: "missing-key"}
    assert (decoded.record.tolist(), decoded.ids) == ([1], ["i"])


FEATURES = Features.of(["a"], [[1.0], [1.0]])


@pytest.mark.parametrize(
    ("blocks", "decode"),
    [
        (encode_instances(FEATURES, labels=["y", "x"], ids=["r0", "r1"], format="arrow"), decode_instances),
        (encode_labels(["r0", "r1"], ["y", "x"], features=FEATURES, format="arrow"), decode_labels),
    ],
)
def test_records_of_several_formats_without_a_bad_one_are_all_there(
    blocks: list[bytes], decode: Callable[..., Any]
) -> None:
    json = b'{"id":"j%d","features":{"a":1},"label":"x"}'
    decoded = decode(run_of([json % 1, *blocks, json % 2]))
    assert decoded.malformed == []
    assert decoded.record.tolist() == [0, 1, 1, 2]
    assert list(decoded.ids) == ["j1", "r0", "r1", "j2"]
    assert classes(decoded) == ["x", "y", "x", "x"]
