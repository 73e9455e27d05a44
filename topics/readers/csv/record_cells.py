"""CSV records: the cells of rows, cut as pandas.read_csv and pyarrow cut them.

A quote `"` opens a quoted cell only at the beginning of a cell; anywhere else it is an ordinary character
(`6" pipe`). Inside a quoted cell a quote is doubled, and delimiters and line ends are text. Blanks around
cells are ignored, but not inside quotes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from topics.readers.source import NEVER_CLOSED

QUOTE = '"'
BLANKS = " "
"""The delimiter for runs of blanks and tabs."""
_LINE = re.compile(r"[^\r\n]*")
_INSIDE = re.compile(r'(?:[^"]++|"")*+')
_MARKS_AND_BLANKS = (b'" ', b' "', b'"\t', b'\t"')
_ENDS = b"\r\n"


class QuoteError(Exception):
    """A quoted cell that is not valid with this delimiter."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


@dataclass(frozen=True, slots=True)
class Record:
    """A row of text."""

    line: int  # number of its first line
    cells: list[str]
    end: int  # start of the next record in the text
    end_line: int  # line number of the next record


def records(
    text: str, delimiter: str, line: int = 1, *, quotes: bool = True, is_whole: bool = True
) -> Iterator[Record]:
    """Yield the records of a text that begins on line number `line`; blank lines are skipped.

    `delimiter` is one character, or BLANKS for runs of blanks and tabs. `is_whole` is False for a piece of a
    file: its last record, which may be cut off, is left out if a quote is open. Raises QuoteError.
    """
    at = 0
    while at < len(text):
        end = _LINE.match(text, at).end()  # type: ignore[union-attr]
        content = text[at:end]
        if quotes and QUOTE in content:
            try:
                cells, end = _quoted(text, at, delimiter, line)
            except _OpenError as quote:
                if not is_whole:
                    return
                raise QuoteError(NEVER_CLOSED, line + text.count("\n", at, quote.at)) from None
        elif delimiter == BLANKS:
            cells = content.split()
        else:
            cells = [cell.strip() for cell in content.split(delimiter)]
        begin, first = at, line
        at = end + (2 if text.startswith("\r\n", end) else 1)
        line += text.count("\n", begin, at)
        if len(cells) > 1 or (cells and (cells[0] or QUOTE in content)):
            yield Record(first, cells, min(at, len(text)), line)


class _OpenError(Exception):
    def __init__(self, at: int) -> None:
        super().__init__(at)
        self.at = at  # place of the quote


@lru_cache
def _patterns(delimiter: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return the patterns of the start of a quoted cell, and of the text up to the end of a cell."""
    apart = r" \t" if delimiter == BLANKS else re.escape(delimiter)
    blank = " " if delimiter == "\t" else r"[ \t]"
    return re.compile(rf'{blank}*"'), re.compile(rf"[^{apart}\r\n]*")


def _quoted(text: str, at: int, delimiter: str, line: int) -> tuple[list[str], int]:
    """Return the cells of the record that begins at `at`, and its end before the line end."""
    opening, rest = _patterns(delimiter)
    cells: list[str] = []
    begin = at
    while True:
        if delimiter == BLANKS:
            while text[at : at + 1] in (" ", "\t"):
                at += 1
            if at == len(text) or text[at] in "\r\n":
                return cells, at
        opened = opening.match(text, at)
        if opened:
            closed = _INSIDE.match(text, opened.end()).end()  # type: ignore[union-attr]
            if closed == len(text):
                raise _OpenError(opened.end() - 1)
            inside = text[opened.end() : closed]
            at = rest.match(text, closed + 1).end()  # type: ignore[union-attr]
            after = text[closed + 1 : at].rstrip()
            if after and "\n" in inside:
                start = line + text.count("\n", begin, opened.end())
                message = (
                    f"a quoted cell begins here and ends on line {start + inside.count(chr(10))}, where "
                    f"{after[:20]!r} follows its quote: a quote is missing or too many; mend it, or read "
                    "quotes as ordinary characters (--no-quotes)"
                )
                raise QuoteError(message, start)
            cells.append(inside.replace('""', QUOTE) + after)
        else:
            end = rest.match(text, at).end()  # type: ignore[union-attr]
            cells.append(text[at:end].strip())
            at = end
        if at == len(text) or text[at] in "\r\n":
            return cells, at
        at += 1


def is_regular(text: bytes, delimiter: str) -> bool:
    """Return whether pyarrow cuts whole records as `records` does, if it removes the blanks around all cells.

    True if each quote begins or ends a cell, or is one of two inside a cell, and has no blank next to it.
    """
    if not is_clean(text, delimiter.encode()):
        return False
    return not any(pair in text for pair in _MARKS_AND_BLANKS if delimiter != "\t" or b"\t" not in pair)


def is_clean(text: bytes, delimiter: bytes) -> bool:
    """Return whether quotes open and close in turn, so that text after an odd number of them is quoted."""
    characters = np.frombuffer(text, dtype=np.uint8)
    quote = np.flatnonzero(characters == ord(QUOTE))
    if not len(quote):
        return True
    ends = np.zeros(256, dtype=bool)
    ends[list(delimiter + _ENDS)] = True
    opening, closing = quote[::2], quote[1::2]
    begins = (opening == 0) | ends[characters[opening - 1]]
    begins[1:] |= opening[1:] - closing[: len(opening) - 1] == 1
    after = np.minimum(closing + 1, len(characters) - 1)
    stops = (closing + 1 == len(characters)) | ends[characters[after]] | (characters[after] == ord(QUOTE))
    return bool(begins.all() and stops.all())
