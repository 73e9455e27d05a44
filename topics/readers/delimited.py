"""Delimited text as columns: pyarrow's CSV parser, and the exact place where it refuses.

pyarrow parses a block at about 150 MB/s. What it cannot take at once (blanks around a missing value, lines of
blanks) is tried again as strings; what is really wrong is looked for line by line, once, to name file and
line.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from topics.errors import DatasetError
from topics.readers.dataset import Batch
from topics.readers.layout import Column, FileLayout
from topics.readers.source import LineBlock
from topics.readers.vocabulary import MISSING, TooManyValuesError, UnknownValueError, Vocabulary

NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")

INFINITY = re.compile(r"[+-]?inf(?:inity)?", re.IGNORECASE)

_BLANK_LINES = re.compile(rb"^[ \t]+\r?$", re.MULTILINE)
_TEXT = pa.dictionary(pa.int32(), pa.string())
_SHOWN = 60  # characters of a bad value in a message


class DelimitedBlocks:
    """Turns blocks of one file's lines into chunks (x, y)."""

    def __init__(
        self,
        path: str,
        layout: FileLayout,
        delimiter: str,
        quote: str,
        missing: frozenset[str] = MISSING,
        *,
        blanks_count: bool = False,
    ) -> None:
        """Prepare the parser for the columns of `layout`; `path` is for messages.

        blanks_count: vocabularies get texts with the blanks around them.
        """
        self.path = path
        self.layout = layout
        self.delimiter = delimiter
        self.quote = quote
        self.missing = missing
        self._blanks_count = blanks_count
        self._numbers_as_text = False

    def parse(self, block: LineBlock) -> Batch:
        """Return x: float64[m, d] and y: int32[m] of the m rows of a block."""
        try:
            return self._filled(self._table(block.text))
        except pa.ArrowInvalid:
            pass
        # From here on once per file: a file with blanks around its missing values has them everywhere.
        self._numbers_as_text = True
        try:
            return self._filled(self._table(_BLANK_LINES.sub(b"", block.text)))
        except pa.ArrowInvalid as failure:
            raise self._blame(block, str(failure)) from None

    def _table(self, text: bytes) -> pa.Table:
        """Return the used columns; dictionaries where nominal."""
        columns = self.layout.columns
        number = pa.string() if self._numbers_as_text else pa.float64()
        used = sorted(self.layout.used)
        return pacsv.read_csv(
            pa.py_buffer(text),
            read_options=pacsv.ReadOptions(
                column_names=[str(j) for j in range(len(columns))],
                use_threads=False,
                block_size=len(text) + 1,
            ),
            parse_options=pacsv.ParseOptions(
                delimiter=self.delimiter,
                quote_char=self.quote,
                newlines_in_values=self.quote.encode() in text,
            ),
            convert_options=pacsv.ConvertOptions(
                column_types={str(j): number if columns[j].vocabulary is None else _TEXT for j in used},
                include_columns=[str(j) for j in used],
                null_values=sorted(self.missing),
                strings_can_be_null=True,
            ),
        )

    def _filled(self, table: pa.Table) -> Batch:
        layout = self.layout
        x = np.empty((table.num_rows, len(layout.features)))
        for at, j in enumerate(layout.features):
            x[:, at] = self._column(table.column(str(j)), layout.columns[j])
        if np.isinf(x).any():
            message = "a number is not finite"
            raise pa.ArrowInvalid(message)
        if layout.target is None:
            return x, np.full(table.num_rows, -1, dtype=np.int32)
        vocabulary = layout.columns[layout.target].vocabulary
        assert vocabulary is not None
        return x, _codes(table.column(str(layout.target)), vocabulary, self._blanks_count)

    def _column(self, cells: pa.ChunkedArray, column: Column) -> npt.NDArray[np.float64]:
        if column.vocabulary is not None:
            codes = _codes(cells, column.vocabulary, self._blanks_count).astype(np.float64)
            codes[codes < 0] = np.nan
            return codes
        if self._numbers_as_text:
            trimmed = pc.utf8_trim_whitespace(cells)
            absent = pc.is_in(trimmed, value_set=pa.array(sorted(self.missing)))
            cells = pc.cast(pc.if_else(absent, pa.scalar(None, pa.string()), trimmed), pa.float64())
        numbers: npt.NDArray[np.float64] = cells.to_numpy()
        return numbers

    def _blame(self, block: LineBlock, failure: str) -> DatasetError:
        """Return the exception that names the first bad line of a block and the rule it breaks."""
        try:
            for line, cells in self._records(block):
                message = self._complaint(cells)
                if message:
                    return DatasetError(message, self.path, line)
        except csv.Error as error:
            failure = str(error)
        last = block.line + block.text.count(b"\n")
        return DatasetError(f"cannot be read up to line {last}: {failure}", self.path, block.line)

    def _records(self, block: LineBlock) -> Iterator[tuple[int, list[str]]]:
        """Yield the number of the last line of each record, and its cells."""
        lines = csv.reader(
            io.StringIO(decoded(block, self.path), newline=""),
            delimiter=self.delimiter,
            quotechar=self.quote,
            skipinitialspace=True,
        )
        for cells in lines:
            if any(cell.strip() for cell in cells) or len(cells) > 1:
                yield block.line + lines.line_num - 1, cells

    def _complaint(self, cells: list[str]) -> str | None:
        columns = self.layout.columns
        if len(cells) != len(columns):
            return f"{len(cells)} values, expected {len(columns)} separated by {self.delimiter!r}"
        for j in self.layout.used:
            message = complaint(columns[j], cells[j].strip(), self.missing)
            if message:
                return message
        return None


