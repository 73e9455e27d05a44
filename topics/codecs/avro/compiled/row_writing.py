"""Row writing: a kernel that writes values of one schema from columns, by a program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from core.kernels.jit import from_bits, kernel, row_of, start_of
from topics.codecs.json.compiled.rows import LENGTH_BITS
from topics.columns.records import Ints64
from topics.columns.spans import Spans
from topics.columns.texts import copied

END, CONSTANT, CHOICE, NUMBER, MAYBE_NUMBER, WHOLE, MAYBE_WHOLE, TEXT, MAYBE_TEXT, CELL = range(10)
"""Operations, with their operands: END; CONSTANT start, bytes; CHOICE column, number of choices, then start
and bytes of each (-1: the last); NUMBER, MAYBE_NUMBER, WHOLE, MAYBE_WHOLE, TEXT, MAYBE_TEXT column; CELL
column of a text, which is absent or replaces the number in the next column. The first branch of a union is
null, the second one the number or the text; the third one is the text of CELL. NaN, a negative whole number
and an absent text are null where the operation allows it.
"""
WIDEST_CELL: Final = 11
"""Bytes of a cell beside its text: a branch, and a number of at most ten bytes."""

_LENGTH: Final = (1 << LENGTH_BITS) - 1
_SECOND, _THIRD = 2, 4  # branches 1 and 2 in zigzag coding
_SEVEN: Final = np.uint64(7)
_LOW: Final = np.uint64(127)
_MORE: Final = np.uint64(128)


@kernel(
    "int64(int64[::1], Array(uint8, 1, 'C', readonly=True), Array(uint8, 1, 'C', readonly=True), "
    "int64[:, ::1], uint8[::1], int64[::1])"
)
def write_rows(program, constants, texts, words, out, starts) -> int:
    """Write n values; return the bytes.

    `program` is int64, as `Rows` makes it; `constants` and `texts` are uint8. `words` is int64[n, columns]:
    the bits of a float64, a whole number, or the place of a text, start << LENGTH_BITS | length, -1: absent.
    `out` is uint8 with room for all values; `starts` is int64[n + 1], the start of each value and the end.
    """
    code, fixed, text, to, at = start_of(program), start_of(constants), start_of(texts), start_of(out), 0
    for row in range(len(starts) - 1):
        starts[row] = at
        at = _write(code, fixed, text, row_of(words, row), to, at)
    starts[len(starts) - 1] = at
    return at


@kernel
def _write(code, constants, texts, words, to, at: int) -> int:
    """Write one value; return its end."""
    here = 0
    while code[here] != END:
        operation, column = code[here], code[here + 1]
        if operation == CONSTANT:
            at = copied(constants, column, column + code[here + 2], to, at)
            here += 3
        elif operation == CHOICE:
            count, number = code[here + 2], words[column]
            span = here + 3 + 2 * (count - 1 if number < 0 else number)
            at = copied(constants, code[span], code[span] + code[span + 1], to, at)
            here += 3 + 2 * count
        elif operation == NUMBER:
            at = _word(words[column], to, at)
        elif operation == MAYBE_NUMBER:
            at = _maybe_number(words[column], to, at)
        elif operation == WHOLE:
            at = _zigzag(words[column], to, at)
        elif operation == MAYBE_WHOLE:
            to[at] = _SECOND if words[column] >= 0 else 0
            at += 1
            if words[column] >= 0:
                at = _zigzag(words[column], to, at)
        elif operation == CELL and words[column] < 0:
            at = _maybe_number(words[column + 1], to, at)
        else:
            span = words[column]
            if operation != TEXT:
                to[at] = 0 if span < 0 else _THIRD if operation == CELL else _SECOND
                at += 1
            if span >= 0:
                start, n = span >> LENGTH_BITS, span & _LENGTH
                at = copied(texts, start, start + n, to, _zigzag(n, to, at))
        if operation > CHOICE:
            here += 2
    return at


@kernel
def _maybe_number(word: int, to, at: int) -> int:
    """Write the bits of a number that is null if it is NaN; return their end."""
    value = from_bits(word)
    if value != value:
        to[at] = 0
        return at + 1
    to[at] = _SECOND
    return _word(word, to, at + 1)


@kernel
def _word(word: int, to, at: int) -> int:
    """Write eight bytes, the lowest first; return their end."""
    for place in range(8):
        to[at + place] = (word >> (8 * place)) & 255
    return at + 8


@kernel
def _zigzag(number: int, to, at: int) -> int:
    """Write a whole number; return its end."""
    rest = np.uint64((number << 1) ^ (number >> 63))
    while rest >= _MORE:
        to[at] = (rest & _LOW) | _MORE
        rest >>= _SEVEN
        at += 1
    to[at] = rest
    return at + 1


@dataclass(frozen=True, slots=True, eq=False)
class RowProgram:
    """A program of `write_rows`."""

    code: Ints64
    constants: bytes
    columns: int
    most_bytes: int
    """Bytes of a value, texts aside."""

    def write(self, words: Ints64, texts: bytes, text_bytes: int) -> Spans:
        """Return the values of n rows (int64[n, columns]); `text_bytes` is the sum of their texts."""
        n = len(words)
        out = np.empty(n * self.most_bytes + text_bytes, dtype=np.uint8)
        starts = np.empty(n + 1, dtype=np.int64)
        fixed, text = (np.frombuffer(part, dtype=np.uint8) for part in (self.constants, texts))
        size = write_rows(self.code, fixed, text, words, out, starts)
        return Spans.adjacent(out[:size].tobytes(), starts)


class Rows:
    """Makes a program step by step; cells are the columns in the order of their steps."""

    def __init__(self) -> None:
        self._code: list[int] = []
        self._constants = bytearray()
        self._columns = 0
        self._most = 0

    def constant(self, content: bytes) -> None:
        """Write the same bytes in every row."""
        self._code += [CONSTANT, *self._span(content)]
        self._most += len(content)

    def choice(self, contents: Sequence[bytes]) -> None:
        """Write one of several constants."""
        self._code += [CHOICE, self._column(), len(contents)]
        for content in contents:
            self._code += self._span(content)
        self._most += max(map(len, contents))

    def cell(self, operation: int) -> None:
        """Write a number, a text, or one of both from two columns (CELL)."""
        self._code += [operation, self._column()]
        self._columns += operation == CELL
        self._most += WIDEST_CELL

    def program(self) -> RowProgram:
        """Return the program."""
        code = np.array([*self._code, END], dtype=np.int64)
        return RowProgram(code, bytes(self._constants), self._columns, self._most)

    def _column(self) -> int:
        self._columns += 1
        return self._columns - 1

    def _span(self, content: bytes) -> list[int]:
        start = len(self._constants)
        self._constants += content
        return [start, len(content)]


def whole(number: int) -> bytes:
    """Return a whole number in zigzag coding.

    >>> whole(-1), whole(64)
    (b'\\x01', b'\\x80\\x01')
    """
    rest, content = (number << 1) ^ (number >> 63), bytearray()
    while rest > 127:
        content.append(rest & 127 | 128)
        rest >>= 7
    return bytes([*content, rest])


def text(content: str) -> bytes:
    """Return a string as Avro writes it."""
    encoded = content.encode()
    return whole(len(encoded)) + encoded


def placed(columns: Sequence[Spans]) -> tuple[list[Any], bytes, int]:
    """Return columns of texts as words (int64[n] each), the buffer of all texts, and the sum of the texts."""
    buffers: dict[int, int] = {}
    parts: list[bytes] = []
    end = 0
    words = []
    for column in columns:
        start = buffers.get(id(column.buffer))
        if start is None:
            start = buffers[id(column.buffer)] = end
            parts.append(column.buffer)
            end += len(column.buffer)
        places = ((column.starts + start) << LENGTH_BITS) | column.lengths
        words.append(np.where(column.lengths < 0, -1, places))
    return words, b"".join(parts), sum(column.total for column in columns)
