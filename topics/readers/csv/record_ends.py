"""Record ends: where whole records of a growing text end.

Each byte is read a few times at most, for any placement of quotes.
"""

from __future__ import annotations

import re

import numpy as np

from topics.readers.csv.record_cells import BLANKS, QUOTE, is_clean

_INSIDE = re.compile(rb'(?:[^"]++|"")*+')


class RecordEnds:
    """Takes the pieces of a file and returns its whole records."""

    def __init__(self, delimiter: str) -> None:
        """`delimiter` is as in `records`."""
        self._delimiter = b" \t" if delimiter == BLANKS else delimiter.encode()
        self._apart = self._delimiter + b"\r\n"
        self._blanks = {BLANKS: b"", "\t": b" "}.get(delimiter, b" \t")
        self._text = bytearray()
        self._at = 0  # the text up to here has been checked for open quotes
        self._opened: int | None = None  # start of a quoted cell that is not closed yet

    def add(self, piece: bytes) -> bytes:
        """Return the whole records that end within the text so far."""
        self._text += piece
        cut = self._cut()
        records = bytes(self._text[:cut])
        if cut:
            del self._text[:cut]
            self._at = max(self._at - cut, 0)
            self._opened = None if self._opened is None else self._opened - cut
        return records

    def __len__(self) -> int:
        return len(self._text)

    @property
    def rest(self) -> bytes:
        """Return the text after the last whole record."""
        return bytes(self._text)

    @property
    def opened(self) -> int | None:
        """Return the start of a quoted cell in the rest that is open if the file ends here, or None."""
        if self._opened is None:
            self._cut_of_any()  # quotes that open and close in turn were only counted
        if self._opened is None or self._text.endswith(b'"', self._at):
            return None
        return self._opened

    def _cut(self) -> int:
        if self._opened is None and self._text.find(b'"', self._at) < 0:
            self._at = self._text.rfind(b"\n") + 1
            return self._at
        if self._opened is None and self._at == 0:
            cut = self._cut_of_clean()
            if cut:
                self._at = cut
                return cut
        return self._cut_of_any()

    def _cut_of_clean(self) -> int:
        """Return the length of the whole records if all quotes open and close in turn, else 0."""
        text = bytes(self._text)
        if not is_clean(text, self._delimiter):
            return 0
        characters = np.frombuffer(text, dtype=np.uint8)
        quote = np.flatnonzero(characters == ord(QUOTE))
        newline = np.flatnonzero(characters == ord("\n"))
        outside = newline[np.searchsorted(quote, newline) % 2 == 0]
        return int(outside[-1]) + 1 if len(outside) else 0

    def _cut_of_any(self) -> int:
        text, at, cut = self._text, self._at, 0
        while True:
            if self._opened is not None:
                at = _INSIDE.match(text, at).end()  # type: ignore[union-attr]
                if at >= len(text) - 1:  # the last quote may be the first of two
                    self._at = at
                    return cut
                at += 1
                self._opened = None
            quote = self._opening_from(at)
            until = len(text) if quote is None else quote
            cut = max(cut, text.rfind(b"\n", at, until) + 1)
            if quote is None:
                self._at = len(text)
                return cut
            self._opened = until
            at = until + 1

    def _opening_from(self, at: int) -> int | None:
        """Return the place of the next quote at the beginning of a cell."""
        text = self._text
        quote = text.find(b'"', at)
        while quote >= 0:
            before = quote - 1
            while before >= 0 and text[before] in self._blanks:
                before -= 1
            if before < 0 or text[before] in self._apart:
                return quote
            quote = text.find(b'"', quote + 1)
        return None
