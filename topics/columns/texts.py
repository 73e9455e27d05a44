"""Texts: kernels that copy text and write whole numbers, used by the kernels that encode records."""

from __future__ import annotations

from typing import Final

from core.kernels.jit import kernel, start_of

NUMBER_BYTES: Final = 19
"""Digits of 2^63 - 1, the largest number."""
QUOTE: Final = 34
HAS_ESCAPES: Final = -1
_BACKSLASH: Final = 92
_SPACE, _COMMA, _OPEN_ARRAY, _CLOSE_ARRAY = 32, 44, 91, 93
_DIGIT_ZERO: Final = 48


@kernel("void(uint8[::1], int64[::1], uint8[::1], int64[::1])")
def write_numbered(head, numbers, out, starts) -> None:
    """Write n texts, each `head` and a number, directly after each other.

    `numbers` is int64[n], none negative. `out` is uint8 with room for n heads and n times NUMBER_BYTES.
    `starts` is int64[n + 1], the start of each text.
    """
    start, to, at = start_of(head), start_of(out), 0
    for row in range(len(numbers)):
        starts[row] = at
        at = copied(start, 0, len(head), to, at)
        at = write_number(numbers[row], to, at)
    starts[len(numbers)] = at


@kernel("int64(Array(uint8, 1, 'C', readonly=True), int64[::1], int64[::1], uint8[::1])")
def write_strings(text, starts, lengths, out) -> int:
    """Write n texts as a JSON array of strings; return its bytes, or HAS_ESCAPES if a text needs an escape.

    `text` is uint8 and holds the texts; `starts` and `lengths` are int64[n], with n at least 1. `out` is
    uint8 with room for all texts, three bytes more for each, and one.
    """
    start, to, at = start_of(text), start_of(out), 0
    to[0] = _OPEN_ARRAY
    for row in range(len(starts)):
        at += 1
        to[at] = QUOTE
        first, end = starts[row], starts[row] + lengths[row]
        for place in range(first, end):
            byte = start[place]
            if byte < _SPACE or byte in (QUOTE, _BACKSLASH):
                return HAS_ESCAPES
            to[at + 1 + place - first] = byte
        at += 1 + end - first
        to[at] = QUOTE
        at += 1
        to[at] = _COMMA
    to[at] = _CLOSE_ARRAY
    return at + 1


@kernel
def copied(text, start: int, stop: int, to, at: int) -> int:
    """Copy a part of a text; return the end of the copy."""
    for i in range(stop - start):
        to[at + i] = text[start + i]
    return at + stop - start


@kernel
def end_of_string(text, at: int) -> int:
    """Return the place of the closing quote of a JSON string."""
    while text[at] != QUOTE:
        at += 2 if text[at] == _BACKSLASH else 1
    return at


@kernel
def write_number(number: int, to, at: int) -> int:
    """Write a whole number that is not negative; return its end."""
    digits, bound = 1, 10
    while digits < NUMBER_BYTES and number >= bound:
        digits += 1
        bound *= 10 if digits < NUMBER_BYTES else 1
    for place in range(at + digits - 1, at - 1, -1):
        rest = number // 10
        to[place] = _DIGIT_ZERO + number - 10 * rest
        number = rest
    return at + digits
