"""Ids of the rows of blocks stay Arrow columns, and are still strings to whoever looks at one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from tests.unit.topics.codecs.samples import instance, run_of, stream
from topics.codecs import decode_instances, encode_predictions
from topics.codecs.arrow.ids import Ids, given, joined, numbered
from topics.codecs.arrow.predictions import MAX_KEPT_CLASSES
from topics.columns.records import Predictions


@pytest.mark.parametrize("n", [1, 2, 9, 10, 11, 16, 17, 99, 100, 101, 128, 999, 1000, 1001, 1025, 10_001])
def test_rows_are_numbered_through_all_lengths(n: int) -> None:
    ids = numbered("3-4711", np.arange(n, dtype=np.int32))
    assert list(ids) == [f"3-4711-{row}" for row in range(n)]
    ids.column.validate(full=True)


def test_rows_keep_their_numbers_where_others_are_bad() -> None:
    assert numbered("0-7", np.array([1, 5, 77], np.int32)) == ["0-7-1", "0-7-5", "0-7-77"]


def test_heads_of_one_length_do_not_meet() -> None:
    first, second = (numbered(head, np.arange(20, dtype=np.int32)) for head in ("1-10", "1-11"))
    assert (first[0], second[0], first[19]) == ("1-10-0", "1-11-0", "1-10-19")


def test_a_sequence_of_strings() -> None:
    ids = Ids(pa.array(["a", "b", "c"]))
    assert len(ids) == 3
    assert ids[1] == "b"
    assert ids[-1] == "c"
    assert ids[1:] == ["b", "c"]
    assert isinstance(ids[1:], Ids)
    assert "b" in ids
    assert ids != ["a", "b"]
    assert ids != 5
    assert repr(ids) == "['a', 'b', 'c']"


def test_joined_ids_are_cut_again_where_a_block_ends_and_elsewhere() -> None:
    ids = joined([Ids(pa.array(["a", "b"])), Ids(pa.array(["c"])), Ids(pa.array(["d", "e"]))])
    assert ids == ["a", "b", "c", "d", "e"]
    part = ids[1:4]
    assert isinstance(part, Ids)
    assert part.column.to_pylist() == ["b", "c", "d"]


def test_joined_with_a_list_is_a_list() -> None:
    assert joined([Ids(pa.array(["a"])), ["b"]]) == ["a", "b"]
    assert joined([]) == []


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["a", None]),
        pa.array(["a", ""]),
        pa.array([1, 2]),
        pa.array(["a", "b"], pa.large_string()),
        pa.array(["a", "b"]).dictionary_encode(),
    ],
    ids=str,
)
def test_columns_whose_cells_have_to_be_looked_at(column: pa.Array) -> None:
    assert given(column) is None


def test_ids_of_the_producer_pass_through_to_the_answer() -> None:
    decoded = instance(stream(pa.table({"a": [1.0, 2.0], "id": ["x", "ü"]})))
    assert isinstance(decoded.ids, Ids)
    assert decoded.ids == ["x", "ü"]
    sent = Predictions(
        ("p",), decoded.ids, np.zeros(2, np.int32), np.ones((2, 1)), np.arange(2, dtype=np.int64)
    )
    (value,) = encode_predictions(sent, "arrow")
    assert pa.ipc.open_stream(value).read_all()["id"].to_pylist() == ["x", "ü"]


def test_blocks_of_every_kind_of_ids_side_by_side() -> None:
    blocks: list[dict[str, object]] = [
        {"a": [1.0, 2.0]},
        {"a": [1.0], "id": ["mine"]},
        {"a": [1.0, 2.0], "id": [None, "other"]},
        {"a": [1.0], "id": [7]},
        {"a": [1.0, float("inf"), 3.0]},
    ]
    decoded = decode_instances(run_of([stream(pa.table(block)) for block in blocks]))
    assert decoded.ids == [
        "3-100-0", "3-100-1", "mine", "3-102-0", "other", "7", "3-104-0", "3-104-2",
    ]  # fmt: skip


def as_pyarrow_writes(predictions: Predictions) -> bytes:
    """Return the stream of the same columns as pyarrow's own writer makes it."""
    dead = predictions.version == -1
    codes = pa.array(predictions.prediction, mask=dead | (predictions.prediction < 0))
    columns = {
        "id": pa.array(list(predictions.ids), pa.string(), mask=dead),
        "label": pa.DictionaryArray.from_arrays(codes, pa.array(predictions.classes, pa.string())),
        "version": pa.array(predictions.version, mask=dead),
    }
    if predictions.classes:
        children = [pa.array(column) for column in predictions.probability.T[: len(predictions.classes)]]
        columns["probabilities"] = pa.StructArray.from_arrays(
            children, names=list(predictions.classes), mask=pa.array(dead)
        )
    if predictions.explanation is not None:
        columns["explanation"] = pa.array(predictions.explanation, pa.string(), mask=dead)
    return stream(pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns)))


@pytest.mark.parametrize("dead", [False, True])
@pytest.mark.parametrize("explained", [False, True])
@pytest.mark.parametrize("k", [0, 1, 2, 70, MAX_KEPT_CLASSES + 1])
def test_blocks_are_the_bytes_that_pyarrow_writes(k: int, explained: bool, dead: bool) -> None:
    draw = np.random.default_rng(k)
    n = 40
    version = np.arange(n)
    version[::3] = -1 if dead else 5
    predictions = Predictions(
        tuple(f"c{code}" for code in range(k)),
        numbered("1-2", np.arange(n, dtype=np.int32)),
        draw.integers(-1, k, n).astype(np.int32) if k else np.full(n, -1, np.int32),
        draw.random((n, k + 1)),
        version,
        [None if row % 2 else f"rule {row}" for row in range(n)] if explained else None,
    )
    assert encode_predictions(predictions, "arrow") == [as_pyarrow_writes(predictions)]
