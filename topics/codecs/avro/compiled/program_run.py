"""Reading: a kernel that runs the program of a schema over records and checks every byte of them."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from core.kernels.jit import bits, kernel, row_of, start_of
from topics.codecs.avro.compiled.program import (
    BOOLEAN,
    BRANCH,
    BYTES,
    CALL,
    COMPOSITE,
    DECIMAL_BYTES,
    DECIMAL_FIXED,
    DIGITS,
    DOUBLE,
    ENUM,
    FIXED,
    FLOAT,
    INT,
    ITEMS,
    JUMP,
    LONG,
    MAX_ITEMS,
    N_CELLS,
    N_DIGITS,
    N_MEMBERS,
    NEXT,
    RETURN,
    START,
    STRING,
    SYMBOL_BYTES,
)
from topics.codecs.json.compiled.decimals import nearest
from topics.codecs.json.compiled.rows import FALSE, LENGTH_BITS, NULL, NUMBER, TRUE
from topics.codecs.json.compiled.rows import STRING as TEXT
from topics.columns.texts import write_number
from topics.columns.utf8 import is_text
from topics.columns.words import half_word, single, word

COMPOSITE_KIND: Final = 6
"""Kind of a cell that is a record, an array or a map, beside the kinds of JSON."""
GOOD, LEFT = 0, 1
"""Verdicts: the cells are set; the record is valid, but only the library reads all of its cells."""
(
    CUT_OFF,
    LONG_NUMBER,
    WIDE_INT,
    NEGATIVE,
    NO_BOOLEAN,
    NO_SYMBOL,
    NO_BRANCH,
    NOT_UTF8,
    TOO_DEEP,
    TOO_MANY,
    TRAILING,
) = range(2, 13)
"""Other verdicts: the rule that the bytes break; the place of the instruction is above VERDICT_BITS."""
VERDICT_BITS: Final = 8
MAX_DEPTH: Final = 256
"""Records, arrays and maps within each other; functions of Python walk through them in every thread."""
FRAME: Final = 2
"""Words of a frame: the place to go on, and the items that are left in the block (-1: no array or map)."""
DIGIT_BYTES: Final = 20

_LONGEST: Final = (1 << LENGTH_BITS) - 1
_ONE_BITS: Final = int(np.float64(1.0).view(np.int64))
_NAN_BITS: Final = int(np.float64(np.nan).view(np.int64))
_EXPONENT: Final = 0x7FF << 52
_MANTISSA: Final = (1 << 52) - 1
_SEVEN_BITS: Final = np.uint64(127)
_SEVEN: Final = np.uint64(7)
_ONE: Final = np.uint64(1)
_MORE: Final = 128
_NUMBER_BYTES: Final = 10
_LOWEST: Final = -(1 << 63)
_LOWEST_INT, _HIGHEST_INT = -(1 << 31), (1 << 31) - 1
_MINUS: Final = 45
_ASCII_END: Final = 128
_WORD_BYTES: Final = 8


@kernel(
    "void(Array(uint8, 1, 'C', readonly=True), int64[::1], int64[::1], int64[::1], int64[:, ::1], "
    "uint8[:, ::1], int64[::1], uint8[::1], int64[::1])"
)
def read(text, starts, lengths, program, cells, kinds, verdicts, digits, frames) -> None:
    """Run a program over n records.

    `text` is uint8 and holds the records; `starts` and `lengths` are int64[n], and nothing else of the text
    is read. `program` is int64, as `program.compiled` makes it. `cells` is int64[n, cells]: the bits of a
    float64, or the place of a string, start << LENGTH_BITS | length. Symbols lie after the text, and the
    digits of whole numbers after the symbols. `kinds` is uint8[n, cells]. `verdicts` is int64[n]. `digits` is
    uint8, DIGIT_BYTES for each record and cell with digits. `frames` is int64[MAX_DEPTH * FRAME].
    """
    bytes_, code, stack, to = start_of(text), start_of(program), start_of(frames), start_of(digits)
    symbols = len(text)
    for row in range(len(starts)):
        cell, kind = row_of(cells, row), row_of(kinds, row)
        for number in range(code[N_CELLS]):
            cell[number] = _NAN_BITS
            kind[number] = NULL
        stack[0], stack[1] = symbols, row
        verdicts[row] = _run(bytes_, starts[row], starts[row] + lengths[row], code, cell, kind, stack, to)


@kernel
def _run(text, at: int, end: int, code, cells, kinds, frames, digits) -> int:
    """Read a record; return its verdict. The first frame holds the place of the symbols, and the row."""
    symbols, row = frames[0], frames[1]
    here, depth, items, needs_library = code[START], 0, 0, False
    while True:
        operation, cell = code[here], code[here + 1]
        if operation == DOUBLE:
            if end - at < _WORD_BYTES:
                return CUT_OFF | here << VERDICT_BITS
            if cell >= 0:
                needs_library |= _set_float(np.int64(word(text, at)), code, cells, kinds, cell)
            at += _WORD_BYTES
            here += 2
        elif operation == BRANCH:
            value, after = _long(text, at, end)
            if after < 0:
                return -after | here << VERDICT_BITS
            if value < 0 or value >= cell:
                return NO_BRANCH | here << VERDICT_BITS
            at = after
            here = code[here + 2 + value]
        elif operation == JUMP:
            here = cell
        elif operation in (LONG, INT):
            value, after = _long(text, at, end)
            if after < 0:
                return -after | here << VERDICT_BITS
            if operation == INT and (value < _LOWEST_INT or value > _HIGHEST_INT):
                return WIDE_INT | here << VERDICT_BITS
            if cell >= 0:
                cells[cell] = bits(np.float64(value))
                kinds[cell] = NUMBER
            at = after
            here += 2
        elif operation == FLOAT:
            if end - at < _WORD_BYTES // 2:
                return CUT_OFF | here << VERDICT_BITS
            if cell >= 0:
                needs_library |= _set_float(bits(single(half_word(text, at))), code, cells, kinds, cell)
            at += _WORD_BYTES // 2
            here += 2
        elif operation in (STRING, BYTES, DECIMAL_BYTES):
            value, after = _length(text, at, end)
            if after < 0:
                return -after | here << VERDICT_BITS
            at = after + value
            if operation == STRING and not is_text(text, after, at):
                return NOT_UTF8 | here << VERDICT_BITS
            if cell >= 0:
                if operation == DECIMAL_BYTES:
                    needs_library |= _set_decimal(text, after, value, code[here + 2], cells, kinds, cell)
                else:
                    needs_library |= _set_text(text, after, value, operation == BYTES, cells, kinds, cell)
            here += 3 if operation == DECIMAL_BYTES else 2
        elif operation == BOOLEAN:
            if at >= end:
                return CUT_OFF | here << VERDICT_BITS
            if np.int64(text[at]) > 1:
                return NO_BOOLEAN | here << VERDICT_BITS
            if cell >= 0:
                is_true = np.int64(text[at]) == 1
                cells[cell] = _ONE_BITS if is_true else 0
                kinds[cell] = TRUE if is_true else FALSE
            at += 1
            here += 2
        elif operation == ENUM:
            value, after = _long(text, at, end)
            if after < 0:
                return -after | here << VERDICT_BITS
            count = code[here + 2]
            if value < 0 or value >= count:
                return NO_SYMBOL | here << VERDICT_BITS
            if cell >= 0:
                symbol = here + 3 + 2 * value
                cells[cell] = ((symbols + code[symbol]) << LENGTH_BITS) | code[symbol + 1]
                kinds[cell] = TEXT
            at = after
            here += 3 + 2 * count
        elif operation == DIGITS:
            value, after = _long(text, at, end)
            if after < 0:
                return -after | here << VERDICT_BITS
            if code[here + 3] == 1 and (value < _LOWEST_INT or value > _HIGHEST_INT):
                return WIDE_INT | here << VERDICT_BITS
            start = DIGIT_BYTES * (row * code[N_DIGITS] + code[here + 2])
            stop = _write_digits(value, digits, start)
            needs_library |= stop < 0
            cells[cell] = ((symbols + code[SYMBOL_BYTES] + start) << LENGTH_BITS) | max(stop - start, 0)
            kinds[cell] = TEXT
            at = after
            here += 4
        elif operation in (FIXED, DECIMAL_FIXED):
            is_decimal = operation == DECIMAL_FIXED
            size = code[here + 3] if is_decimal else code[here + 2]
            if end - at < size:
                return CUT_OFF | here << VERDICT_BITS
            if cell >= 0:
                if is_decimal:
                    needs_library |= _set_decimal(text, at, size, code[here + 2], cells, kinds, cell)
                else:
                    needs_library |= _set_text(text, at, size, True, cells, kinds, cell)
            at += size
            here += 4 if is_decimal else 3
        elif operation in (ITEMS, NEXT):
            # Frame: the place of ITEMS, and the items that are left in the block.
            if operation == ITEMS:
                depth += 1
                if depth >= MAX_DEPTH:
                    return TOO_DEEP | here << VERDICT_BITS
                frames[FRAME * depth], frames[FRAME * depth + 1] = here, 0
            else:
                here = frames[FRAME * depth]
            if frames[FRAME * depth + 1] == 0:
                value, after = _block(text, at, end)
                if after < 0:
                    return -after | here << VERDICT_BITS
                at = after
                if value > code[MAX_ITEMS] - items:
                    return TOO_MANY | here << VERDICT_BITS
                items += value
                frames[FRAME * depth + 1] = value
            if frames[FRAME * depth + 1] == 0:
                depth -= 1
                here = code[here + 1]
            else:
                frames[FRAME * depth + 1] -= 1
                if code[here + 2] == 1:
                    value, after = _length(text, at, end)
                    if after < 0:
                        return -after | here << VERDICT_BITS
                    at = after + value
                    if not is_text(text, after, at):
                        return NOT_UTF8 | here << VERDICT_BITS
                here += 3
        elif operation == CALL:
            depth += 1
            if depth >= MAX_DEPTH:
                return TOO_DEEP | here << VERDICT_BITS
            items += 1
            if items > code[MAX_ITEMS]:
                return TOO_MANY | here << VERDICT_BITS
            frames[FRAME * depth], frames[FRAME * depth + 1] = here + 2, -1
            here = cell
        elif operation == RETURN:
            if depth == 0:
                if at != end:
                    return TRAILING
                return LEFT if needs_library else GOOD
            here = frames[FRAME * depth]
            depth -= 1
        elif operation == COMPOSITE:
            cells[cell] = _NAN_BITS
            kinds[cell] = COMPOSITE_KIND
            here += 2
        else:  # LEAVE
            needs_library = True
            here += 1


@kernel
def _long(text, at: int, end: int) -> Any:
    """Return a zigzag number and the place after it; if it is invalid, the place is the negative verdict."""
    number, shift = np.uint64(0), np.uint64(0)
    for place in range(_NUMBER_BYTES):
        if at + place >= end:
            return np.int64(0), np.int64(-CUT_OFF)
        byte = np.uint64(text[at + place])
        if place == _NUMBER_BYTES - 1 and byte > _ONE:
            break
        number |= (byte & _SEVEN_BITS) << shift
        if byte < _MORE:
            return np.int64(number >> _ONE) ^ -np.int64(number & _ONE), np.int64(at + place + 1)
        shift += _SEVEN
    return np.int64(0), np.int64(-LONG_NUMBER)


@kernel
def _length(text, at: int, end: int) -> Any:
    """Return the length of bytes and their place; the place is negative as that of `_long`."""
    value, after = _long(text, at, end)
    if after >= 0 and value < 0:
        after = np.int64(-NEGATIVE)
    elif after >= 0 and value > end - after:
        after = np.int64(-CUT_OFF)
    return value, after


@kernel
def _block(text, at: int, end: int) -> Any:
    """Return the items of a block and the place of the first; a size follows a negative number of items."""
    value, after = _long(text, at, end)
    if after < 0 or value >= 0:
        return value, after
    if value == _LOWEST:
        return value, np.int64(-NEGATIVE)
    _size, after = _length(text, after, end)
    return -value, after


@kernel
def _set_float(value, code, cells, kinds, cell: int) -> bool:
    """Set a cell to the bits of a float64, in which NaN is null; return whether its flaw has to be named."""
    is_special = (value & _EXPONENT) == _EXPONENT
    is_nan = is_special and (value & _MANTISSA) != 0
    cells[cell] = _NAN_BITS if is_nan else value
    kinds[cell] = NULL if is_nan else NUMBER
    return is_special and (not is_nan or cell < code[N_MEMBERS])


@kernel
def _set_text(text, start: int, n: int, is_binary: bool, cells, kinds, cell: int) -> bool:
    """Set a cell to a text; return whether it is left to the library: binary beyond ASCII, or very long."""
    cells[cell] = (start << LENGTH_BITS) | (n & _LONGEST)
    kinds[cell] = TEXT
    if is_binary:
        for place in range(start, start + n):
            if np.int64(text[place]) >= _ASCII_END:
                return True
    return n > _LONGEST


@kernel
def _set_decimal(text, start: int, n: int, scale: int, cells, kinds, cell: int) -> bool:
    """Set a cell to a decimal; return whether it is left to the library."""
    if n > _WORD_BYTES:
        return True
    unscaled = np.int64(0)
    for place in range(n):
        byte = np.int64(text[start + place])
        if place == 0 and byte >= _ASCII_END:
            byte -= 256
        unscaled = (unscaled << 8) | byte
    number = nearest(np.uint64(-unscaled if unscaled < 0 else unscaled), -scale)
    cells[cell] = bits(-number if unscaled < 0 else number)
    kinds[cell] = NUMBER
    return number != number


@kernel
def _write_digits(number: int, to, at: int) -> int:
    """Write a whole number; return the end of its digits, or -1 if its positive is not in 64 bits."""
    if number == _LOWEST:
        return -1
    if number < 0:
        to[at] = _MINUS
        return write_number(-number, to, at + 1)
    return write_number(number, to, at)
