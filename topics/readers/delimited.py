"""Delimited text as columns: pyarrow's CSV parser, and the exact place where it refuses.

pyarrow parses a block at about 150 MB/s. If pyarrow refuses a block (blanks around a missing value, lines of
blanks), the block is parsed again as strings. If that fails, too, the block is searched once, line by line,
for the error, so that the message has file and line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from topics.errors import DatasetError
from topics.readers.dataset import Batch
from topics.readers.file_layout import Column, FileLayout
from topics.readers.number_form import PLAIN, NumberForm, other_form
from topics.readers.source import LineBlock
from topics.readers.vocabulary import MISSING, NO_CODE, TooManyValuesError, UnknownValueError, Vocabulary

NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")

INFINITY = re.compile(r"[+-]?inf(?:inity)?", re.IGNORECASE)

TEXT = pa.dictionary(pa.int32(), pa.string())
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
        numbers: NumberForm = PLAIN,
        *,
        blanks_count: bool = False,
    ) -> None:
        """Prepare the parser for the columns of `layout`.

        `path` is for messages; `quote` is one character, or empty if no character quotes; with
        `blanks_count`, vocabularies get texts with the blanks around them.
        """
        self.path = path
        self.layout = layout
        self.delimiter = delimiter
        self.quote = quote
        self.missing = missing
        self._blanks_count = blanks_count
        self.numbers = numbers
        self.separated_by = repr(delimiter)
        # A tab may be an empty cell: then only lines of other blanks are blank.
        self._blank_lines = re.compile(rb"^ +\r?$" if delimiter == "\t" else rb"^[ \t]+\r?$", re.MULTILINE)
        self._numbers_as_text = not numbers.is_plain

    def parse(self, block: LineBlock) -> Batch:
        """Return x: float64[m, d] and y: int32[m] of the m rows of a block."""
        try:
            return self._filled(self._table(block.text))
        except pa.ArrowInvalid:
            pass
        # From here on at the first attempt: a file with blanks around its missing values has them everywhere.
        self._numbers_as_text = True
        try:
            return self._filled(self._table(self._blank_lines.sub(b"", block.text)))
        except pa.ArrowInvalid as failure:
            raise self._blame(block, str(failure)) from None

    def _table(self, text: bytes) -> pa.Table:
        """Return the used columns, dictionaries for nominal columns."""
        columns = self.layout.columns
        number = pa.string() if self._numbers_as_text else pa.float64()
        used = sorted(self.layout.read)
        return pacsv.read_csv(
            pa.py_buffer(text),
            read_options=pacsv.ReadOptions(
                column_names=[str(j) for j in range(len(columns))],
                use_threads=False,
                block_size=len(text) + 1,
            ),
            parse_options=pacsv.ParseOptions(
                delimiter=self.delimiter,
                quote_char=self.quote or False,
                newlines_in_values=bool(self.quote) and self.quote.encode() in text,
            ),
            convert_options=pacsv.ConvertOptions(
                column_types={str(j): number if columns[j].vocabulary is None else TEXT for j in used},
                include_columns=[str(j) for j in used],
                null_values=sorted(self.missing),
                strings_can_be_null=True,
            ),
        )

    def _filled(self, table: pa.Table, *, as_text: bool | None = None, trim: bool = True) -> Batch:
        """Return the chunk of a table. `as_text`: numbers are given as texts; `trim`: ignore blanks around
        words.
        """
        layout = self.layout
        as_text = self._numbers_as_text if as_text is None else as_text
        trim = trim and not self._blanks_count
        x = np.empty((table.num_rows, len(layout.features)))
        for at, j in enumerate(layout.features):
            x[:, at] = self._column(table.column(str(j)), layout.columns[j], as_text=as_text, trim=trim)
        if np.isinf(x).any():
            message = "a number is not finite"
            raise pa.ArrowInvalid(message)
        for j in layout.empty:
            codes = self._column(table.column(str(j)), layout.columns[j], as_text=as_text, trim=trim)
            if not np.isnan(codes).all():
                message = "a column that is empty in the first rows is not"
                raise pa.ArrowInvalid(message)
        if layout.target is None:
            return x, np.full(table.num_rows, NO_CODE, dtype=np.int32)
        vocabulary = layout.columns[layout.target].vocabulary
        assert vocabulary is not None
        return x, _codes(table.column(str(layout.target)), vocabulary, trim=trim)

    def _column(
        self, cells: pa.ChunkedArray, column: Column, *, as_text: bool, trim: bool
    ) -> npt.NDArray[np.float64]:
        if column.vocabulary is not None:
            codes = _codes(cells, column.vocabulary, trim=trim).astype(np.float64)
            codes[codes < 0] = np.nan
            return codes
        if as_text:
            trimmed = pc.utf8_trim_whitespace(cells)
            absent = pc.is_in(trimmed, value_set=pa.array(sorted(self.missing)))
            cells = self.numbers.numbers(pc.if_else(absent, pa.scalar(None, pa.string()), trimmed))
        if pc.any(pc.is_nan(cells), min_count=0).as_py():
            message = "a word such as NAN, which pyarrow reads, is not among those for missing values"
            raise pa.ArrowInvalid(message)
        numbers: npt.NDArray[np.float64] = cells.to_numpy()
        return numbers

    def _blame(self, block: LineBlock, failure: str) -> DatasetError:
        """Return the exception that names the first bad line of a block and the rule it breaks."""
        for line, cells in self._records(block):
            message = self._complaint(cells)
            if message:
                return DatasetError(message, self.path, line)
        last = block.line + block.text.count(b"\n")
        return DatasetError(f"cannot be read up to line {last}: {failure}", self.path, block.line)

    def _records(self, block: LineBlock) -> Iterator[tuple[int, list[str]]]:
        """Yield the number of the line of each record, and its cells."""
        for line, text in enumerate(decoded(block, self.path).split("\n"), block.line):
            if text.strip():
                yield line, [cell.strip() for cell in text.split(self.delimiter)]

    def _complaint(self, cells: list[str]) -> str | None:
        columns = self.layout.columns
        if len(cells) != len(columns):
            return self._count_complaint(cells)
        for j in self.layout.used:
            message = complaint(columns[j], cells[j], self.missing, self.numbers)
            if message:
                return message
        for j in self.layout.empty:
            if cells[j].strip():
                return (
                    f"{cells[j].strip()[:_SHOWN]!r} stands in column {j + 1}, which has no name and is empty "
                    "in the first rows; name the column in the header, or delete the value"
                )
        return None

    def _count_complaint(self, cells: list[str]) -> str:
        width = len(self.layout.columns)
        message = f"{len(cells)} values, expected {width} separated by {self.separated_by}"
        if len(cells) > width:
            remedy = "put a value that holds the delimiter in quotes"
            return f"{message}; {remedy}" if self.quote else message
        if len(cells) == 1:
            return f"{message}; delete the line if it is a comment or a note"
        # Between blanks nothing can be empty.
        absent = "write NA for" if self.separated_by == "blanks" else "leave an empty cell for"
        return f"{message}; {absent} a missing value"


def complaint(
    column: Column, cell: str, missing: frozenset[str] = MISSING, numbers: NumberForm = PLAIN
) -> str | None:
    """Return the error in the cell of a column, or None."""
    text = cell.strip()
    shown = repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "…")
    if column.vocabulary is None:
        if text in missing:
            return None
        if INFINITY.fullmatch(text):
            return f"{column.name}={shown} must be a finite number (or ? for missing)"
        if not numbers.matches(text):
            if other := other_form({text}, numbers):
                return f"{column.name}={shown} must be a number like those above it; it has {other}"
            return (
                f"{column.name}={shown} must be a number (or ? for missing); if the column holds words, "
                "declare it nominal (--nominal, CSV only); if this stands for a missing value, name that "
                "(--missing)"
            )
        if not np.isfinite(numbers.number(text)):
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


def _codes(cells: pa.ChunkedArray, vocabulary: Vocabulary, *, trim: bool) -> npt.NDArray[np.int32]:
    """Return the codes of a column of dictionaries: int32[m], -1 for a missing value."""
    try:
        pieces = [_codes_of(chunk, vocabulary, trim) for chunk in cells.chunks]
    except (UnknownValueError, TooManyValuesError) as failure:
        raise pa.ArrowInvalid(str(failure)) from None
    return np.concatenate(pieces) if pieces else np.empty(0, dtype=np.int32)


def _codes_of(cells: pa.DictionaryArray, vocabulary: Vocabulary, trim: bool) -> npt.NDArray[np.int32]:
    # One slot more than values: the last one, index -1, is for nulls.
    table = np.full(len(cells.dictionary) + 1, -1, dtype=np.int32)
    words = pc.utf8_trim_whitespace(cells.dictionary) if trim else cells.dictionary
    table[:-1] = vocabulary.codes(words.to_pylist())
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
