"""Rows of ARFF data line by line: quotes, escapes, comments, blanks as separators, sparse rows.

Slow, about 10 µs a cell: only for blocks that pyarrow's CSV parser (delimited.py) cannot read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from topics.errors import DatasetError
from topics.readers.arff_header import unquoted
from topics.readers.dataset import Batch
from topics.readers.delimited import complaint, decoded
from topics.readers.layout import Column, FileLayout
from topics.readers.source import LineBlock

_TOKEN = re.compile(r"\s*('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|[^,\s'\"%{}][^,\s{}]*)\s*")
_TOKEN_WITH_BLANKS = re.compile(r"\s*('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|[^,'\"%{}\s][^,{}]*)\s*")

_NAN = frozenset(["NaN", "nan"])  # of numbers only: it may be a declared value


class ArffRowError(Exception):
    """What is wrong with a line; the caller adds file and number."""


def parse_rows(path: str, layout: FileLayout, block: LineBlock) -> Batch:
    """Return x: float64[m, d] and y: int32[m] of the m rows of a block; DatasetError with file and line."""
    rows = []
    for number, raw in enumerate(decoded(block, path).split("\n"), block.line):
        text = raw.strip()
        if not text or text.startswith("%"):
            continue
        try:
            rows.append(_sparse(text, layout) if text.startswith("{") else _dense(text, layout))
        except ArffRowError as failure:
            raise DatasetError(str(failure), path, number) from None
    table = np.array(rows, dtype=np.float64).reshape(len(rows), len(layout.columns))
    x = np.ascontiguousarray(table[:, list(layout.features)])
    if layout.target is None:
        return x, np.full(len(rows), -1, dtype=np.int32)
    target = table[:, layout.target]
    return x, np.where(np.isnan(target), -1, target).astype(np.int32)


def _dense(line: str, layout: FileLayout) -> list[float]:
    cells = list(_cells(line))
    if len(cells) != len(layout.columns):
        message = f"{len(cells)} values, expected {len(layout.columns)} separated by ','"
        raise ArffRowError(message)
    row = [0.0] * len(cells)
    for j in layout.used:
        row[j] = _number(layout.columns[j], cells[j])
    return row


def _cells(line: str) -> Iterator[str]:
    """Yield the tokens of a dense row: separated by commas, or by blanks where there is none."""
    commas = "," in line
    token = _TOKEN_WITH_BLANKS if commas else _TOKEN
    at = 0
    while True:
        match = token.match(line, at)
        if not match:
            raise ArffRowError(_rule_at(line, at))
        yield match.group(1).rstrip()
        at = match.end()
        if at == len(line) or line[at] == "%":
            return
        if commas:
            if line[at] != ",":
                raise ArffRowError(_rule_at(line, at))
            at += 1


def _rule_at(line: str, at: int) -> str:
    rest = line[at:].strip()
    if rest.startswith(("{", "}")):
        return "weights of rows '{…}' cannot be read; remove them"
    if not rest or rest.startswith(","):
        return "a value is empty; write ? where it is missing"
    if rest[0] in "'\"":
        return f"a quote {rest[0]} is opened and never closed: {rest[:40]!r}"
    return f"{rest[:40]!r} must be a value, ',' between values, quotes around blanks and commas"


def _sparse(line: str, layout: FileLayout) -> list[float]:
    """Return a row from `{index value, …}`: what is not named is 0, for nominal columns the first value."""
    inside, brace, after = line[1:].rpartition("}")
    if not brace or (after.strip() and not after.strip().startswith("%")):
        message = "a sparse row must be {index value, index value, …}"
        raise ArffRowError(message)
    row = [0.0] * len(layout.columns)
    last = -1
    at = 0
    while inside[at:].strip():
        match = _TOKEN.match(inside, at)
        value = _TOKEN.match(inside, match.end()) if match else None
        if not match or not value or not match.group(1).isdecimal():
            message = f"{inside[at:].strip()[:40]!r} must be 'index value'"
            raise ArffRowError(message)
        index = int(match.group(1))
        if not last < index < len(row):
            message = f"index {index} must be greater than the one before it and at most {len(row) - 1}"
            raise ArffRowError(message)
        if index in layout.used:
            row[index] = _number(layout.columns[index], value.group(1))
        last = index
        at = value.end()
        if at < len(inside):
            if inside[at] != ",":
                raise ArffRowError(_rule_at(inside, at))
            at += 1
    return row


def _number(column: Column, token: str) -> float:
    """Return a cell as number or code, NaN where missing."""
    if token == "?":  # noqa: S105 - of a line
        return np.nan
    text = unquoted(token)
    message = complaint(column, text, _NAN)
    if message:
        raise ArffRowError(message)
    if column.vocabulary is None:
        return float(text)  # "nan" too
    code = column.vocabulary.code(text)
    return np.nan if code < 0 else float(code)
