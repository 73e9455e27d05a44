"""Arrow blocks of instances and labels: types, missing cells, bad rows, and streams that are none."""

import struct

import numpy as np
import pyarrow as pa
import pytest

from tests.unit.topics.codecs.samples import (
    cells,
    classes,
    instance,
    keys_of,
    label,
    only_flaw,
    reasons,
    run_of,
    stream,
)
from topics.codecs import Limits, decode_instances, decode_labels, encode_instances, encode_labels
from topics.codecs.arrow.layout import KEPT_BYTES
from topics.codecs.arrow.metadata import StreamOutline, inspect
from topics.codecs.flaws import Flaw
from topics.columns.records import Features, weight_rule
from topics.errors import CodecError, Reason

NAN, INF = float("nan"), float("inf")
LONG = "a text longer than twelve bytes"


def block(**columns: object) -> bytes:
    return stream(pa.table(columns))


def test_rows_of_numbers() -> None:
    decoded = instance(block(a=[1.0, 2.0], b=[3.0, None]))
    assert cells(decoded) == [{"a": 1, "b": 3}, {"a": 2, "b": None}]
    assert decoded.ids == ["3-100-0", "3-100-1"]
    assert decoded.record.tolist() == [0, 0]
    assert decoded.row.tolist() == [0, 1]
    assert decoded.blocks.tolist() == [[0, 0, 2]]
    assert decoded.blocks.dtype == np.int32
    assert decoded.label.tolist() == [-1, -1]
    assert decoded.weight.tolist() == [1, 1]


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([1, None, -3], pa.int8()), [1, None, -3]),
        (pa.array([1, None, 2**64 - 1], pa.uint64()), [1, None, 2.0**64]),
        (pa.array([2**53 + 1, 0, None], pa.int64()), [2.0**53, 0, None]),
        (pa.array([1.5, NAN, None], pa.float32()), [1.5, None, None]),
        (pa.array(np.array([1.5, NAN, 2], np.float16)), [1.5, None, 2]),
        (pa.array([True, False, None]), [1, 0, None]),
        (pa.nulls(3), [None, None, None]),
        (pa.array([7, 8, 7]).dictionary_encode(), [7, 8, 7]),
        (pa.array(["x", None, "é"]), ["x", None, "é"]),
        (pa.array(["x", None, ""], pa.large_string()), ["x", None, ""]),
        (pa.array(["x", None, LONG], pa.string_view()), ["x", None, LONG]),
        (pa.array(["x", None, "x"]).dictionary_encode(), ["x", None, "x"]),
        (
            pa.DictionaryArray.from_arrays(pa.array([1, 0, 1], pa.uint8()), pa.array(["p", None])),
            [None, "p", None],
        ),
    ],
)
def test_types_of_features(column: pa.Array, expected: list[object]) -> None:
    decoded = instance(stream(pa.table({"z": pa.array([0.0, 1.0, 2.0]), "f": column})))
    assert decoded.malformed == []
    assert [row and row["f"] for row in cells(decoded)] == expected


@pytest.mark.parametrize(
    "column",
    [
        pa.array([[1.0], [2.0]]),
        pa.array([{"a": 1}, {"a": 2}]),
        pa.array([b"a", b"b"]),
        pa.array([1, 2], pa.timestamp("ms")),
        pa.array([1, 2], pa.decimal128(5, 2)),
        pa.array([b"a", b"b"]).dictionary_encode(),
    ],
)
def test_types_that_are_no_features(column: pa.Array) -> None:
    reason, detail = only_flaw(instance(stream(pa.table({"f": column}))))
    assert reason == "wrong-type"
    assert detail == f"column 'f' must hold numbers or strings; got {column.type}"


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([1, 0, None]), ["1", "0", None]),
        (pa.array([1.0, -2.0, None]), ["1", "-2", None]),
        (pa.array([1.0, 2.0, None], pa.float16()), ["1", "2", None]),
        (pa.array([True, False, None]), ["true", "false", None]),
        (pa.array(["b", None, "a"]), ["b", None, "a"]),
        (pa.array(["b", None, "a"], pa.string_view()), ["b", None, "a"]),
        (pa.array(["b", None, "b"], pa.large_string()), ["b", None, "b"]),
        (pa.array(["b", None, "a"]).dictionary_encode(), ["b", None, "a"]),
        (pa.array([3, 3, 4]).dictionary_encode(), ["3", "3", "4"]),
        (pa.DictionaryArray.from_arrays([2, 0, None], ["b", "unused", "a"]), ["a", "b", None]),
        (pa.DictionaryArray.from_arrays([0, 1, 2], ["a", "a", ""], safe=False), ["a", "a"]),
        (pa.nulls(3), [None, None, None]),
    ],
)
def test_types_of_labels(column: pa.Array, expected: list[str | None]) -> None:
    decoded = instance(stream(pa.table({"f": [1.0, 2.0, 3.0], "label": column})))
    assert classes(decoded) == expected
    assert sorted(decoded.label_values) == sorted({name for name in expected if name is not None})


