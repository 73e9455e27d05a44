"""Rows: a kernel that compares records with shapes and reads their values."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from core.kernels.jit import bits, kernel, row_of, start_of
from topics.codecs.json.compiled.decimals import nearest
from topics.columns.utf8 import behind_character

NUMBER, STRING, TRUE, FALSE, NULL, ESCAPED = range(6)
"""Kinds of values; ESCAPED is a string with valid escapes."""
NO_SHAPE: Final = -1
LENGTH_BITS: Final = 24
"""Bits of a span's length, beside its start: a string in a record is shorter than 16 MiB."""
MAX_DIGITS: Final = 19
"""Digits of a number that fits into 64 bits for any digits."""
MAX_TEXT_DIGITS: Final = 18
"""Digits of a whole number that the codec reads as an integer, with any sign."""
MAX_POWER_DIGITS: Final = 5

_QUOTE, _BACKSLASH, _SPACE, _ASCII_END = 34, 92, 32, 128
_ESCAPES: Final = (_QUOTE, _BACKSLASH, 47, 98, 102, 110, 114, 116)
"""Bytes that may follow a backslash: a quote, a backslash, a slash, b, f, n, r, t. The escape with u is
handled separately.
"""
_SMALL_U: Final = 117
_HIGH_SURROGATE, _LOW_SURROGATE, _SURROGATES_END = 0xD800, 0xDC00, 0xE000
_NO_NUMBER: Final = -1
_MINUS, _PLUS, _POINT, _SMALL_E, _LARGE_E = 45, 43, 46, 101, 69
_T, _F, _N = 116, 102, 110
_DIGIT_ZERO, _DIGIT_A = 48, 97
_WORDS: Final = np.frombuffer(b"truefalsenull", dtype=np.uint8)
_NO_VALUE: Final = -1
_ONE_BITS: Final = int(np.float64(1.0).view(np.int64))
_NAN_BITS: Final = int(np.float64(np.nan).view(np.int64))


@kernel(
    "void(Array(uint8, 1, 'C', readonly=True), int64[::1], int64[::1], uint8[::1], int64[::1], int64[::1], "
    "uint8[::1], int16[::1], int64[:, ::1], uint8[:, ::1])"
)
def scan(text, starts, lengths, literals, literal_starts, first_value, is_text, shape, cells, kinds) -> None:
    """Find the shape of each record, and read its values.

    `text` is uint8 and holds the records; `starts` and `lengths` are int64[n], and nothing else of the text
    is read. `literals` and `literal_starts` hold the consecutive texts of all shapes; shape s has one more
    text than values, and its first text is number first_value[s] + s. `first_value` is int64[shapes + 1],
    over the values of all shapes. `is_text` is uint8, for each value: whole numbers are wanted as text, and
    no other numbers are allowed. `shape` is int16[n]: the shape of a record, or NO_SHAPE, and then another
    reader has to read it. `cells` is int64[n, values of the largest shape]: the bits of a float64 (NaN: null
    or string), or the place of a string, or of a number wanted as text: start << LENGTH_BITS | length.
    `kinds` is uint8, for each cell.
    """
    # Bare pointers: an array costs a count of references at every call.
    bytes_, texts, text_starts = start_of(text), start_of(literals), start_of(literal_starts)
    firsts, wanted = start_of(first_value), start_of(is_text)
    last, shapes = 0, len(first_value) - 1
    for row in range(len(shape)):
        start, end, cell, kind = (
            starts[row],
            starts[row] + lengths[row],
            row_of(cells, row),
            row_of(kinds, row),
        )
        found = NO_SHAPE
        # Most records have the same shape as the record before.
        for turn in range(shapes):
            tried = last if turn == 0 else turn - 1 if turn <= last else turn
            if _read(bytes_, start, end, texts, text_starts, firsts, wanted, tried, cell, kind):
                found = tried
                last = tried
                break
        shape[row] = found


@kernel
def _read(
    text, at: int, end: int, literals, literal_starts, first_value, is_text, shape: int, cells, kinds
) -> bool:
    """Read a record if it has this shape; return whether it has."""
    first, n = first_value[shape], first_value[shape + 1] - first_value[shape]
    for value in range(n):
        literal = first + shape + value
        at = _behind(text, at, end, literals, literal_starts[literal], literal_starts[literal + 1])
        if at < 0:
            return False
        at = _value(text, at, end, is_text[first + value], cells, kinds, value)
        if at < 0:
            return False
    literal = first + shape + n
    return _behind(text, at, end, literals, literal_starts[literal], literal_starts[literal + 1]) == end


