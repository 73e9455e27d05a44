"""Opening a data set: the format decides which reader is used."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from topics.errors import DatasetError
from topics.readers.arff import ArffDataset
from topics.readers.columnar import ColumnarDataset, columnar_files
from topics.readers.csv.column_kinds import Nominal
from topics.readers.csv.dataset import CsvDataset
from topics.readers.dataset import FileDataset
from topics.readers.file_layout import ColumnRef
from topics.readers.libsvm import LibsvmDataset
from topics.readers.sniffing import FORMATS, FileFormat, other_format, sniff_format
from topics.readers.source import head

PathLike = str | os.PathLike[str]

_READERS: Mapping[str, Any] = {
    "arff": ArffDataset,
    "csv": CsvDataset,
    "libsvm": LibsvmDataset,
    "parquet": partial(ColumnarDataset, "parquet"),
    "arrow": partial(ColumnarDataset, "arrow"),
}
_TAKES = {
    "arff": {"target", "ignore"},
    "csv": {"target", "header", "delimiter", "nominal", "ignore", "classes"}
    | {"skip_lines", "missing", "decimal", "thousands", "quotes"},
    "libsvm": {"features", "zero_based", "classes"},
    "parquet": {"target", "nominal", "ignore", "classes"},
    "arrow": {"target", "nominal", "ignore", "classes"},
}


def open_dataset(
    source: PathLike | Sequence[PathLike],
    format: FileFormat | None = None,
    target: ColumnRef | None = None,
    header: bool | None = None,
    delimiter: str | None = None,
    *,
    nominal: Nominal = (),
    ignore: ColumnRef | Sequence[ColumnRef] = (),
    classes: Sequence[str] | None = None,
    features: int | None = None,
    zero_based: bool = False,
    labelled: bool = True,
    skip_lines: int | None = None,
    missing: Sequence[str] | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
    quotes: bool | None = None,
) -> FileDataset:
    """Return the data set in a file, or in several files in order; gzip is unpacked.

    A folder stands for its Parquet files, or for the files that Hugging Face `datasets` has saved there.
    `format`: `arff`, `libsvm`, `csv`, `parquet` or `arrow`; detected from the content by default. `target`:
    name or index (from 0, or from -1 backwards) of the class column; default: the one named `class`, else the
    last column. Not for LIBSVM, where the label comes first. `header`, `delimiter`, `nominal`: CSV only
    (`nominal` also Parquet, Arrow); see `topics.readers.csv`. `ignore`: columns to leave out (not LIBSVM).
    `classes`: the class names in code order (not ARFF); any other label is then an error. `features`,
    `zero_based`: LIBSVM only; see `topics.readers.libsvm`. `labelled`: False if no column is the class; y is
    then -1. CSV only: `skip_lines`: number of lines before the header; `missing`: the words for missing
    values, besides an empty cell; `decimal`: `.` or `,`; `thousands`: the sign between groups of digits;
    `quotes`: False if `"` is an ordinary character.
    """
    many = [source] if isinstance(source, str | os.PathLike) else list(source)
    paths = [Path(path) for path in many]
    if not paths:
        message = "a data set needs at least one file"
        raise DatasetError(message)
    if format is not None and format not in FORMATS:
        message = f"format={format!r} must be one of {', '.join(FORMATS)}"
        raise DatasetError(message)
    chosen, paths = _columnar(paths, format) or (_format_of_text(paths, format), paths)
    options = {
        "target": target,
        "header": header,
        "delimiter": delimiter,
        "nominal": nominal or None,
        "ignore": ([ignore] if isinstance(ignore, str | int) else list(ignore)) or None,
        "classes": classes,
        "features": features,
        "zero_based": zero_based or None,
        "skip_lines": skip_lines,
        "missing": missing,
        "decimal": decimal,
        "thousands": thousands,
        "quotes": quotes,
    }
    set_options = {name: value for name, value in options.items() if value is not None}
    if useless := sorted(set_options.keys() - _TAKES[chosen]):
        message = f"{useless[0]} has no meaning for {chosen} files; leave it out"
        raise DatasetError(message, str(paths[0]))
    dataset: FileDataset = _READERS[chosen](paths, labelled=labelled, **set_options)
    return dataset


def _columnar(paths: list[Path], format: FileFormat | None) -> tuple[str, list[Path]] | None:
    """Return format and files if all files are columnar; None if they are text."""
    columnar = [columnar_files(path) for path in paths]
    formats = {None if files is None else files[0] for files in columnar}
    if formats == {None}:
        if format in ("parquet", "arrow") and all(path.is_file() for path in paths):
            message = f"is not of the format {format}; leave --format out, or name another file"
            raise DatasetError(message, str(paths[0]))
        return None
    if len(formats) > 1 or format not in (None, *formats):
        shown = " and ".join(sorted(name or "text" for name in formats))
        message = f"must all be of one format, {format or 'whichever'}; these are {shown}"
        raise DatasetError(message, ", ".join(map(str, paths)))
    files = [
        (name, file) for files in columnar if files is not None for name in files[:1] for file in files[1]
    ]
    return files[0][0], [file for _, file in files]


def _format_of_text(paths: list[Path], format: FileFormat | None) -> str:
    for path in paths:
        if not path.is_file():
            raise DatasetError(_no_file(path), str(path))
    start = head(paths[0]).text
    if b"\0" in start:
        message = "is not text; ARFF, LIBSVM, CSV, Parquet and Arrow files can be read"
        raise DatasetError(message, str(paths[0]))
    other = other_format(start) if format is None else None
    if other is not None:
        message = f"is {other}"
        raise DatasetError(message, str(paths[0]))
    return format or sniff_format(start)


def _no_file(path: Path) -> str:
    if path.exists():
        return "is a pipe or device; a data set is read more than once: write it to a file and name that"
    return "no such file"
