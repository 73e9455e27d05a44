"""Sniffing: the format of a file; of delimited text also the delimiter and whether it has a header."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from typing import Literal

from topics.readers.delimited import NUMBER
from topics.readers.vocabulary import MISSING

FileFormat = Literal["arff", "libsvm", "csv", "parquet", "arrow"]
FORMATS: tuple[FileFormat, ...] = ("arff", "libsvm", "csv", "parquet", "arrow")
DELIMITERS = ",;\t|"

LINES_LOOKED_AT = 200
ROWS_LOOKED_AT = 5000

_ARFF = re.compile(rb"^[ \t]*@(relation|attribute|data)\b", re.IGNORECASE | re.MULTILINE)
# Lines that can only be meant as LIBSVM, though they break its rules (`qid:3 1:2`, several labels, `1: 2`, no
# label), are for its reader to refuse: its message names the rule.
_LABEL = rb"(?:[+-]?[0-9.]+(?:,[+-]?[0-9.]+)*,?|[^\s:,]+)"
_PAIR = rb"(?:qid|[0-9]+):(?:[^\s:,]+|[ \t]+[+-]?[0-9.][^\s:,]*)"
_PAIRS = rb"%b(?:[ \t]+%b)*" % (_PAIR, _PAIR)
_LABEL_AND_PAIRS = re.compile(rb"[ \t]*%b[ \t]+%b[ \t]*\r?" % (_LABEL, _PAIRS))
_LABEL_OR_PAIRS = re.compile(rb"[ \t]*(?:%b|%b)[ \t]*\r?" % (_LABEL, _PAIRS))
_WORDS = re.compile(rb"[^:,\t]+")  # a first line of names, or of the counts of rows, attributes and labels


def sniff_format(text: bytes) -> FileFormat:
    """Return the format of a file of text that begins with `text`: by content, since names lie."""
    if _ARFF.search(text):
        return "arff"
    return "libsvm" if _is_libsvm(text) else "csv"


def _is_libsvm(text: bytes) -> bool:
    """Return whether the first lines are `label index:value …`, with at most one line of words above."""
    lines = [line.split(b"#")[0] for line in text.split(b"\n")[:LINES_LOOKED_AT]]
    lines = [line for line in lines if line.strip()]
    whole = [_LABEL_AND_PAIRS.fullmatch(line) is not None for line in lines]
    if lines and not whole[0] and _WORDS.fullmatch(lines[0]):
        lines, whole = lines[1:], whole[1:]
    return any(whole) and all(
        is_whole or _LABEL_OR_PAIRS.fullmatch(line) for line, is_whole in zip(lines, whole, strict=True)
    )


def sniff_delimiter(text: str) -> str:
    """Return the delimiter that cuts the first lines into the same number of cells, the most of them."""
    best, best_score = ",", (0.0, 0)
    for delimiter in DELIMITERS:
        counts = [len(row) for row in rows_of(text, delimiter, LINES_LOOKED_AT)]
        usual = max(set(counts), key=counts.count, default=0)
        # Lines that agree count first: a comma inside words splits some lines, the delimiter splits all
        # alike.
        score = (counts.count(usual) / len(counts) if usual > 1 else 0.0, usual)
        if score > best_score:
            best, best_score = delimiter, score
    return best


def rows_of(text: str, delimiter: str, limit: int = ROWS_LOOKED_AT) -> list[list[str]]:
    """Return the first rows of a text, cells stripped."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True)
    rows: list[list[str]] = []
    for row in reader:
        if any(cell.strip() for cell in row):
            rows.append([cell.strip() for cell in row])
        if len(rows) == limit:
            break
    return rows


def has_header(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether the first row names the columns.

    Names are neither numbers nor missing, and all differ. Then they are a header if below at least one of
    them all cells are numbers, or if no name comes again as a value of its column.
    """
    if not rows:
        return False
    first, below = rows[0], [row for row in rows[1:] if len(row) == len(rows[0])]
    named = [cell for cell in first if cell]  # the column of row numbers often has no name
    if not named or len(set(named)) < len(named) or any(map(is_number, named)):
        return False
    if any(cell in MISSING for cell in named):
        return False
    columns = [[row[j] for row in below] for j in range(len(first))]
    if any(cells and all(is_number(c) or c in MISSING for c in cells) for cells in columns):
        return True
    return not any(name in cells for name, cells in zip(first, columns, strict=True))


def is_number(cell: str) -> bool:
    """Return whether a cell is a number."""
    return NUMBER.fullmatch(cell) is not None
