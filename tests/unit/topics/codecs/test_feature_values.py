"""Feature requests and feature values: what is written is read, what is wrong is named."""

from __future__ import annotations

import math
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.topics.codecs.samples import run_of
from topics.codecs import (
    Limits,
    decode_feature_requests,
    decode_feature_values,
    encode_feature_requests,
    encode_feature_values,
)
from topics.columns.records import FeatureRequest, Malformed

NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)
CELLS = st.floats(allow_nan=False, allow_infinity=False) | st.text(st.characters(codec="utf-8"), max_size=8)


def decoded(document: Any, limits: Limits | None = None) -> Any:
    return decode_feature_values(run_of([orjson.dumps(document)]), limits or Limits())


@given(
    st.lists(
        st.tuples(
            NAMES, st.dictionaries(NAMES, CELLS), st.dictionaries(NAMES, st.none() | NAMES), st.booleans()
        ),
        min_size=1,
        max_size=5,
    )
)
def test_values_that_are_written_are_read(rows: list[Any]) -> None:
    rows = [(i, v, {n: w for n, w in u.items() if n not in v}, f) for i, v, u, f in rows]
    rows = [(i, v, u, f or not (v or u)) for i, v, u, f in rows]
    ids, values, unavailable, finish = map(list, zip(*rows, strict=True))
    values_read = decode_feature_values(run_of(encode_feature_values(ids, values, unavailable, finish)))
    assert values_read.malformed == []
    assert (values_read.ids, values_read.values) == (ids, values)
    assert (values_read.unavailable, values_read.finish) == (unavailable, finish)
    assert values_read.record.tolist() == list(range(len(rows)))


def test_whole_numbers_and_booleans_are_numbers() -> None:
    values_read = decoded({"id": 7, "features": {"a": 1, "b": True, "c": "1"}})
    assert values_read.ids == ["7"]
    assert values_read.values == [{"a": 1.0, "b": 1.0, "c": "1"}]


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ({"features": {"a": 1}}, "missing-field"),
        ({"id": "i"}, "missing-field"),
        ({"id": "i", "features": {}, "unavailable": {}, "finish": False}, "missing-field"),
        ({"id": "i", "features": [1.0]}, "wrong-type"),
        ({"id": "i", "features": {"a": None}}, "wrong-type"),
        ({"id": "i", "features": {"a": [1]}}, "wrong-type"),
        ({"id": "i", "features": {"": 1}}, "wrong-type"),
        ({"id": "i", "unavailable": ["a"]}, "wrong-type"),
        ({"id": "i", "unavailable": {"a": 5}}, "wrong-type"),
        ({"id": "i", "features": {"a": 1}, "unavailable": {"a": "x"}}, "wrong-type"),
        ({"id": "i", "finish": "yes"}, "wrong-type"),
        ({"id": "i", "features": {"a": "x" * 1025}}, "too-long"),
        ({"id": "i", "features": {"x" * 1025: 1}}, "too-long"),
        ({"id": "i" * 1025, "features": {"a": 1}}, "too-long"),
        ([], "wrong-type"),
    ],
)
def test_a_record_that_is_none_says_why(document: Any, reason: str) -> None:
    values_read = decoded(document)
    assert [str(malformed.reason) for malformed in values_read.malformed] == [reason]
    assert len(values_read) == 0


def test_more_features_than_a_record_may_name_are_refused() -> None:
    document = {"id": "i", "features": {"a": 1, "b": 2}, "unavailable": {"c": None}}
    assert [str(malformed.reason) for malformed in decoded(document, Limits(features_max=2)).malformed] == [
        "too-many-features"
    ]
    assert len(decoded(document, Limits(features_max=3))) == 1


def test_the_good_records_of_a_run_go_on_beside_the_bad() -> None:
    values = [b"{nonsense", None, b'{"id":"a","finish":true}', b"\xd6\x47\x01", b'{"id":"b"}']
    values_read = decode_feature_values(run_of(values))
    assert (values_read.ids, values_read.record.tolist(), values_read.finish) == (["a"], [2], [True])
    assert [(malformed.record, str(malformed.reason)) for malformed in values_read.malformed] == [
        (0, "not-json"),
        (1, "null-value"),
        (3, "unknown-content-type"),
        (4, "missing-field"),
    ]


def test_a_request_that_is_written_is_read() -> None:
    known: dict[str, float | str] = {"x": 1.5, "c": "red"}
    asked = FeatureRequest("3-7-q1", "a", ["y", "z"], 2.5, 0.25, known, 1_700_000_000_000)
    unsure = FeatureRequest("3-7-q2", "a", ["z"], 1.0, math.nan, {}, 0)
    requests = decode_feature_requests(encode_feature_requests([asked, unsure]))
    assert requests[0] == asked
    assert isinstance(requests[1], FeatureRequest)
    assert math.isnan(requests[1].utility)


@pytest.mark.parametrize("value", [b"{", b"[]", b"{}", b'{"request_id": 5}'])
def test_a_request_that_is_none_is_malformed(value: bytes) -> None:
    (malformed,) = decode_feature_requests([value])
    assert isinstance(malformed, Malformed)
