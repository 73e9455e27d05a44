"""Parquet files and folders, and folders that Hugging Face `datasets` has saved."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from topics.errors import DatasetError
from topics.readers import FileDataset, open_dataset

Columns = dict[str, pa.Array]
ROWS = {
    "size": pa.array([1.5, None, float("nan"), -300.0]),
    "n": pa.array([1, 2, None, 4], pa.int16()),
    "price": pa.array([Decimal("1.25"), None, Decimal("0.10"), Decimal("7.00")]),
    "colour": pa.array(["red", None, "NA", "red"]),
    "shade": pa.array(["dark", "light", "dark", None]).dictionary_encode(),
    "sold": pa.array([True, False, None, True]),
    "kind": pa.array(["cat", "dog", None, "cat"]),
}
LABEL = {"features": {"kind": {"names": ["dog", "cat"], "_type": "ClassLabel"}, "size": {"_type": "Value"}}}


def read(source: Any, size: int = 4096, **options: Any) -> tuple[FileDataset, np.ndarray, np.ndarray]:
    dataset = open_dataset(source, **options)
    batches = list(dataset.batches(size))
    return dataset, np.concatenate([x for x, _ in batches]), np.concatenate([y for _, y in batches])


def parquet(path: Path, columns: dict[str, pa.Array], **options: Any) -> Path:
    pq.write_table(pa.table(columns), path, **options)
    return path


def saved(
    folder: Path, *shards: dict[str, pa.Array], info: dict[str, Any] | None = None, **state: Any
) -> Path:
    """A folder as `Dataset.save_to_disk` writes it: streams of Arrow, and what belongs to them."""
    folder.mkdir()
    files = [{"filename": f"data-{i:05}-of-{len(shards):05}.arrow"} for i in range(len(shards))]
    for shard, file in zip(shards, files, strict=True):
        table = pa.table(shard)
        with (
            pa.OSFile(str(folder / file["filename"]), "wb") as sink,
            pa.ipc.new_stream(sink, table.schema) as out,
        ):
            out.write_table(table)
    (folder / "dataset_info.json").write_text(json.dumps(info or {}))
    (folder / "state.json").write_text(json.dumps({"_data_files": files, "_split": None, **state}))
    return folder


def test_types_say_what_a_column_is(tmp_path: Path) -> None:
    dataset, x, y = read(parquet(tmp_path / "named.anyhow", ROWS))
    assert dataset.format == "parquet"
    assert dataset.names == ("size", "n", "price", "colour", "shade", "sold")
    assert dataset.kinds == ("numeric",) * 3 + ("nominal",) * 3
    assert dataset.values[3:] == (("red", "NA"), ("dark", "light"), ("true", "false"))
    assert dataset.open == (False, False, False, True, True, True)
    assert (dataset.target, dataset.classes, dataset.classes_open) == ("kind", ("cat", "dog"), True)
    nan = float("nan")
    expected = [
        [1.5, 1, 1.25, 0, 0, 0],
        [nan, 2, nan, nan, 1, 1],
        [nan, nan, 0.1, 1, 0, nan],
        [-300, 4, 7, 0, nan, 0],
    ]
    np.testing.assert_array_equal(x, expected)
    assert x.flags.c_contiguous
    assert (y.tolist(), dataset.rows) == ([0, 1, -1, 0], 4)
    assert y.dtype == np.int32


def test_a_folder_is_its_files_in_the_order_of_their_names(tmp_path: Path) -> None:
    (tmp_path / "set" / "more").mkdir(parents=True)
    for name, first in (("b", 3), ("a", 0), ("more/c", 6)):
        columns = {"x": pa.array([first, first + 1, first + 2]), "y": pa.array([1.0, -1.0, 1.0])}
        parquet(tmp_path / "set" / f"{name}.parquet", columns)
    (tmp_path / "set" / "_metadata.parquet").write_bytes(b"")
    dataset, x, y = read(tmp_path / "set", 2)
    assert x[:, 0].tolist() == list(range(9))
    assert (dataset.classes, y.tolist()) == (("1", "-1"), [0, 1, 0] * 3)
    assert [len(rows) for rows, _ in dataset.batches(4, start=7)] == [2]


@pytest.mark.parametrize("groups", [100, 7])
def test_batches_do_not_depend_on_how_files_are_cut(tmp_path: Path, groups: int) -> None:
    columns = {"w": pa.array([f"w{i % 37}" for i in range(500)]), "y": pa.array([i % 3 for i in range(500)])}
    dataset, x, y = read(parquet(tmp_path / "set", columns, row_group_size=groups), 64)
    assert x[:, 0].tolist() == [i % 37 for i in range(500)]
    assert (dataset.classes, y.tolist()) == (("0", "1", "2"), [i % 3 for i in range(500)])


def test_a_folder_of_hugging_face_has_its_class_names(tmp_path: Path) -> None:
    first = {"size": pa.array([1.0, 2.0]), "kind": pa.array([1, 0]), "extra": pa.array(["a", "b"])}
    second = {"size": pa.array([3.0, 4.0]), "kind": pa.array([-1, 1]), "extra": pa.array(["b", "c"])}
    dataset, x, y = read(saved(tmp_path / "set", first, second, info=LABEL))
    assert dataset.format == "arrow"
    assert (dataset.target, dataset.classes, dataset.classes_open) == ("kind", ("dog", "cat"), False)
    assert (x.tolist(), y.tolist()) == ([[1, 0], [2, 1], [3, 1], [4, 2]], [1, 0, -1, 1])
    as_feature, x, _ = read(tmp_path / "set", target="extra")
    assert as_feature.values == ((), ("dog", "cat"))
    np.testing.assert_array_equal(x, [[1, 1], [2, 0], [3, np.nan], [4, 1]])


def test_class_names_in_the_metadata_of_parquet_count_too(tmp_path: Path) -> None:
    table = pa.table({"size": pa.array([1.0, 2.0]), "kind": pa.array([1, 0])})
    pq.write_table(
        table.replace_schema_metadata({"huggingface": json.dumps({"info": LABEL})}), tmp_path / "set"
    )
    dataset, _, y = read(tmp_path / "set")
    assert (dataset.classes, y.tolist()) == (("dog", "cat"), [1, 0])


def test_a_file_of_arrow_is_read_like_a_stream(tmp_path: Path) -> None:
    table = pa.table({"x": pa.array(range(20_000)), "y": pa.array(["a", "b"] * 10_000)})
    for make, name in ((pa.ipc.new_file, "file"), (pa.ipc.new_stream, "stream")):
        with pa.OSFile(str(tmp_path / name), "wb") as sink, make(sink, table.schema) as out:
            out.write_table(table)
        _, x, y = read(tmp_path / name)
        assert x[:, 0].tolist() == list(range(20_000))
        assert y.tolist() == [0, 1] * 10_000


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    def refused(source: Path | list[Path], match: str, **options: Any) -> None:
        with pytest.raises(DatasetError, match=match):
            read(source, **options)

    when = parquet(tmp_path / "when", {"at": pa.array([1, 2], pa.timestamp("ms")), "y": pa.array(["a", "b"])})
    refused(when, r"when: column 'at' is of type timestamp\[ms\]; .*\(--ignore at\)")
    assert read(when, ignore=["at"])[0].names == ()
    infinite = {"x": pa.array([1.0, float("inf")]), "y": pa.array([1, 2])}
    refused(parquet(tmp_path / "infinite", infinite), "row 1: x=inf must be finite")
    refused(when, "header has no meaning for parquet files", header=True)
    refused(when, "must all be of one format, arrow; these are parquet", format="arrow")
    other = parquet(tmp_path / "other", {"at": pa.array([1.0]), "y": pa.array(["a"])})
    refused([other, when], "when: its columns must be the columns of .*other", ignore=["at"])
    empty = parquet(tmp_path / "empty", {"x": pa.array([], pa.int64()), "y": pa.array([], pa.string())})
    refused(empty, "empty: has no rows")
    broken = tmp_path / "broken"
    broken.write_bytes(when.read_bytes()[:100])
    refused(broken, "broken: cannot be read: ")
    many = {"x": pa.array([1] * 2000), "y": pa.array(range(2000))}
    refused(parquet(tmp_path / "many", many), "row 1024: y='1024' is distinct value number 1025; .*--target")
    bad = saved(tmp_path / "bad", {"size": pa.array([1.0]), "kind": pa.array([7])}, info=LABEL)
    refused(bad, "row 0: kind='7' must be one of dog, cat")
    chosen = saved(tmp_path / "chosen", ROWS, _indices_data_files=[{"filename": "indices.arrow"}])
    refused(chosen, "flatten_indices")
    (tmp_path / "dict").mkdir()
    (tmp_path / "dict" / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    refused(tmp_path / "dict", "has the splits train, test; name one")
    (tmp_path / "hive" / "day=1").mkdir(parents=True)
    parquet(tmp_path / "hive" / "day=1" / "a.parquet", ROWS)
    refused(tmp_path / "hive", "is partitioned by a column")
    text = tmp_path / "set.csv"
    text.write_text("a,b\n1,x\n")
    refused([when, text], "must all be of one format, whichever; these are parquet and text")
    refused(text, "is not of the format parquet", format="parquet")


def test_blanks_of_texts_count(tmp_path: Path) -> None:
    columns = {"colour": pa.array(["red ", "red"]), "class": pa.array([" p", "p"])}
    dataset, x, y = read(parquet(tmp_path / "rows.parquet", columns))
    assert dataset.values == (("red ", "red"),) and dataset.classes == (" p", "p")
    assert x.T.tolist() == [[0, 1]] and y.tolist() == [0, 1]


@pytest.mark.parametrize("index", [["__index_level_0__"], ["id"]])
def test_the_index_of_a_dataframe_is_no_column(tmp_path: Path, index: list[str]) -> None:
    """As `DataFrame.to_parquet` of pandas writes it: the index is the last column, named in the metadata."""
    columns = {"x": pa.array([1, 2]), "k": pa.array(["a", "b"]), index[0]: pa.array([7, 3])}
    pandas = json.dumps({"index_columns": index, "columns": []})
    table = pa.table(columns).replace_schema_metadata({"pandas": pandas})
    path = tmp_path / "rows.parquet"
    pq.write_table(table, path)
    dataset, x, _ = read(path)
    assert (dataset.names, dataset.target) == (("x",), "k") and x.tolist() == [[1], [2]]
    assert index[0] in dataset.guesses[0]
    assert read(path, target=index[0])[0].names == ("x", "k")
    range_index = json.dumps({"index_columns": [{"kind": "range", "start": 0, "stop": 2, "step": 1}]})
    pq.write_table(table.replace_schema_metadata({"pandas": range_index}), path)
    assert read(path)[0].names == ("x", "k")


def test_an_empty_last_column_is_not_the_target(tmp_path: Path) -> None:
    columns = {"x": pa.array([1, 2]), "k": pa.array(["a", "b"]), "note": pa.array([None, None], pa.string())}
    dataset, _, y = read(parquet(tmp_path / "rows.parquet", columns))
    assert dataset.target == "k" and y.tolist() == [0, 1]
    assert dataset.guesses == ("column 'note' is empty in the first rows and not the target",)