def test_ids_and_weights() -> None:
    decoded = instance(
        block(f=[1.0, 2.0, 3.0], id=["a", None, "c"], weight=pa.array([2, None, 1], pa.int32()))
    )
    assert decoded.ids == ["a", "3-100-1", "c"]
    assert decoded.weight.tolist() == [2, 1, 1]
    assert instance(block(f=[1.0], id=[7])).ids == ["7"]


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"id": [1.5]}, "column 'id' must hold strings or whole numbers; got double"),
        ({"label": [[1]]}, "column 'label' must hold class names; got list"),
        ({"weight": ["1"]}, "column 'weight' must hold numbers; got string"),
    ],
)
def test_columns_of_a_wrong_type(columns: dict[str, list[object]], words: str) -> None:
    reason, detail = only_flaw(instance(block(f=[1.0], **columns)))
    assert reason == "wrong-type"
    assert words in detail


def test_bad_rows_are_one_malformed_and_the_others_go_on() -> None:
    decoded = instance(
        block(
            f=[1.0, INF, 3.0, 4.0, 5.0, 6.0],
            text=["a", "b", None, "d", "e", "f"],
            label=["x", "y", "x", "z", "", "x"],
            weight=[1.0, 1.0, NAN, 1e20, 1.0, None],
            id=["0", "1", "2", "3", "4", ""],
        )
    )
    (bad,) = decoded.malformed
    assert bad.record == 0
    assert bad.reason is Reason.BAD_ROWS
    assert bad.rows == (
        (1, "not-finite"),
        (2, "bad-weight"),
        (3, "bad-weight"),
        (4, "wrong-type"),
        (5, "wrong-type"),
    )
    assert bad.detail == (
        f"5 of 6 rows are bad; row 1: feature 'f' is infinite; row 2: {weight_rule(NAN)}; "
        f"row 3: {weight_rule(1e20)}"
    )
    assert decoded.ids == ["0"]
    assert decoded.row.tolist() == [0]
    assert decoded.label_values == ["x"]
    assert cells(decoded) == [{"f": 1, "text": "a"}]
    assert decoded.blocks.tolist() == [[0, 0, 1]]


def test_default_ids_count_the_bad_rows() -> None:
    decoded = instance(block(f=[INF, 1.0, INF, 3.0]))
    assert decoded.ids == ["3-100-1", "3-100-3"]
    assert decoded.row.tolist() == [1, 3]


def test_a_block_of_bad_rows_only_has_no_rows() -> None:
    decoded = instance(block(f=[INF, -INF]))
    assert len(decoded) == 0
    assert decoded.blocks.shape == (0, 3)
    assert decoded.malformed[0].rows == ((0, "not-finite"), (1, "not-finite"))


def test_several_blocks_and_batches() -> None:
    table = pa.table({"f": [1.0, 2.0, 3.0], "s": pa.array(["a", "b", "a"]).dictionary_encode()})
    (whole,) = table.to_batches()
    parts = stream(
        pa.Table.from_batches([whole.slice(0, 0), whole.slice(0, 1), whole.slice(1, 2), whole.slice(0, 0)])
    )
    values = [parts, b"\xff\xff\xff\xff", block(g=[4.0]), block(f=[5.0], s=["c"])]
    decoded = decode_instances(run_of(values, keys=[b"a", b"a", b"b", b"a"]))
    assert reasons(decoded) == {1: "bad-block"}
    assert cells(decoded) == [
        {"f": 1, "s": "a"},
        {"f": 2, "s": "b"},
        {"f": 3, "s": "a"},
        {"g": 4},
        {"f": 5, "s": "c"},
    ]
    assert len(decoded.features) == 2
    assert decoded.blocks.tolist() == [[0, 0, 3], [2, 3, 1], [3, 4, 1]]
    assert keys_of(decoded) == ["a", "a", "a", "b", "a"]
    assert decoded.ids == ["3-100-0", "3-100-1", "3-100-2", "3-102-0", "3-103-0"]


