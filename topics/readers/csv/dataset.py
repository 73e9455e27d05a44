"""CSV: one row per line, with or without a header; kinds of columns are detected in the first rows.

- Lines before the header are left out: `sep=;` of Excel, comments (`#`, `%`, `//`), titles of one cell.
- The delimiter is detected among `,` `;` tab `|` and runs of blanks, the header from the first rows; options
  can set both.
- A column is numeric if all its cells in the first rows are numbers or missing, else nominal with open
  values. `nominal` declares columns: by name alone, or with the list of their values, which then is closed.
- Missing values: the words of pandas.read_csv, and `?`; or the words of the option. Blanks around cells are
  ignored, but not within quotes. Infinity among numbers is refused.
- Numbers have a decimal point and no signs between digits, unless options set another form.
- Quotes are `"`, doubled inside; a quoted cell may hold the delimiter and line ends. A quote in a cell that
  does not begin with a quote is an ordinary character.
- The class is the column named `class`, else the last one with values, unless an option names it; class names
  are canonical (`+1` and `1.0` are `1`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from topics.errors import DatasetError
from topics.readers.csv.column_kinds import ColumnOptions, Named, Nominal, lay_out, named
from topics.readers.csv.form import CsvForm, form_of
from topics.readers.csv.header import has_header
from topics.readers.csv.record_cells import BLANKS
from topics.readers.csv.record_chunks import CsvBlocks, Dialect
from topics.readers.csv.record_ends import RecordEnds
from topics.readers.dataset import Batch, FileDataset
from topics.readers.delimited import decoded
from topics.readers.file_layout import ColumnRef
from topics.readers.number_form import NumberForm
from topics.readers.source import LineBlock, beginning, blocks
from topics.readers.vocabulary import MISSING, Vocabulary

_SPELLED = {"\\t": "\t", "tab": "\t", "comma": ",", "semicolon": ";", "space": BLANKS, "blanks": BLANKS}


class CsvDataset(FileDataset):
    """Rows of one or more CSV files with the same columns."""

    format = "csv"

    def __init__(
        self,
        paths: Sequence[Path],
        target: ColumnRef | None = None,
        *,
        labelled: bool = True,
        header: bool | None = None,
        delimiter: str | None = None,
        nominal: Nominal = (),
        ignore: Sequence[ColumnRef] = (),
        classes: Sequence[str] | None = None,
        skip_lines: int | None = None,
        missing: Sequence[str] | None = None,
        decimal: str | None = None,
        thousands: str | None = None,
        quotes: bool = True,
    ) -> None:
        """Read the first rows of the first file; the other files must have the same columns."""
        if skip_lines is not None and skip_lines < 0:
            message = f"skip_lines={skip_lines} must be at least 0"
            raise DatasetError(message)
        path = str(paths[0])
        self._skip_lines = skip_lines
        numbers = NumberForm.parse(decimal, thousands)
        words = MISSING if missing is None else frozenset(["", *(word.strip() for word in missing)])
        form = self._form(paths[0], _one_character(delimiter) if delimiter else None, quotes)
        self.delimiter = form.delimiter
        self._dialect = Dialect(form.delimiter, quotes, numbers, words)
        self.header = has_header([row.cells for row in form.first], words) if header is None else header
        if header is None and self.header and len(form.first) == 1:
            message = "has no rows below its header; name a file with rows, or add --no-header"
            raise DatasetError(message, path)
        columns = named(form.first, self.header, path)
        options = ColumnOptions(target, labelled, nominal, ignore, classes)
        self._layout, guesses = lay_out(path, columns, self._dialect, options)
        self._columns = columns
        self._start = self._start_of(form)
        chosen = None if self._layout.target is None else self._layout.columns[self._layout.target]
        vocabulary = chosen.vocabulary if chosen else None
        super().__init__(
            paths,
            self._layout.names,
            self._layout.vocabularies,
            chosen.name if chosen else None,
            Vocabulary(limit=0, is_open=False) if vocabulary is None else vocabulary,
        )
        self.guesses = (*form.guesses, *guesses)

    def _form(self, path: Path, delimiter: str | None, quotes: bool) -> CsvForm:
        text, is_whole = beginning(path)
        return form_of(
            decoded(LineBlock(text, 1), str(path)), str(path), delimiter, quotes, self._skip_lines, is_whole
        )

    def _start_of(self, form: CsvForm) -> tuple[list[str] | None, int]:
        """Return the cells of a file's header, and the number of its first line with rows."""
        if self.header and form.first:
            return form.first[0].cells, form.first[0].end_line
        return None, form.skipped + 1

    def _chunks(self) -> Iterator[Batch]:
        dialect = self._dialect
        for path in self.paths:
            if path == self.paths[0]:
                header, begin = self._start
            else:
                form = self._form(path, self.delimiter, dialect.quotes)
                if self.header:
                    self._check_header(path, form)
                header, begin = self._start_of(form)
            parser = CsvBlocks(str(path), self._layout, dialect, header)
            ends = RecordEnds(self.delimiter) if dialect.quotes else None
            for block in blocks(path, ends=ends):
                rest = _from_line(block, begin)
                if rest.text.strip():
                    yield parser.parse(rest)

    def _check_header(self, path: Path, form: CsvForm) -> None:
        """Refuse a file whose header differs from the first file's."""
        columns: Named = named(form.first, True, str(path))
        if columns.names != self._columns.names:
            message = (
                f"columns {', '.join(columns.names)} must be the columns of {self.paths[0]}: "
                f"{', '.join(self._columns.names)}; all files of a stream have one header"
            )
            raise DatasetError(message, str(path), form.first[0].line)


def _one_character(delimiter: str) -> str:
    character = _SPELLED.get(delimiter, delimiter)
    if len(character) != 1 or not character.isascii() or character in '"\r\n':
        message = (
            f"delimiter={delimiter!r} must be one character such as , ; | or one of the words tab and blanks"
        )
        raise DatasetError(message)
    return character


def _from_line(block: LineBlock, line: int) -> LineBlock:
    """Return the lines of a block from a line number on."""
    at = 0
    for _ in range(block.line, line):
        at = block.text.find(b"\n", at) + 1 or len(block.text)
    return LineBlock(block.text[at:], max(block.line, line)) if at else block