@kernel
def _behind(text, at: int, end: int, literals, start: int, stop: int) -> int:
    """Return the place after a literal, or -1 if the text differs."""
    n = stop - start
    if end - at < n:
        return _NO_VALUE
    for i in range(n):
        if text[at + i] != literals[start + i]:
            return _NO_VALUE
    return at + n


@kernel
def _value(text, at: int, end: int, is_text: int, cells, kinds, value: int) -> int:
    """Read a value; return its end, or -1 if it is not simple."""
    if at >= end:
        return _NO_VALUE
    byte = np.int64(text[at])
    if byte == _QUOTE:
        stop = _end_of_simple(text, at + 1, end)
        kinds[value] = STRING
        if stop >= 0 and np.int64(text[stop]) != _QUOTE:
            stop, has_escapes = _end_of_string(text, stop, end)
            kinds[value] = ESCAPED if has_escapes else STRING
        if stop < 0:
            return _NO_VALUE
        cells[value] = ((at + 1) << LENGTH_BITS) | (stop - at - 1)
        return stop + 1
    if byte in (_N, _T, _F):
        return _word(text, at, end, byte, cells, kinds, value)
    return _number(text, at, end, is_text, cells, kinds, value)


@kernel
def _end_of_simple(text, at: int, end: int) -> int:
    """Return the place of a string's end, first escape or first byte that is not ASCII; -1 if it does not
    end.
    """
    while at < end:
        byte = np.int64(text[at])
        if byte < _SPACE or byte in (_QUOTE, _BACKSLASH) or byte >= _ASCII_END:
            return at if byte >= _SPACE else _NO_VALUE
        at += 1
    return _NO_VALUE


@kernel
def _end_of_string(text, at: int, end: int) -> Any:
    """Return the place of the closing quote (-1: it is no string), and whether there are escapes."""
    has_escapes = False
    while at < end:
        byte = np.int64(text[at])
        if byte == _QUOTE:
            return at, has_escapes
        if byte == _BACKSLASH:
            at = _behind_escape(text, at + 1, end)
            has_escapes = True
        elif byte < _SPACE:
            return _NO_VALUE, False
        else:
            at = behind_character(text, at, end)
        if at < 0:
            return _NO_VALUE, False
    return _NO_VALUE, False


@kernel
def _behind_escape(text, at: int, end: int) -> int:
    """Return the end of an escape, given the place after its backslash; -1 if it is invalid."""
    if at >= end:
        return _NO_VALUE
    if np.int64(text[at]) != _SMALL_U:
        return at + 1 if np.int64(text[at]) in _ESCAPES else _NO_VALUE
    unit = _four_digits(text, at + 1, end)
    if unit < 0 or _LOW_SURROGATE <= unit < _SURROGATES_END:
        return _NO_VALUE
    at += 5
    if unit < _HIGH_SURROGATE or unit >= _SURROGATES_END:
        return at
    if end - at < 2 or np.int64(text[at]) != _BACKSLASH or np.int64(text[at + 1]) != _SMALL_U:
        return _NO_VALUE
    unit = _four_digits(text, at + 2, end)
    return at + 6 if _LOW_SURROGATE <= unit < _SURROGATES_END else _NO_VALUE


@kernel
def _four_digits(text, at: int, end: int) -> int:
    """Return the number of four hexadecimal digits, or -1 if they are not digits."""
    if end - at < 4:
        return _NO_NUMBER
    number = 0
    for place in range(at, at + 4):
        digit = np.int64(text[place]) - _DIGIT_ZERO
        if digit > 9:
            digit = (np.int64(text[place]) | _SPACE) - _DIGIT_A + 10  # value of a lower-case letter
            if digit < 10:
                return _NO_NUMBER
        if digit < 0 or digit > 15:
            return _NO_NUMBER
        number = number * 16 + int(digit)
    return number


@kernel
def _word(text, at: int, end: int, byte, cells, kinds, value: int) -> int:
    """Read true, false or null."""
    if byte == _T:
        start, stop, kind, content = 0, 4, TRUE, _ONE_BITS
    elif byte == _F:
        start, stop, kind, content = 4, 9, FALSE, 0
    else:
        start, stop, kind, content = 9, 13, NULL, _NAN_BITS
    cells[value] = content
    kinds[value] = kind
    return _behind(text, at, end, _WORDS, start, stop)


