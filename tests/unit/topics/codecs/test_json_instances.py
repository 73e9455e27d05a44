"""JSON instances: shapes, cells, labels, ids, weights, and everything that is wrong with them."""

import math
from typing import Any

import numpy as np
import orjson
import pytest

from tests.unit.topics.codecs.samples import cells, classes, instance, only_flaw, reasons, run_of
from topics.codecs import decode_instances


def of(**members: object) -> bytes:
    return orjson.dumps({"features": {"a": 1.5}} | members)


def features(text: str) -> bytes:
    return b'{"features":' + text.encode() + b"}"


def test_rows_with_the_same_names_are_one_matrix() -> None:
    decoded = decode_instances(run_of([features('{"a":1,"b":2.5}'), features('{"a":-3e2,"b":0}')]))
    (group,) = decoded.features
    assert group.names == ("a", "b")
    assert group.values.tolist() == [[1.0, 2.5], [-300.0, 0.0]]
    assert group.values.flags.writeable
    assert group.rows.tolist() == [0, 1]
    assert group.strings == {}
    assert decoded.record.tolist() == [0, 1]
    assert decoded.row.tolist() == [0, 0]
    assert decoded.weight.tolist() == [1.0, 1.0]
    assert decoded.label.tolist() == [-1, -1]
    assert decoded.ids == ["3-100", "3-101"]


def test_equal_names_in_another_order_or_number_are_other_groups() -> None:
    values = [
        features(text)
        for text in ('{"a":1,"b":2}', '{"b":3,"a":4}', '{"a":5}', '{"a":6,"b":7}', "[8,9]", "[10]")
    ]
    decoded = decode_instances(run_of(values))
    assert [(group.names, group.rows.tolist()) for group in decoded.features] == [
        (("a", "b"), [0, 3]),
        (("b", "a"), [1]),
        (("a",), [2]),
        (None, [4]),
        (None, [5]),
    ]
    assert cells(decoded) == [
        {"a": 1, "b": 2},
        {"b": 3, "a": 4},
        {"a": 5},
        {"a": 6, "b": 7},
        {0: 8, 1: 9},
        {0: 10},
    ]


def test_names_whose_concatenation_is_the_same_are_told_apart() -> None:
    values = [features(text) for text in ('{"a":1,"b":2}', '{"a":3}', '{"b":4,"a":5}', '{"b":6}')]
    assert cells(decode_instances(run_of(values))) == [{"a": 1, "b": 2}, {"a": 3}, {"b": 4, "a": 5}, {"b": 6}]


def test_strings_nulls_and_booleans() -> None:
    values = [
        features('{"a":"red","b":1,"c":null,"d":true,"e":null}'),
        features('{"a":null,"b":"x","c":2,"d":false,"e":null}'),
        features('{"a":"","b":null,"c":3,"d":1,"e":null}'),
    ]
    decoded = decode_instances(run_of(values))
    assert cells(decoded) == [
        {"a": "red", "b": 1, "c": None, "d": 1, "e": None},
        {"a": None, "b": "x", "c": 2, "d": 0, "e": None},
        {"a": "", "b": None, "c": 3, "d": 1, "e": None},
    ]
    assert sorted(decoded.features[0].strings) == [0, 1]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("18446744073709551615", 2.0**64),
        ("123456789012345678901234567890", 123456789012345678901234567890.0),
        ("9007199254740993", 9007199254740992.0),
        ("1e-400", 0.0),
        ("-0.0", -0.0),
        ("1E3", 1000.0),
        ("true", 1.0),
    ],
)
def test_numbers(text: str, number: float) -> None:
    value = instance(features(f"[{text}]")).features[0].values[0, 0]
    assert value == number
    assert math.copysign(1, value) == math.copysign(1, number)


def test_the_last_of_equal_names_counts() -> None:
    assert cells(instance(b'{"features":{"a":1,"b":3,"a":2}}')) == [{"a": 2, "b": 3}]


def test_other_members_are_ignored_however_nested() -> None:
    assert cells(instance(of(trace={"deep": [1, {"a": 2}]}))) == [{"a": 1.5}]


@pytest.mark.parametrize(
    ("text", "reason", "detail"),
    [
        ("{}", "missing-field", "features must not be empty"),
        ("[]", "missing-field", "features must not be empty"),
        ("null", "missing-field", "features are missing"),
        ("7", "wrong-type", "features must be an object or an array; got a number"),
        ('"a"', "wrong-type", "features must be an object or an array; got a string"),
        ("true", "wrong-type", "features must be an object or an array; got a boolean"),
        (
            '{"a":1,"b":{}}',
            "wrong-type",
            "feature 'b' must be a number, a string, a boolean or null; got an object",
        ),
        (
            '{"a":[1]}',
            "wrong-type",
            "feature 'a' must be a number, a string, a boolean or null; got an array",
        ),
        ("[1,[]]", "wrong-type", "feature 1 must be a number, a string, a boolean or null; got an array"),
        ('{"":1}', "wrong-type", "a feature must have a name; got an empty one"),
    ],
)
def test_bad_features(text: str, reason: str, detail: str) -> None:
    assert only_flaw(instance(features(text))) == (reason, detail)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"{", "not-json"),
        (b"hello", "not-json"),
        (b'{"features":[1]} x', "not-json"),
        (b'{"features":[1]}{"features":[1]}', "not-json"),
        (b"{'features':[1]}", "not-json"),
        (b'\xef\xbb\xbf{"features":[1]}', "not-json"),
        (b'{"features":["\xff"]}', "not-json"),
        (b'{"features":["\\ud800"]}', "not-json"),
        (b'{"features":' + b"[" * 2000 + b"]" * 2000 + b"}", "not-json"),
        (b'{"features":[1,]}', "not-json"),
        (b'{"features":[NaN]}', "not-finite"),
        (b'{"features":{"a": -Infinity}}', "not-finite"),
        (b'{"features":[1e999]}', "not-finite"),
        (b"[]", "wrong-type"),
        (b"7", "wrong-type"),
        (b"null", "wrong-type"),
        (b'"features"', "wrong-type"),
    ],
)
def test_what_is_no_document(value: bytes, reason: str) -> None:
    assert only_flaw(instance(value))[0] == reason