def complaint(column: Column, cell: str, missing: frozenset[str] = MISSING) -> str | None:
    """Return what is wrong with the cell of a column, None if nothing is."""
    text = cell.strip()
    shown = repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "…")
    if column.vocabulary is None:
        if text in missing:
            return None
        if INFINITY.fullmatch(text):
            return f"{column.name}={shown} must be a finite number (or ? for missing)"
        if not NUMBER.fullmatch(text):
            return (
                f"{column.name}={shown} must be a number (or ? for missing); "
                f"if the column holds words, declare it nominal (--nominal, CSV only)"
            )
        if not np.isfinite(float(text)):
            return f"{column.name}={shown} must be a finite number (or ? for missing)"
        return None
    try:
        column.vocabulary.code(cell)
    except UnknownValueError:
        values = column.vocabulary.values
        listed = ", ".join(values[:20]) + (", …" if len(values) > 20 else "")
        return f"{column.name}={shown} must be one of its declared values: {listed}"
    except TooManyValuesError:
        return (
            f"{column.name}={shown} is distinct value number {column.vocabulary.limit + 1}; "
            f"nominal columns and classes have at most {column.vocabulary.limit}: leave the column out with "
            f"ignore={column.name!r} (--ignore), or choose another target (--target)"
        )
    return None


def _codes(cells: pa.ChunkedArray, vocabulary: Vocabulary, blanks_count: bool) -> npt.NDArray[np.int32]:
    """Return the codes of a column of dictionaries: int32[m], -1 where missing."""
    try:
        pieces = [_codes_of(chunk, vocabulary, blanks_count) for chunk in cells.chunks]
    except (UnknownValueError, TooManyValuesError) as failure:
        raise pa.ArrowInvalid(str(failure)) from None
    return np.concatenate(pieces) if pieces else np.empty(0, dtype=np.int32)


def _codes_of(cells: pa.DictionaryArray, vocabulary: Vocabulary, blanks_count: bool) -> npt.NDArray[np.int32]:
    # One slot more than values: index -1, the last one, is where nulls look.
    table = np.full(len(cells.dictionary) + 1, -1, dtype=np.int32)
    texts = cells.dictionary if blanks_count else pc.utf8_trim_whitespace(cells.dictionary)
    table[:-1] = vocabulary.codes(texts.to_pylist())
    codes: npt.NDArray[np.int32] = table[cells.indices.fill_null(-1).to_numpy()]
    return codes


def decoded(block: LineBlock, path: str) -> str:
    """Return the text of a block."""
    try:
        return block.text.decode()
    except UnicodeDecodeError as failure:
        line = block.line + block.text.count(b"\n", 0, failure.start)
        message = f"byte 0x{block.text[failure.start]:02x} is not UTF-8; convert the file to UTF-8"
        raise DatasetError(message, path, line) from None
