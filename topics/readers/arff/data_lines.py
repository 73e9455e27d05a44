"""Rows of ARFF data line by line: quotes, escapes, comments, blanks as separators, sparse rows.

This takes about 1 µs per cell, so only blocks that pyarrow's CSV parser (delimited.py) cannot read come here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from topics.errors import DatasetError
from topics.readers.arff.token_values import Cells
from topics.readers.arff.tokens import ArffLineError, cut, text_of
from topics.readers.dataset import Batch
from topics.readers.delimited import NUMBER, decoded
from topics.readers.file_layout import FileLayout
from topics.readers.source import LineBlock

CHUNK_BYTES = 32 << 20  # dense rows at once: a sparse line of a few bytes can be a row of a million cells

_EMPTY = re.compile(r"(?:^|,)[\x00-\x20]*(?:,|$)")
_INDEX = re.compile(r"[0-9]+")
_SHOWN = 40  # characters of a line in a message


class ArffRows:
    """Parses the rows of one file."""

    def __init__(self, path: str, layout: FileLayout, cells: Mapping[int, Cells]) -> None:
        """`cells` has an entry for each column in use; `path` is for messages."""
        self._path = path
        self._layout = layout
        self._width = len(layout.columns)
        self._cells = [(j, cells[j]) for j in layout.used]
        self._place = {j: place for place, (j, _) in enumerate(self._cells)}
        self._at_once = max(1, CHUNK_BYTES // (8 * max(1, len(self._cells))))

    def parse(self, block: LineBlock) -> Iterator[Batch]:
        """Yield x: float64[m, d] and y: int32[m] of the rows of a block; raise DatasetError with file and
        line.
        """
        rows: list[list[float]] = []
        for number, whole in enumerate(decoded(block, self._path).split("\n"), block.line):
            lines = (whole,) if whole.find("\r", 0, -1) < 0 else whole.split("\r")
            for line in lines:
                try:
                    tokens = cut(line)
                    if tokens:
                        rows.append(self._row(tokens, line))
                except ArffLineError as failure:
                    raise DatasetError(str(failure), self._path, number) from None
            if len(rows) >= self._at_once:
                yield self._batch(rows)
                rows = []
        if rows:
            yield self._batch(rows)

    def _batch(self, rows: list[list[float]]) -> Batch:
        table = np.array(rows, dtype=np.float64).reshape(len(rows), len(self._cells))
        if self._layout.target is None:
            return table, np.full(len(rows), -1, dtype=np.int32)
        target = table[:, -1]  # FileLayout.used has the class last
        codes = np.where(np.isnan(target), -1, target).astype(np.int32)
        return np.ascontiguousarray(table[:, :-1]), codes

    def _row(self, tokens: list[str], line: str) -> list[float]:
        """Return the cells in use, the class last."""
        if tokens[0] == "{":
            return self._sparse(tokens)
        if "{" in tokens:
            begin = tokens.index("{")
            _check_weight(tokens[begin:])
            tokens = tokens[:begin]
        if "}" in tokens:
            message = "a brace } stands in quotes where it is a value"
            raise ArffLineError(message)
        if len(tokens) != self._width:
            raise ArffLineError(self._count_complaint(len(tokens), line))
        return [cells.number(tokens[j]) for j, cells in self._cells]

    def _count_complaint(self, count: int, line: str) -> str:
        message = f"{count} values, expected {self._width} separated by ','"
        if count < self._width and _EMPTY.search(line):
            return f"{message}; a value is empty; write ? where it is missing"
        if count > self._width:
            return f"{message}; a value with blanks or commas stands in quotes"
        return message

    def _sparse(self, tokens: list[str]) -> list[float]:
        """Return a row from `{index value, …}`."""
        end = tokens.index("}") if "}" in tokens else 0
        inside = tokens[1:end]
        if not end or "{" in inside:
            message = "a sparse row must be {index value, index value, …} on one line"
            raise ArffLineError(message)
        _check_weight(tokens[end + 1 :])
        named: dict[int, float] = {}
        last = -1
        for at in range(0, len(inside), 2):
            index = self._index(inside[at : at + 2], last)
            if index in self._place:
                place = self._place[index]
                named[place] = self._cells[place][1].number(inside[at + 1])
            last = index
        row = [0.0] * len(self._cells)
        for place, number in named.items():
            row[place] = number
        # Only a numeric class can have a code other than 0 there.
        if self._layout.target is not None and len(self._cells) - 1 not in named:
            row[-1] = self._cells[-1][1].unnamed()
        return row

    def _index(self, pair: Sequence[str], last: int) -> int:
        """Return the index of a pair `index value` that follows index `last`."""
        if len(pair) < 2 or not _INDEX.fullmatch(text_of(pair[0])):
            pair_text = " ".join(pair)[:_SHOWN]
            message = f"{pair_text!r} must be 'index value'; a value with blanks stands in quotes"
            raise ArffLineError(message)
        index = int(text_of(pair[0]))
        if not last < index < self._width:
            message = (
                f"index {index} must be greater than the index before it and at most {self._width - 1} "
                f"(the first attribute has index 0)"
            )
            raise ArffLineError(message)
        return index


def _check_weight(tokens: Sequence[str]) -> None:
    """Refuse text after a row, except a weight of 1."""
    if not tokens:
        return
    rest = " ".join(tokens)[:_SHOWN]
    if len(tokens) != 3 or (tokens[0], tokens[2]) != ("{", "}") or not NUMBER.fullmatch(text_of(tokens[1])):
        message = f"{rest!r} after the values of a row must be its weight {{1}}"
        raise ArffLineError(message)
    if float(text_of(tokens[1])) != 1:
        message = (
            f"the row has the weight {text_of(tokens[1])}, but weights of rows cannot be read: "
            f"each row counts once; remove the weights, or repeat the rows"
        )
        raise ArffLineError(message)