def test_row_limit() -> None:
    limits = Limits(block_max_rows=2)
    decoded = decode_instances(run_of([block(f=[1.0, 2.0]), block(f=[1.0, 2.0, 3.0])]), limits)
    assert reasons(decoded) == {1: "too-many-rows"}
    assert decoded.malformed[0].detail == "3 rows; block.max.rows=2"
    assert len(decoded) == 2


def test_a_column_of_nulls_costs_no_bytes_and_still_counts_its_rows() -> None:
    value = stream(pa.table({"f": pa.nulls(1_000_000)}))
    assert len(value) < 1000
    assert reasons(instance(value)) == {0: "too-many-rows"}


@pytest.mark.parametrize("compression", ["lz4", "zstd"])
def test_compressed_bodies_are_refused_before_they_are_unpacked(compression: str) -> None:
    table = pa.table({"f": np.zeros(5000), "s": pa.array(["a"] * 5000).dictionary_encode()})
    reason, detail = only_flaw(instance(stream(table, compression=compression)))
    assert reason == "bad-block"
    assert detail == "a compressed body is refused; set compression.type of the producer instead"


def test_streams_that_are_none() -> None:
    good = block(f=[1.0, 2.0], s=["a", "b"])
    twice = stream(pa.Table.from_arrays([pa.array([1.0]), pa.array([2.0])], names=["f", "f"]))
    unnamed = stream(pa.Table.from_arrays([pa.array([1.0])], names=[""]))
    assert only_flaw(instance(twice)) == ("bad-block", "column 'f' must not occur twice")
    assert only_flaw(instance(unnamed))[0] == "wrong-type"
    assert only_flaw(instance(block(f=pa.array([], pa.float64())))) == (
        "bad-block",
        "the block must have at least one row",
    )
    assert only_flaw(instance(block(id=["a"]))) == (
        "missing-field",
        "the block must have at least one column of features",
    )
    # Cut anywhere inside a message. Cut between two messages it is a shorter stream: one without rows.
    for stop in range(1, len(good) - 9):
        assert only_flaw(instance(good[:stop]))[0] in {"bad-block", "not-json"}, stop
    assert len(instance(good[:-8])) == 2  # without the mark of its end


def test_offsets_and_codes_of_a_stranger_are_checked() -> None:
    value = bytearray(block(s=pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int32()), ["a", "b"])))
    at = value.rindex(struct.pack("<2i", 0, 1))
    value[at : at + 8] = struct.pack("<2i", 0, 1_000_000)
    assert only_flaw(instance(bytes(value)))[0] == "bad-block"
    value = bytearray(block(s=["ab", "c"]))
    at = value.rindex(struct.pack("<3i", 0, 2, 3))
    value[at : at + 12] = struct.pack("<3i", 0, 2, 1_000_000)
    assert only_flaw(instance(bytes(value)))[0] == "bad-block"
    value = bytearray(block(s=["ab", "c"]))
    value[value.rindex(b"abc")] = 0xFF
    assert only_flaw(instance(bytes(value)))[0] == "bad-block"


def test_inspect_counts_the_rows_of_all_batches() -> None:
    table = pa.table({"f": np.arange(10.0), "s": pa.array(["a", "b"] * 5).dictionary_encode()})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=3)
    value = sink.getvalue().to_pybytes()
    outline = inspect(value, 10)
    assert isinstance(outline, StreamOutline)
    assert outline.rows == 10
    assert len(outline.batches) == 4
    assert pa.ipc.read_schema(pa.py_buffer(value[: outline.schema_stop])) == table.schema
    flaw = inspect(value, 9)
    assert isinstance(flaw, Flaw)
    assert flaw.reason is Reason.TOO_MANY_ROWS


