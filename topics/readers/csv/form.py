"""Form of a CSV file: the lines before its rows, its delimiter, and its first rows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from topics.errors import DatasetError
from topics.readers.csv.header import has_header
from topics.readers.csv.record_cells import BLANKS, QuoteError, Record, records
from topics.readers.number_form import is_number_of_some_form

DELIMITERS = ",;\t|"
LINES_LOOKED_AT = 200
ROWS_LOOKED_AT = 5000
MOST_TITLES = 50
LEAST_PADDED = 3
"""Least number of columns for titles with delimiters: with two, the second column may have no name."""

_SEP = re.compile(r'\A(?:[ \t]*\r?\n)*"?sep=([^\r\n])"?,*;*[ \t]*(?:\r\n|\r|\n|\Z)', re.IGNORECASE)
_COMMENT = re.compile(r"[ \t]*(#|%|//)")
_PAIR = re.compile(r"[^\s:]+:\S*")
_DECIMAL = re.compile(r"(?<=[0-9]),(?=[0-9])")


@dataclass(frozen=True)
class CsvForm:
    """Delimiter, first rows, and the lines before them."""

    delimiter: str
    first: Sequence[Record]  # the first rows, including the header
    skipped: int  # lines before them
    guesses: tuple[str, ...]


def form_of(
    text: str, path: str, delimiter: str | None, quotes: bool, skip_lines: int | None, is_whole: bool
) -> CsvForm:
    """Return the form of a file that begins with `text`; given options are not detected."""
    guesses: list[str] = []
    at = 0
    if skip_lines is None:
        sep_line = _SEP.match(text)
        if sep_line:
            at = sep_line.end()
            delimiter = delimiter or sep_line.group(1)
            guesses.append(f"{sep_line.group().strip()!r} names the delimiter, as for Excel")
        at, lines = _after_comments(text, at)
    else:
        lines = []
        for _ in range(skip_lines):
            at = text.find("\n", at) + 1 or len(text)
    line = 1 + text.count("\n", 0, at)
    try:
        chosen = delimiter or sniff_delimiter(text[at:], quotes, is_whole)
        rows = _first(text[at:], chosen, line, quotes, is_whole)
        if skip_lines is None:
            header = _header_of_comment(lines, rows, chosen)
            rows, titles = ([header, *rows], 0) if header else _without_titles(rows)
            if header:
                lines = lines[:-1]
            if lines or titles:
                such = lines[0][1] if lines else "a title"
                guesses.append(
                    f"lines before the header are left out, such as {such[:40]!r} (else --skip-lines 0)"
                )
    except QuoteError as failure:
        raise DatasetError(str(failure), path, failure.line) from None
    if delimiter is None and chosen != ",":
        shown = {"\t": "tabs", BLANKS: "blanks"}.get(chosen, repr(chosen))
        guesses.append(f"cells are separated by {shown} (else --delimiter)")
    skipped = rows[0].line - 1 if rows else 0
    return CsvForm(chosen, rows, skipped, tuple(guesses))


def _after_comments(text: str, at: int) -> tuple[int, list[tuple[int, str]]]:
    """Return the end of the comment lines at the beginning, and these lines with their numbers."""
    lines: list[tuple[int, str]] = []
    number = 1 + text.count("\n", 0, at)
    position = at
    while position < len(text):
        end = text.find("\n", position) + 1 or len(text)
        content = text[position:end].strip()
        if content and not _COMMENT.match(content):
            return (position if lines else at), lines
        if content:
            lines.append((number, content))
        number += 1
        position = end
    return at, []  # only comments: these are the rows


def _header_of_comment(
    lines: Sequence[tuple[int, str]], rows: Sequence[Record], delimiter: str
) -> Record | None:
    """Return the last comment line as a header, if it fits the rows and they have no header of their own."""
    if not lines or not rows or len(rows[0].cells) < 2:
        return None
    number, text = lines[-1]
    if rows[0].line != number + 1:
        return None
    cells = _first(_COMMENT.sub("", text) if delimiter == BLANKS else text, delimiter, number, True, True)
    if len(cells) != 1 or len(cells[0].cells) != len(rows[0].cells):
        return None
    if has_header([row.cells for row in rows]):
        return None
    return Record(number, cells[0].cells, 0, number + 1)


def _without_titles(rows: list[Record]) -> tuple[list[Record], int]:
    """Return the rows without title lines (one cell, before rows of several), and their number."""
    titles = 0
    while titles < min(len(rows), MOST_TITLES) and len(rows[titles].cells) == 1:
        titles += 1
    if not titles:
        padded = _padded_titles(rows)
        return rows[padded:], padded
    following = rows[titles : titles + 2]
    if not following or len({len(row.cells) for row in following}) > 1:
        return rows, 0
    if not all(any(map(str.isalpha, row.cells[0])) for row in rows[:titles]):
        return rows, 0
    return rows[titles:], titles


def _padded_titles(rows: Sequence[Record]) -> int:
    """Return the number of first rows without a value after the first cell, if a whole header follows.

    Spreadsheets write titles and empty lines with as many delimiters as other lines.
    """
    titles = 0
    while titles < min(len(rows), MOST_TITLES) and not any(rows[titles].cells[1:]):
        titles += 1
    if not titles or titles == len(rows) or len(rows[titles].cells) < LEAST_PADDED:
        return 0
    following = [row.cells for row in rows[titles:]]
    return titles if all(following[0]) and has_header(following) else 0


def sniff_delimiter(text: str, quotes: bool = True, is_whole: bool = True) -> str:
    """Return the delimiter that cuts the first lines into equally many cells, preferably into most of them.

    If all commas stand between digits, and another delimiter cuts all lines alike, they are decimal commas.
    Blanks separate cells only if no other delimiter does.
    """
    scores: dict[str, tuple[float, int]] = {}
    for delimiter in DELIMITERS:
        counts = list(map(len, _cells(text, delimiter, quotes, is_whole)))
        usual = max(set(counts), key=counts.count, default=0)
        # The share of equal lines counts first: a comma inside words splits some lines, the delimiter splits
        # all alike.
        scores[delimiter] = (counts.count(usual) / len(counts) if usual > 1 else 0.0, usual)
    sample = "\n".join(text.split("\n")[:LINES_LOOKED_AT])
    if len(_DECIMAL.findall(sample)) == sample.count(",") and scores[","][0]:
        others = [d for d in DELIMITERS if d != "," and scores[d][0] == 1.0]
        if others:
            return max(others, key=scores.__getitem__)
    best = max(scores, key=scores.__getitem__)  # the first of equal scores
    if scores[best][0]:
        return best
    return BLANKS if _is_table_of_blanks(text, quotes, is_whole) else ","


def _is_table_of_blanks(text: str, quotes: bool, is_whole: bool) -> bool:
    """Return whether runs of blanks cut all first lines into equal numbers of cells, some of them numbers."""
    rows = _cells(text, BLANKS, quotes, is_whole)
    below = rows[1:] or rows
    if not below or len(below[0]) < 2 or len({len(row) for row in below}) > 1:
        return False
    if len(rows[0]) not in (len(below[0]), len(below[0]) - 1):
        return False
    cells = [cell for row in below for cell in row]
    return any(map(is_number_of_some_form, cells)) and not any(map(_PAIR.fullmatch, cells))


def _cells(text: str, delimiter: str, quotes: bool, is_whole: bool) -> list[list[str]]:
    """Return the cells of the first lines; none if the quotes make no sense with a delimiter."""
    try:
        return [r.cells for r in _first(text, delimiter, 1, quotes, is_whole, LINES_LOOKED_AT)]
    except QuoteError:
        return []


def _first(
    text: str, delimiter: str, line: int, quotes: bool, is_whole: bool, limit: int = ROWS_LOOKED_AT
) -> list[Record]:
    first: list[Record] = []
    for record in records(text, delimiter, line, quotes=quotes, is_whole=is_whole):
        first.append(record)
        if len(first) == limit:
            break
    return first
