"""ARFF files as a data set."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

import numpy as np

from topics.errors import DatasetError
from topics.readers.arff.data_lines import ArffRows
from topics.readers.arff.header import ArffAttribute, ArffHeader, read_header
from topics.readers.arff.token_values import (
    MISSING_CELL,
    Cells,
    NominalCells,
    NumericCells,
    NumericClassCells,
    PlainSpellings,
)
from topics.readers.dataset import CLASSES_LIMIT, VALUES_LIMIT, Batch, FileDataset
from topics.readers.delimited import DelimitedBlocks
from topics.readers.file_layout import (
    SHOWN_COLUMNS,
    Column,
    ColumnRef,
    FileLayout,
    default_target,
    find_column,
)
from topics.readers.source import LineBlock, blocks
from topics.readers.vocabulary import Vocabulary

_NOT_PLAIN = b"{}%\"'"  # a block with any of them is read line by line
_COMMA, _SPACE, _TAB = b", \t"
_IS_BOUND = np.zeros(256, dtype=bool)
_IS_BOUND[list(b",\n\r")] = True


class ArffDataset(FileDataset):
    """Rows of one or more ARFF files with the same attributes."""

    format = "arff"

    def __init__(
        self,
        paths: Sequence[Path],
        target: ColumnRef | None = None,
        *,
        labelled: bool = True,
        ignore: Sequence[ColumnRef] = (),
    ) -> None:
        """Read the header of the first file."""
        path = str(paths[0])
        header = read_header(path, blocks(paths[0]))
        self._layout = _lay_out(path, header, target, labelled, ignore)
        chosen = None if self._layout.target is None else self._layout.columns[self._layout.target]
        vocabulary = chosen.vocabulary if chosen else None
        super().__init__(
            paths,
            self._layout.names,
            self._layout.vocabularies,
            chosen.name if chosen else None,
            Vocabulary(limit=0, is_open=False) if vocabulary is None else vocabulary,
        )
        self._attributes = header.attributes
        if weighted := [
            self._attributes[j].name for j in self._layout.used if self._attributes[j].weight != 1
        ]:
            self.guesses = (f"weights of attributes not used: {', '.join(weighted[:SHOWN_COLUMNS])}",)
        self._cells = {j: _cells_of(self._layout.columns[j], header.attributes[j]) for j in self._layout.used}

    def _chunks(self) -> Iterator[Batch]:
        for path in self.paths:
            whole = blocks(path)
            header = read_header(str(path), whole)
            self._check_same(path, header)
            parser = _DataBlocks(str(path), self._layout, self._cells)
            for block in chain([header.rest], whole):
                if block.text.strip():
                    yield from parser.parse(block)

    def _check_same(self, path: Path, header: ArffHeader) -> None:
        """Refuse a file whose attributes differ from the first file's."""
        expected = [(a.name, a.values, a.refused) for a in self._attributes]
        declared = [(a.name, a.values, a.refused) for a in header.attributes]
        for number, (a, b) in enumerate(zip(declared, expected, strict=False)):
            if a != b:
                message = (
                    f"attribute {a[0]!r} must be declared like attribute {b[0]!r} of {self.paths[0]}; "
                    f"all files of a stream have the same attributes"
                )
                raise DatasetError(message, str(path), header.attributes[number].line)
        if len(declared) != len(expected):
            message = f"{len(declared)} attributes must be {len(expected)} as in {self.paths[0]}"
            raise DatasetError(message, str(path))


class _DataBlocks:
    """Turns blocks of data lines into chunks (x, y): plain blocks at once, other blocks line by line."""

    def __init__(self, path: str, layout: FileLayout, cells: dict[int, Cells]) -> None:
        self._rows = ArffRows(path, layout, cells)
        columns = tuple(
            column
            if column.vocabulary is None or j not in cells
            else Column(column.name, PlainSpellings(cells[j], column.vocabulary.limit))
            for j, column in enumerate(layout.columns)
        )
        plain = FileLayout(columns, layout.features, layout.target)
        self._plain = DelimitedBlocks(path, plain, ",", "'", frozenset([MISSING_CELL]), blanks_count=True)
        self._all_used = len(cells) == len(columns)

    def parse(self, block: LineBlock) -> Iterator[Batch]:
        text = _without_last_commas(block.text)
        if not (
            any(character in text for character in _NOT_PLAIN)
            or _blanks_matter(text)
            or (not self._all_used and _has_empty(text))
        ):
            try:
                yield self._plain.parse(LineBlock(text, block.line))
            except DatasetError:
                pass  # reading by lines accepts more (numbers such as +1), and its errors name the cause
            else:
                return
        yield from self._rows.parse(block)