def test_large_schemas_are_read_and_not_kept() -> None:
    columns = {f"feature number {number}": [float(number)] for number in range(500)}
    value = block(**columns)
    outline = inspect(value, 1)
    assert isinstance(outline, StreamOutline)
    assert outline.schema_stop > KEPT_BYTES
    assert list((cells(instance(value))[0] or {}).values()) == list(range(500))


def test_labels() -> None:
    value = block(
        id=["a", "b", "c"],
        label=["x", None, "y"],
        declined=[False, True, None],
        annotator=["ann", None, "bob"],
        weight=[1.0, 2.0, None],
        f=[1.0, None, 3.0],
    )
    decoded = label(value)
    assert decoded.malformed == []
    assert decoded.ids == ["a", "b", "c"]
    assert classes(decoded) == ["x", None, "y"]
    assert decoded.annotators == ["ann", None, "bob"]
    assert decoded.weight.tolist() == [1, 2, 1]
    assert cells(decoded) == [{"f": 1}, {"f": None}, {"f": 3}]
    assert decoded.row.tolist() == [0, 1, 2]


def test_bad_rows_of_labels() -> None:
    decoded = label(
        block(id=["a", None, "c", "d"], label=["x", "x", None, "x"], declined=[False, False, False, True])
    )
    (bad,) = decoded.malformed
    assert bad.rows == ((1, "missing-field"), (2, "missing-field"), (3, "wrong-type"))
    assert decoded.ids == ["a"]
    assert len(label(block(label=["x"]))) == 0
    assert only_flaw(label(block(id=["a"], label=["x"], declined=["no"])))[0] == "wrong-type"


def test_labels_of_several_blocks() -> None:
    decoded = decode_labels(run_of([block(id=["a"], label=["x"]), block(id=["b"], label=["y"], f=[1.0])]))
    assert decoded.ids == ["a", "b"]
    assert classes(decoded) == ["x", "y"]
    assert cells(decoded) == [None, {"f": 1}]


def test_what_cannot_be_written_is_refused() -> None:
    with pytest.raises(CodecError, match="features=by position must have names"):
        encode_instances(Features.of(None, [[1.0]]), format="arrow")
    with pytest.raises(CodecError, match="feature 'label' must have another name"):
        encode_instances(Features.of(["label"], [[1.0]]), format="arrow")
    with pytest.raises(CodecError, match="feature 'annotator' must have another name"):
        encode_labels(["i"], ["x"], format="arrow", features=Features.of(["annotator"], [[1.0]]))
    (value,) = encode_instances(Features.of(["annotator"], [[1.0]]), format="arrow")
    assert cells(instance(value)) == [{"annotator": 1}]


@pytest.mark.parametrize("kind", ["dictionary", "views"])
def test_texts_that_cells_share_may_not_unpack_to_much_more_than_the_block(kind: str) -> None:
    rows, word = 10_000, "v" * 1000
    few, many = (pa.array([word], pa.string_view() if kind == "views" else None) for _ in range(2))
    nobody = pa.DictionaryArray.from_arrays(pa.array([None] * rows, pa.int8()), few)
    column = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int8)), many)
    taken = instance(block(a=column, b=nobody))
    assert (len(taken), taken.malformed) == (rows, [])
    reason, detail = only_flaw(instance(block(a=column, b=column)))
    assert reason == Reason.TOO_LARGE
    assert "its dictionaries and views unpack to 20,000,000 bytes of text; " in detail
    assert "may have 16,777,216: send fewer rows" in detail


@pytest.mark.parametrize(("batches", "is_good"), [(4095, True), (4096, False)])
def test_a_block_has_at_most_4096_messages(batches: int, is_good: bool) -> None:
    """The schema is one of them, and each batch."""
    table = pa.table({"a": np.arange(batches, dtype=np.float64)})
    decoded = instance(stream(table.to_reader(max_chunksize=1).read_all()))
    assert len(decoded) == (batches if is_good else 0)
    if not is_good:
        assert only_flaw(decoded) == ("bad-block", "the block must have at most 4,096 messages")
