"""CSV: one row a line, with or without a header, the kinds of columns found in the first rows.

- The delimiter is found among `,` `;` tab `|`, the header by looking at the first rows; both can be given.
- A column is numeric if all its cells in the first rows are numbers or missing, else nominal with open
  values. `nominal` declares columns: by name alone, or with the list of their values, which then is closed.
- Missing: empty, `?`, `NA`, `N/A`, `NaN`, `NULL`. Blanks around cells do not count. Infinity among numbers
  is refused.
- Quotes are `"`, doubled inside; a quoted cell may hold the delimiter and line ends.
- The class is the column named `class`, else the last one, unless said otherwise; class names are canonical
  (`+1` and `1.0` are `1`).
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from topics.errors import DatasetError
from topics.readers.dataset import CLASSES_LIMIT, VALUES_LIMIT, Batch, FileDataset
from topics.readers.delimited import INFINITY, DelimitedBlocks, decoded
from topics.readers.layout import Column, ColumnRef, FileLayout, check_names, default_target, find_column
from topics.readers.sniffing import has_header, is_number, rows_of, sniff_delimiter
from topics.readers.source import LineBlock, blocks, head
from topics.readers.vocabulary import MISSING, Vocabulary, canonical_label

Nominal = Mapping[str, Sequence[str]] | Sequence[ColumnRef]

_QUOTE = b'"'
_DECIMAL_COMMA = re.compile(r"[+-]?[0-9]+,[0-9]+")
_SPELLED = {"\\t": "\t", "tab": "\t", "comma": ",", "semicolon": ";", "space": " "}


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
    ) -> None:
        """Look at the first rows of the first file; the other files must have the same columns."""
        path = str(paths[0])
        text = decoded(head(paths[0], quote=_QUOTE), path)
        try:
            self.delimiter = _one_character(delimiter) if delimiter else sniff_delimiter(text)
            rows = rows_of(text, self.delimiter)
        except csv.Error as failure:
            message = f"its first rows are no CSV: {failure}"
            raise DatasetError(message, path) from None
        self.header = has_header(rows) if header is None else header
        names = _column_names(rows, self.header, path)
        below = [row for row in rows[self.header :] if len(row) == len(names)]
        self._layout = _lay_out(path, names, below, target, labelled, nominal, ignore, classes)
        chosen = None if self._layout.target is None else self._layout.columns[self._layout.target]
        vocabulary = chosen.vocabulary if chosen else None
        super().__init__(
            paths,
            self._layout.names,
            self._layout.vocabularies,
            chosen.name if chosen else None,
            Vocabulary(limit=0, is_open=False) if vocabulary is None else vocabulary,
        )

    def _chunks(self) -> Iterator[Batch]:
        for path in self.paths:
            parser = DelimitedBlocks(str(path), self._layout, self.delimiter, _QUOTE.decode())
            first = True
            for block in blocks(path, quote=_QUOTE):
                rest = self._below_header(path, block) if first and self.header else block
                first = False
                if rest.text.strip():
                    yield parser.parse(rest)

    def _below_header(self, path: Path, block: LineBlock) -> LineBlock:
        """Return a file's first block without its header, which must be that of the first file."""
        end = _header_end(block.text)
        names = _column_names(
            rows_of(decoded(LineBlock(block.text[:end], 1), str(path)), self.delimiter), True, str(path)
        )
        expected = [column.name for column in self._layout.columns]
        if names != expected:
            message = (
                f"columns {', '.join(names)} must be those of {self.paths[0]}: {', '.join(expected)}; "
                f"files that are read one after the other have the same header"
            )
            raise DatasetError(message, str(path), 1)
        return LineBlock(block.text[end:], block.line + block.text.count(b"\n", 0, end))


def _one_character(delimiter: str) -> str:
    character = _SPELLED.get(delimiter, delimiter)
    if len(character) != 1 or character in '"\r\n':
        message = f"delimiter={delimiter!r} must be one character such as , ; | or the word tab"
        raise DatasetError(message)
    return character


def _header_end(text: bytes) -> int:
    """Return the length of the first line that is not blank; line ends inside quotes do not end it."""
    end = 0
    while True:
        newline = text.find(b"\n", end)
        end = len(text) if newline < 0 else newline + 1
        line = text[:end]
        if end == len(text) or (line.strip() and line.count(_QUOTE) % 2 == 0):
            return end


def _column_names(rows: Sequence[Sequence[str]], header: bool, path: str) -> list[str]:
    """Return the names of all columns: of the header, or f1, f2, … where it has none."""
    if not rows:
        message = "has no rows"
        raise DatasetError(message, path)
    first = rows[0] if header else [""] * len(rows[0])
    names = [name or f"f{number}" for number, name in enumerate(first, 1)]
    check_names(names, path, 1)
    return names


def _lay_out(
    path: str,
    names: list[str],
    rows: Sequence[Sequence[str]],
    target: ColumnRef | None,
    labelled: bool,
    nominal: Nominal,
    ignore: Sequence[ColumnRef],
    classes: Sequence[str] | None,
) -> FileLayout:
    """Return what each column is: by declaration, else by what its first cells look like."""
    ignored = {find_column(names, ref, "ignore", path) for ref in ignore}
    target_index = None
    if labelled:
        left = [j for j in range(len(names)) if j not in ignored]
        target_index = default_target(names, left)
    if labelled and target is not None:
        target_index = find_column(names, target, "target", path)
    declared: dict[int, Sequence[str] | None] = {}
    for ref in nominal:
        values = nominal[ref] if isinstance(nominal, Mapping) and isinstance(ref, str) else None
        declared[find_column(names, ref, "nominal", path)] = values or None
    columns = []
    for j, name in enumerate(names):
        vocabulary: Vocabulary | None = None
        if j == target_index:
            vocabulary = Vocabulary(
                classes or (), limit=CLASSES_LIMIT, is_open=classes is None, canonical=canonical_label
            )
        elif j in declared:
            listed = declared[j]
            vocabulary = Vocabulary(listed or (), limit=VALUES_LIMIT, is_open=listed is None)
        else:
            words = {row[j] for row in rows if row[j] not in MISSING and not is_number(row[j])}
            # Infinity alone makes no column one of words: it is refused as a number, where it stands.
            words = {word for word in words if not INFINITY.fullmatch(word)}
            if words and all(map(_DECIMAL_COMMA.fullmatch, words)):
                message = (
                    f"column {name!r} has decimal commas such as {min(words)!r}; write numbers with a point"
                )
                raise DatasetError(message, path)
            vocabulary = Vocabulary(limit=VALUES_LIMIT) if words else None
        columns.append(Column(name, vocabulary))
    features = tuple(j for j in range(len(names)) if j != target_index and j not in ignored)
    return FileLayout(tuple(columns), features, target_index)
