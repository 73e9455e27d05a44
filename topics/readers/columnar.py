"""Columnar files: Parquet, and the Arrow files of a folder that Hugging Face `datasets` has saved.

- Integers, floats and decimals are numeric; strings, booleans and dictionaries are nominal with open values;
  a `ClassLabel` of Hugging Face is nominal with a closed list, its names. Columns of other types (times,
  lists, images) have to be left out.
- Missing values: null, NaN among numbers, and -1 in a `ClassLabel`. Infinity is refused. A text is never
  "missing".
- The class is the column `class`, else the only `ClassLabel`, else the last one with values, unless an option
  names it; class names are canonical (`1.0` is `1`).
- Columns that hold the index of a pandas DataFrame are left out, as pandas makes no column of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from topics.errors import DatasetError
from topics.readers.dataset import CLASSES_LIMIT, VALUES_LIMIT, Batch, FileDataset
from topics.readers.file_layout import Column, ColumnRef, FileLayout, check_names, default_target, find_column
from topics.readers.vocabulary import (
    NO_CODE,
    TooManyValuesError,
    UnknownValueError,
    Vocabulary,
    canonical_label,
)

ROWS: Final = 8192  # rows that are read at a time
PARQUET, ARROW_FILE = b"PAR1", b"ARROW1"
_PANDAS: Final = b"pandas"  # metadata of a schema: {"index_columns": [column, …]}
_FEATURES: Final = b"huggingface"  # metadata of a schema: {"info": {"features": {column: {"_type": …}}}}
_NOTHING: Final[frozenset[str]] = frozenset()


class ColumnarDataset(FileDataset):
    """Rows of one or more files with the same columns."""

    def __init__(
        self,
        format: str,
        paths: Sequence[Path],
        target: ColumnRef | None = None,
        *,
        labelled: bool = True,
        nominal: Sequence[ColumnRef] = (),
        ignore: Sequence[ColumnRef] = (),
        classes: Sequence[str] | None = None,
    ) -> None:
        """Read the schema of the first file; the other files must have the same columns."""
        self.format = format
        path = str(paths[0])
        self._path = paths[0]
        self._schema = _schema_of(paths[0])
        self._named = _class_labels(self._schema, paths[0])
        self._layout = self._lay_out(path, target, labelled, nominal, ignore, classes)
        chosen = None if self._layout.target is None else self._layout.columns[self._layout.target]
        vocabulary = chosen.vocabulary if chosen else None
        super().__init__(
            paths,
            self._layout.names,
            self._layout.vocabularies,
            chosen.name if chosen else None,
            Vocabulary(limit=0, is_open=False) if vocabulary is None else vocabulary,
        )

    def _lay_out(
        self,
        path: str,
        target: ColumnRef | None,
        labelled: bool,
        nominal: Sequence[ColumnRef],
        ignore: Sequence[ColumnRef],
        classes: Sequence[str] | None,
    ) -> FileLayout:
        names = self._schema.names
        if not names:
            message = "has no columns"
            raise DatasetError(message, path)
        check_names(names, path)
        ignored = {find_column(names, ref, "ignore", path) for ref in ignore}
        declared = {find_column(names, ref, "nominal", path) for ref in nominal}
        named_target = None if target is None else find_column(names, target, "target", path)
        index = _pandas_index(self._schema) - declared - {named_target}
        if index and index < set(range(len(names))):
            ignored |= index
            listed = ", ".join(repr(names[j]) for j in sorted(index))
            self.guesses += (
                f"the index of pandas is left out: {listed} (reset_index() makes columns of it)",
            )
        used = [j for j in range(len(names)) if j not in ignored]
        chosen = None
        if labelled:
            chosen = self._target_of(names, used) if named_target is None else named_target
        columns = [
            Column(field.name, self._vocabulary(field, path, j == chosen, j in declared, classes))
            if j not in ignored
            else Column(field.name, None)
            for j, field in enumerate(self._schema)
        ]
        features = tuple(j for j in range(len(names)) if j != chosen and j not in ignored)
        return FileLayout(tuple(columns), features, chosen)

    def _target_of(self, names: Sequence[str], candidates: Sequence[int]) -> int | None:
        """Return the index of the class column if no option names it."""
        chosen = default_target(names, candidates)
        if chosen is None or names[chosen].lower() == "class":
            return chosen
        labels = [j for j in candidates if names[j] in self._named]
        if len(labels) == 1:
            return labels[0]
        for j in reversed(candidates):
            first = next(_batches(self._path, [names[j]]), None)
            if first is None or first.column(0).null_count < len(first):
                return j
            self.guesses += (f"column {names[j]!r} is empty in the first rows and not the target",)
        return chosen

    def _vocabulary(
        self, field: pa.Field, path: str, is_target: bool, is_nominal: bool, classes: Sequence[str] | None
    ) -> Vocabulary | None:
        """Return the values of a column, None for a numeric column."""
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
        if not (is_number or pa.types.is_boolean(kind) or _is_text(kind) or pa.types.is_null(kind)):
            message = (
                f"column {field.name!r} is of type {field.type}; features are numbers, texts and booleans: "
                f"leave it out (--ignore {field.name})"
            )
            raise DatasetError(message, path)
        names = self._named.get(field.name)
        if is_target:
            declared = classes if classes is not None else names
            return Vocabulary(
                declared or (),
                limit=CLASSES_LIMIT,
                is_open=declared is None,
                canonical=canonical_label,
                missing=_NOTHING,
            )
        if names is not None:
            return Vocabulary(names, limit=VALUES_LIMIT, is_open=False, missing=_NOTHING)
        if is_number and not is_nominal and not pa.types.is_dictionary(field.type):
            return None
        if pa.types.is_null(kind) and not is_nominal:
            return None
        return Vocabulary(limit=VALUES_LIMIT, missing=_NOTHING)

    def _chunks(self) -> Iterator[Batch]:
        names = self._schema.names
        used = [names[j] for j in self._layout.used]
        for path in self.paths:
            schema = _schema_of(path)
            if [(field.name, field.type) for field in schema] != [
                (field.name, field.type) for field in self._schema
            ]:
                message = (
                    f"its columns must be the columns of {self.paths[0]} with their types; all files of a "
                    "stream have the same columns"
                )
                raise DatasetError(message, str(path))
            first = 0
            for batch in _batches(path, used):
                yield self._parsed(batch, str(path), first)
                first += len(batch)

    def _parsed(self, batch: pa.RecordBatch, path: str, first: int) -> Batch:
        x = np.empty((len(batch), len(self._layout.features)))
        for place, j in enumerate(self._layout.features):
            column = self._layout.columns[j]
            cells = batch.column(column.name)
            if column.vocabulary is None:
                x[:, place] = self._numbers(cells, column.name, path, first)
            else:
                codes = self._codes(cells, column, column.vocabulary, path, first)
                x[:, place] = np.where(codes < 0, np.nan, codes)
        if self._layout.target is None:
            return x, np.full(len(batch), -1, dtype=np.int32)
        target = self._layout.columns[self._layout.target]
        assert target.vocabulary is not None
        return x, self._codes(batch.column(target.name), target, target.vocabulary, path, first)

    def _numbers(self, cells: pa.Array, name: str, path: str, first: int) -> npt.NDArray[np.float64]:
        numbers: npt.NDArray[np.float64] = (
            cells.cast(pa.float64(), safe=False).fill_null(float("nan")).to_numpy(zero_copy_only=False)
        )
        infinite = np.flatnonzero(np.isinf(numbers))
        if len(infinite):
            row = int(infinite[0])
            message = (
                f"row {first + row}: {name}={numbers[row]} must be finite; null stands for a missing number"
            )
            raise DatasetError(message, path)
        return numbers

    def _codes(
        self, cells: pa.Array, column: Column, vocabulary: Vocabulary, path: str, first: int
    ) -> npt.NDArray[np.int32]:
        """Return the codes of n cells, -1 for a missing value."""
        if pa.types.is_dictionary(cells.type):
            cells = cells.dictionary_decode()  # its dictionary may be in another order than its cells
        if pa.types.is_floating(cells.type):
            cells = pc.if_else(pc.is_nan(cells), pa.scalar(None, cells.type), cells)
        encoded = cells.dictionary_encode()
        words = encoded.dictionary.to_pylist()
        table = np.full(len(words) + 1, -1, dtype=np.int32)  # the last element, index -1, is for nulls
        for at, word in enumerate(words):
            try:
                text = self._word(word, column.name)
                table[at] = NO_CODE if text is None else vocabulary.code(text)
            except (UnknownValueError, TooManyValuesError) as failure:
                places = pc.index(encoded.indices, at).as_py()
                message = f"row {first + places}: {_why(failure, column, word)}"
                raise DatasetError(message, path) from None
        indices = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        codes: npt.NDArray[np.int32] = table[indices]
        return codes

    def _word(self, value: Any, column: str) -> str | None:
        """Return the name of a value; None: it is missing."""
        names = self._named.get(column)
        if names is not None and isinstance(value, int):
            if value == -1:
                return None
            if not 0 <= value < len(names):
                raise UnknownValueError(str(value))
            return names[value]
        if isinstance(value, bool):
            return "true" if value else "false"
        return value if isinstance(value, str) else canonical_label(str(value))


def columnar_files(path: Path) -> tuple[str, list[Path]] | None:
    """Return format and files of a path, None if they are neither Parquet nor Arrow.

    Parquet files of a folder come in the order of their names, files of Hugging Face in the order of its
    state file.
    """
    if path.is_dir():
        return _folder(path)
    if not path.is_file():
        return None
    with path.open("rb") as file:
        start = file.read(8)
    if start.startswith(PARQUET):
        return "parquet", [path]
    if start.startswith((ARROW_FILE, b"\xff" * 4)):  # file or stream of Arrow
        return "arrow", [path]
    return None


def _folder(folder: Path) -> tuple[str, list[Path]]:
    splits = folder / "dataset_dict.json"
    if splits.is_file():
        names = _json(splits).get("splits", [])
        message = (
            f"has the splits {', '.join(map(str, names))}; name one or several, with commas: {folder}/SPLIT"
        )
        raise DatasetError(message, str(folder))
    state = folder / "state.json"
    if state.is_file():
        saved = _json(state)
        if saved.get("_indices_data_files") or saved.get("_indices_files"):
            message = "its rows are chosen by an index; save it after dataset.flatten_indices()"
            raise DatasetError(message, str(folder))
        files = [folder / str(entry["filename"]) for entry in saved.get("_data_files", [])]
        if not files:
            message = "has no data files; save the dataset with rows"
            raise DatasetError(message, str(state))
        return "arrow", files
    parquet = sorted(
        file for file in folder.rglob("*.parquet") if not file.name.startswith((".", "_")) and file.is_file()
    )
    if not parquet:
        message = "is a folder with neither Parquet files nor a saved dataset (state.json); name a file"
        raise DatasetError(message, str(folder))
    partitioned = next((file for file in parquet if "=" in str(file.relative_to(folder).parent)), None)
    if partitioned is not None:
        message = "is partitioned by a column that only the names of folders have; write it into the files"
        raise DatasetError(message, str(partitioned.parent))
    return "parquet", parquet


def _json(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        message = f"cannot be read as JSON: {error}"
        raise DatasetError(message, str(path)) from None
    if not isinstance(document, dict):
        message = "must be a JSON object"
        raise DatasetError(message, str(path))
    return document


def _is_parquet(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == PARQUET


def _schema_of(path: Path) -> pa.Schema:
    try:
        if _is_parquet(path):
            return pq.read_schema(path)
        with pa.memory_map(str(path)) as source:
            return _arrow(source).schema
    except (pa.ArrowException, OSError) as error:
        raise DatasetError(_unreadable(error), str(path)) from None


def _batches(path: Path, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    try:
        if _is_parquet(path):
            with pq.ParquetFile(path) as file:
                yield from file.iter_batches(ROWS, columns=list(columns))
            return
        with pa.memory_map(str(path)) as source:
            reader = _arrow(source)
            whole = (
                reader
                if isinstance(reader, pa.RecordBatchStreamReader)
                else map(reader.get_batch, range(reader.num_record_batches))
            )
            for batch in whole:
                for start in range(0, len(batch), ROWS):
                    yield batch.select(list(columns)).slice(start, ROWS)
    except (pa.ArrowException, OSError) as error:
        raise DatasetError(_unreadable(error), str(path)) from None


def _arrow(source: Any) -> Any:
    """Return the reader of an Arrow file, or of a stream, which Hugging Face writes."""
    is_file = source.read(len(ARROW_FILE)) == ARROW_FILE
    source.seek(0)
    return pa.ipc.open_file(source) if is_file else pa.ipc.open_stream(source)


def _unreadable(error: Exception) -> str:
    return f"cannot be read: {str(error).splitlines()[0] if str(error) else type(error).__name__}"


def _class_labels(schema: pa.Schema, path: Path) -> Mapping[str, list[str]]:
    """Return the names of the values for each column that is a ClassLabel."""
    features: Any = {}
    info = path.parent / "dataset_info.json"
    if info.is_file():
        features = _json(info).get("features")
    elif schema.metadata and _FEATURES in schema.metadata:
        try:
            features = json.loads(schema.metadata[_FEATURES]).get("info", {}).get("features")
        except (ValueError, AttributeError):
            message = "its metadata 'huggingface' must be a JSON object; save the dataset again"
            raise DatasetError(message, str(path)) from None
    return {
        str(column): [str(name) for name in feature["names"]]
        for column, feature in (features or {}).items()
        if isinstance(feature, dict) and feature.get("_type") == "ClassLabel" and feature.get("names")
    }


def _pandas_index(schema: pa.Schema) -> set[int]:
    """Return the indices of the columns that hold the index of a DataFrame."""
    try:
        pandas = json.loads((schema.metadata or {}).get(_PANDAS, b"{}"))
        columns = pandas.get("index_columns", [])
    except (ValueError, AttributeError):
        return set()  # metadata of another program
    return {j for j, name in enumerate(schema.names) if name in columns}


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _why(failure: Exception, column: Column, value: Any) -> str:
    assert column.vocabulary is not None
    shown = f"{column.name}={str(value)[:60]!r}"
    if isinstance(failure, UnknownValueError):
        return f"{shown} must be one of {', '.join(column.vocabulary.values[:20])}"
    return (
        f"{shown} is distinct value number {column.vocabulary.limit + 1}; nominal columns and classes have "
        f"at most {column.vocabulary.limit}: leave it out (--ignore {column.name}) or choose another "
        "--target"
    )
