"""Encoding instances and labels: the bytes, the chunks, and the lengths of columns."""

import numpy as np
import orjson
import pyarrow as pa
import pytest

from tests.unit.topics.codecs.samples import cells, run_of
from topics.codecs import decode_instances, encode_controls, encode_instances, encode_labels
from topics.codecs.json.lines import CHUNK, write_documents
from topics.columns.records import Features
from topics.errors import CodecError

FEATURES = Features.of(["a", "b"], [[1.0, float("nan")], [2.5, float("nan")]], {1: ["x\ny", None]})


def test_json_bytes() -> None:
    assert encode_instances(FEATURES) == [
        b'{"features":{"a":1.0,"b":"x\\ny"}}',
        b'{"features":{"a":2.5,"b":null}}',
    ]
    written = encode_instances(FEATURES, ids=["i", "j"], labels=["spam", None], weights=np.array([1.0, 2.0]))
    assert written[0] == b'{"id":"i","features":{"a":1.0,"b":"x\\ny"},"label":"spam","weight":1.0}'
    assert written[1] == b'{"id":"j","features":{"a":2.5,"b":null},"label":null,"weight":2.0}'
    assert encode_instances(Features.of(None, [[1.0, 2.0]])) == [b'{"features":[1.0,2.0]}']


def test_label_bytes() -> None:
    assert encode_labels(["i"], ["x"]) == [b'{"id":"i","label":"x"}']
    assert encode_labels(["i", "j"], [None, "x"], annotators=["ann", None]) == [
        b'{"id":"i","label":null,"declined":true,"annotator":"ann"}',
        b'{"id":"j","label":"x","declined":null,"annotator":null}',
    ]


def test_control_bytes() -> None:
    assert encode_controls([("reset", {"why": "drift"})]) == [b'{"command":"reset","why":"drift"}']


def test_features_survive_that_the_writer_never_changes_its_input() -> None:
    before = FEATURES.values.copy()
    encode_instances(FEATURES)
    assert np.array_equal(FEATURES.values, before, equal_nan=True)


@pytest.mark.parametrize("n", [1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK])
def test_chunks_have_no_seams(n: int) -> None:
    features = Features.of(["a"], np.arange(float(n)).reshape(n, 1))
    written = encode_instances(features, ids=[f"i{row}" for row in range(n)])
    decoded = decode_instances(run_of(written))
    assert decoded.malformed == []
    assert cells(decoded) == [{"a": row} for row in range(n)]
    assert decoded.ids == [f"i{row}" for row in range(n)]


def test_documents_that_look_like_the_break_between_documents() -> None:
    documents = ["\n", ",\n,", {"\n,": ",\n"}, ["\n"], "", {}, None, '"\n,"']
    assert [orjson.loads(text) for text in write_documents(documents)] == documents
    assert write_documents([]) == []


@pytest.mark.parametrize("column", ["ids", "labels", "weights"])
def test_columns_of_another_length_are_refused(column: str) -> None:
    with pytest.raises(CodecError, match=f"{column} has 1 rows; it must have 2, one for each record"):
        encode_instances(FEATURES, **{column: np.ones(1) if column == "weights" else ["x"]})  # type: ignore[arg-type]


def test_labels_of_another_length_are_refused() -> None:
    with pytest.raises(CodecError, match="features has 2 rows; it must have 1"):
        encode_labels(["i"], ["x"], features=FEATURES)


def test_nothing_becomes_nothing() -> None:
    empty = Features.of(["a"], np.empty((0, 1)))
    for form in ("json", "packed", "arrow"):
        assert encode_instances(empty, format=form) == []
        assert encode_labels([], [], format=form) == []


def test_a_missing_number_is_null_in_arrow() -> None:
    """Other readers of a block take NaN for a number."""
    [block] = encode_instances(Features.of(["a"], [[1.0], [float("nan")]]), format="arrow")
    assert pa.ipc.open_stream(block).read_all().column("a").to_pylist() == [1.0, None]