@kernel
def _number(text, at: int, end: int, is_text: int, cells, kinds, value: int) -> int:
    """Read a number as RFC 8259 writes it; -1 if it is invalid, or `nearest` cannot decide it."""
    start = at
    is_negative = np.int64(text[at]) == _MINUS
    if is_negative:
        at += 1
    first = at
    mantissa, at = _digits(text, at, end, np.uint64(0))
    digits = at - first
    if digits == 0 or (digits > 1 and np.int64(text[first]) == _DIGIT_ZERO):
        return _NO_VALUE
    whole = at
    power = 0
    if at < end and np.int64(text[at]) == _POINT:
        point = at + 1
        mantissa, at = _digits(text, point, end, mantissa)
        power = point - at
        digits -= power
        if power == 0:
            return _NO_VALUE
    if digits > MAX_DIGITS:
        return _NO_VALUE
    if at < end and (np.int64(text[at]) == _SMALL_E or np.int64(text[at]) == _LARGE_E):
        written, at = _power(text, at + 1, end)
        power += written
    if at < 0 or (at == whole and is_negative and mantissa == np.uint64(0)):
        return _NO_VALUE  # minus zero as a whole number: left to the codec
    kinds[value] = NUMBER
    if is_text:
        cells[value] = (start << LENGTH_BITS) | (at - start)
        return at if at == whole and digits <= MAX_TEXT_DIGITS else _NO_VALUE
    number = nearest(mantissa, power)
    cells[value] = bits(-number if is_negative else number)
    return at if number == number else _NO_VALUE


@kernel
def _digits(text, at: int, end: int, mantissa) -> Any:
    """Append the digits at this place, modulo 2**64; return the number, and the end of the digits."""
    while at < end:
        digit = np.int64(text[at]) - _DIGIT_ZERO
        if digit < 0 or digit > 9:
            break
        mantissa = mantissa * np.uint64(10) + np.uint64(digit)
        at += 1
    return mantissa, at


@kernel
def _power(text, at: int, end: int) -> Any:
    """Return the power of ten at this place and its end; the end is -1 if it is invalid or too long."""
    is_negative = at < end and np.int64(text[at]) == _MINUS
    if is_negative or (at < end and np.int64(text[at]) == _PLUS):
        at += 1
    power, stop = _digits(text, at, end, np.uint64(0))
    if stop == at or stop - at > MAX_POWER_DIGITS:
        return 0, _NO_VALUE
    return (-np.int64(power) if is_negative else np.int64(power)), stop


@kernel("int64(Array(uint8, 1, 'C', readonly=True), int64[::1], int64[::1], int32[::1], int64[::1])")
def text_codes(text, spans, table, codes, distinct) -> int:
    """Give equal texts equal codes, in order of first occurrence; return how many codes there are.

    `spans` is int64[n], as written by `scan`, -1: no text; `table` is int64[2**k] with more than n cells, all
    -1, and is overwritten; `codes` is int32[n], -1 for no text; `distinct` is int64[n], a span of each code.
    """
    bytes_ = start_of(text)
    mask = len(table) - 1
    found = 0
    for i in range(len(spans)):
        span = spans[i]
        if span < 0:
            codes[i] = -1
            continue
        start, n = span >> LENGTH_BITS, span & ((1 << LENGTH_BITS) - 1)
        # FNV-1a; a sender of texts that collide slows down only their own run, by a factor of its length.
        key = np.uint64(14695981039346656037)
        for at in range(start, start + n):
            key = (key ^ np.uint64(bytes_[at])) * np.uint64(1099511628211)
        place = np.int64((key ^ (key >> np.uint64(32))) & np.uint64(mask))
        while True:
            code = table[place]
            if code < 0:
                table[place] = found
                distinct[found] = span
                codes[i] = found
                found += 1
                break
            if _equal(bytes_, distinct[code], start, n):
                codes[i] = code
                break
            place = (place + 1) & mask
    return found


@kernel("void(int32[::1], int64[::1], int32[::1], int32[::1], int32[::1], int64[::1])")
def code_anew(codes, ends, place, own, order, counts) -> None:
    """Number the codes of each part by first occurrence.

    `codes` is int32[n], -1: none; `ends` is int64[parts + 1], the start of each part and the end of the last.
    `place` is int32[all codes], all -1, and has the same values on return. `own` is int32[n], the new number
    of each, -1: none; `order` is int32[n], which holds, from the start of each part on, its codes by new
    number; `counts` is int64[parts], the number of these codes.
    """
    for part in range(len(counts)):
        start, found = ends[part], 0
        for i in range(start, ends[part + 1]):
            code = codes[i]
            if code >= 0 and place[code] < 0:
                place[code] = found
                order[start + found] = code
                found += 1
            own[i] = place[code] if code >= 0 else -1
        counts[part] = found
        for i in range(found):
            place[order[start + i]] = -1


@kernel
def _equal(text, span: int, start: int, n: int) -> bool:
    """Whether the text of a span equals the n bytes at `start`."""
    other, length = span >> LENGTH_BITS, span & ((1 << LENGTH_BITS) - 1)
    return length == n and _behind(text, start, start + n, text, other, other + n) >= 0