def _without_last_commas(text: bytes) -> bytes:
    """Return the lines without a comma at the end, which MOA's WriteStreamToARFFFile writes on every line."""
    first = text[: text.find(b"\n")] if b"\n" in text else text
    if not first.rstrip().endswith(b","):
        return text
    text = text.replace(b",\r\n", b"\r\n").replace(b",\n", b"\n")
    return text.removesuffix(b",")


def _blanks_matter(text: bytes) -> bool:
    """Return whether blanks separate two values, or only blanks stand between two commas."""
    if b" " not in text and b"\t" not in text:
        return False
    characters = np.frombuffer(text, dtype=np.uint8)
    blank = (characters == _SPACE) | (characters == _TAB)
    stray = blank[1:] & (characters[:-1] != _COMMA) | blank[:-1] & (characters[1:] <= _COMMA)
    if not (blank[0] or blank[-1] or stray.any()):
        return False  # one blank between comma and value, the usual style: no need to check each
    at = np.flatnonzero(blank)
    gap = np.diff(at) > 1
    first = at[np.concatenate(([True], gap))]
    last = at[np.concatenate((gap, [True]))]
    # A line end represents the beginning and the end of the text.
    before = _IS_BOUND[characters[first - 1]] | (first == 0)
    after = characters[np.minimum(last + 1, len(text) - 1)]
    value_after = ~_IS_BOUND[after] & (last < len(text) - 1)
    return bool(np.any((~before & value_after) | (before & (after == _COMMA))))


def _has_empty(text: bytes) -> bool:
    """Return whether a cell is empty, between two commas or at an end of a line."""
    return any(mark in text for mark in (b",,", b"\n,", b",\n", b",\r")) or b"," in (text[:1], text[-1:])


def _lay_out(
    path: str, header: ArffHeader, target: ColumnRef | None, labelled: bool, ignore: Sequence[ColumnRef]
) -> FileLayout:
    """Return the use of each attribute."""
    names = [attribute.name for attribute in header.attributes]
    ignored = {find_column(names, ref, "ignore", path) for ref in ignore}
    used = [j for j in range(len(names)) if j not in ignored]
    chosen = None
    if labelled and target is not None:
        chosen = find_column(names, target, "target", path)
    elif labelled:
        chosen = default_target(names, used)
    columns = tuple(_column(path, a, j == chosen, j in ignored) for j, a in enumerate(header.attributes))
    return FileLayout(columns, tuple(j for j in used if j != chosen), chosen)


def _column(path: str, attribute: ArffAttribute, is_class: bool, is_ignored: bool) -> Column:
    if attribute.refused and not is_ignored:
        message = (
            f"attribute {attribute.name!r} is of kind {attribute.refused}, which cannot be learned from; "
            f"leave it out with ignore={attribute.name!r} (--ignore)"
        )
        raise DatasetError(message, path, attribute.line)
    if attribute.refused:  # left out: any text is accepted
        return Column(attribute.name, Vocabulary(limit=VALUES_LIMIT))
    if attribute.values is not None:
        limit = len(attribute.values)
        if is_class and not limit:
            message = f"attribute {attribute.name!r} declares no value {{}}; choose another class (--target)"
            raise DatasetError(message, path, attribute.line)
        return Column(attribute.name, Vocabulary(attribute.values, limit=limit, is_open=False))
    return Column(attribute.name, Vocabulary(limit=CLASSES_LIMIT) if is_class else None)


def _cells_of(column: Column, attribute: ArffAttribute) -> Cells:
    if attribute.values is not None:
        return NominalCells(column.name, attribute.values)
    if column.vocabulary is not None:
        return NumericClassCells(column.name, column.vocabulary)
    return NumericCells(column.name)