def test_white_space_around_a_document_is_json() -> None:
    assert cells(decode_instances(run_of([b' \n{"features":[1]}\r\n', b'{"features":[2]}']))) == [
        {0: 1},
        {0: 2},
    ]


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("spam", "spam"),
        ("1", "1"),
        (1, "1"),
        (1.0, "1"),
        (-3, "-3"),
        (0.0, "0"),
        (-0.0, "0"),
        (True, "true"),
        (False, "false"),
        (None, None),
        (1e20, "100000000000000000000"),
    ],
)
def test_class_names(given: object, name: str | None) -> None:
    assert classes(instance(of(label=given))) == [name]


def test_equal_class_names_of_different_types_are_one_class_and_true_is_not_one() -> None:
    decoded = decode_instances(
        run_of([of(label=cell) for cell in (1, "1", True, 1.0, "true", None, 0, False)])
    )
    assert classes(decoded) == ["1", "1", "true", "1", "true", None, "0", "false"]
    assert decoded.label_values == ["1", "true", "0", "false"]
    assert decoded.label.dtype == np.int32


@pytest.mark.parametrize(
    ("given", "words"), [(0.5, "0.5"), ("", "an empty string"), ([1], "an array"), ({}, "an object")]
)
def test_bad_labels(given: object, words: str) -> None:
    assert only_flaw(instance(of(label=given))) == (
        "wrong-type",
        f"label must be a class name, a whole number, true or false; got {words}",
    )


def test_ids() -> None:
    decoded = decode_instances(run_of([of(id="x"), of(), of(id=None), of(id=7), of(id=-1), of(id=2**63)]))
    assert decoded.ids == ["x", "3-101", "3-102", "7", "-1", "9223372036854775808"]


@pytest.mark.parametrize(
    ("given", "words"),
    [("", "an empty string"), (True, "a boolean"), (1.0, "a number"), ([], "an array"), ({}, "an object")],
)
def test_bad_ids(given: object, words: str) -> None:
    assert only_flaw(instance(of(id=given))) == (
        "wrong-type",
        f"id must be a string or a whole number; got {words}",
    )


def test_weights() -> None:
    given = [2, 0.25, None, 5e-324, 1_000_000_000]
    decoded = decode_instances(run_of([of(), *(of(weight=weight) for weight in given)]))
    assert decoded.weight.tolist() == [1.0, 2.0, 0.25, 1.0, 5e-324, 1e9]


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (0, "bad-weight"),
        (-1.5, "bad-weight"),
        (math.nextafter(1e9, math.inf), "bad-weight"),
        (1e20, "bad-weight"),
        (1e308, "bad-weight"),
        ("1", "wrong-type"),
        (True, "wrong-type"),
        ([], "wrong-type"),
    ],
)
def test_bad_weights(given: object, reason: str) -> None:
    assert only_flaw(instance(of(weight=given)))[0] == reason


@pytest.mark.parametrize("digits", [20, 400])
def test_a_weight_of_many_digits(digits: int) -> None:
    value = b'{"features":{"a":1},"weight":1' + b"0" * digits + b"}"
    assert only_flaw(instance(value))[0] in ("bad-weight", "not-json", "not-finite")


def test_good_records_go_on_and_bad_labels_leave_no_class_behind() -> None:
    values = [
        of(label="a", id="i0"),
        b"{",
        of(label="only here", weight=0),
        of(label="b", id="i3"),
        features('{"a":{}}'),
        of(label="a", features={"c": "x"}),
    ]
    decoded = decode_instances(run_of(values))
    assert reasons(decoded) == {1: "not-json", 2: "bad-weight", 4: "wrong-type"}
    assert decoded.record.tolist() == [0, 3, 5]
    assert decoded.ids == ["i0", "i3", "3-105"]
    assert decoded.label_values == ["a", "b"]
    assert classes(decoded) == ["a", "b", "a"]
    assert cells(decoded) == [{"a": 1.5}, {"a": 1.5}, {"c": "x"}]


def test_a_record_with_several_flaws_is_malformed_once() -> None:
    decoded = decode_instances(run_of([of(features={"a": []}, weight=-1, id=[], label={})]))
    assert only_flaw(decoded)[0] == "wrong-type"


@pytest.mark.parametrize(
    "odd", [{}, {"id": "y"}, {"label": "b", "id": "y"}, {"id": "y", "label": "b", "x": 1}]
)
def test_documents_with_the_same_members_and_others_are_read_alike(odd: dict[str, Any]) -> None:
    same = [{"id": f"n{i}", "label": "a", "features": {"v": i}} for i in range(3)]
    documents: list[dict[str, Any]] = [*same, {"features": {"v": 3}} | odd, *same]
    together = decode_instances(run_of([orjson.dumps(document) for document in documents]))
    apart = [instance(orjson.dumps(document)) for document in documents]
    names = [
        None if one_instance.label[0] < 0 else one_instance.label_values[one_instance.label[0]]
        for one_instance in apart
    ]
    assert classes(together) == names
    assert together.ids == [document.get("id", f"3-{100 + row}") for row, document in enumerate(documents)]
