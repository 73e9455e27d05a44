"""ARFF, the format of Weka and MOA: numeric and nominal attributes, dense or sparse rows.

- Names and values may be quoted with ' or ", with \\ as escape; `%` begins a comment, `?` is missing.
- Kinds: numeric, real, integer (a range is ignored), `{value, …}`. A string, date or relational attribute
  is an error unless it is left out with `ignore`. A value that is not declared is an error.
- Sparse rows `{index value, …}`: an attribute that is not named is 0, for a nominal one its first value.
- The class is the attribute named `class` (in any case) if there is one, else the last; its declared values
  are the classes, in that order. A numeric class is allowed: its distinct numbers are the classes.
- Weights of rows are refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from topics.errors import DatasetError
from topics.readers.arff_header import ArffAttribute, ArffHeader, read_header
from topics.readers.arff_rows import parse_rows
from topics.readers.dataset import CLASSES_LIMIT, VALUES_LIMIT, Batch, FileDataset
from topics.readers.delimited import DelimitedBlocks
from topics.readers.layout import Column, ColumnRef, FileLayout, check_names, default_target, find_column
from topics.readers.source import LineBlock, blocks
from topics.readers.vocabulary import Vocabulary, canonical_label

_MISSING = frozenset(["?"])
_NOT_PLAIN = b"{%\\\"'"  # any of them in a block: line by line


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

    def _chunks(self) -> Iterator[Batch]:
        for path in self.paths:
            whole = blocks(path)
            header = read_header(str(path), whole)
            self._check_same(path, header)
            parser = _DataBlocks(str(path), self._layout)
            for block in chain([header.rest], whole):
                if block.text.strip():
                    yield parser.parse(block)

    def _check_same(self, path: Path, header: ArffHeader) -> None:
        """Refuse a file whose attributes are not those of the first one."""
        expected = [(a.name, a.values) for a in self._attributes]
        found = [(a.name, a.values) for a in header.attributes]
        for number, (a, b) in enumerate(zip(found, expected, strict=False)):
            if a != b:
                message = (
                    f"attribute {a[0]!r} must be declared like attribute {b[0]!r} of {self.paths[0]}; "
                    f"files that are read one after the other have the same attributes"
                )
                raise DatasetError(message, str(path), header.attributes[number].line)
        if len(found) != len(expected):
            message = f"{len(found)} attributes must be {len(expected)} as in {self.paths[0]}"
            raise DatasetError(message, str(path))


class _DataBlocks:
    """Turns blocks of data lines into chunks (x, y): plain ones at once, the others line by line."""

    def __init__(self, path: str, layout: FileLayout) -> None:
        self._path = path
        self._layout = layout
        self._plain = DelimitedBlocks(path, layout, ",", "'", _MISSING)

    def parse(self, block: LineBlock) -> Batch:
        if not any(character in block.text for character in _NOT_PLAIN):
            try:
                return self._plain.parse(block)
            except DatasetError:
                pass  # the other way allows more (blanks between values), and names what is wrong
        return parse_rows(self._path, self._layout, block)


def _lay_out(
    path: str, header: ArffHeader, target: ColumnRef | None, labelled: bool, ignore: Sequence[ColumnRef]
) -> FileLayout:
    """Return what each attribute is used for."""
    names = [attribute.name for attribute in header.attributes]
    check_names(names, path)
    ignored = {find_column(names, ref, "ignore", path) for ref in ignore}
    left = [j for j in range(len(names)) if j not in ignored]
    chosen = None
    if labelled and target is not None:
        chosen = find_column(names, target, "target", path)
    elif labelled:
        chosen = default_target(names, left)
    columns = tuple(_column(path, a, j == chosen, j in ignored) for j, a in enumerate(header.attributes))
    return FileLayout(columns, tuple(j for j in left if j != chosen), chosen)


def _column(path: str, attribute: ArffAttribute, is_class: bool, is_ignored: bool) -> Column:
    if attribute.refused and not is_ignored:
        message = (
            f"attribute {attribute.name!r} is of kind {attribute.refused}, which cannot be learned from; "
            f"leave it out with ignore={attribute.name!r} (--ignore)"
        )
        raise DatasetError(message, path, attribute.line)
    if attribute.refused:  # left out: any text will do
        return Column(attribute.name, Vocabulary(limit=VALUES_LIMIT, missing=_MISSING))
    if attribute.values is not None:
        limit = len(attribute.values)
        return Column(
            attribute.name, Vocabulary(attribute.values, limit=limit, is_open=False, missing=_MISSING)
        )
    if is_class:
        return Column(attribute.name, Vocabulary(limit=CLASSES_LIMIT, canonical=canonical_label))
    return Column(attribute.name, None)
