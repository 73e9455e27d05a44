"""Texts: kernels that copy text and write whole numbers, which those that write records are made of."""

from __future__ import annotations

from typing import Final

from core.jit import kernel, start_of

NUMBER_BYTES: Final = 19
"""The longest whole number is 2^63 - 1."""
QUOTE: Final = 34
_BACKSLASH: Final = 92
_DIGIT_ZERO: Final = 48


@kernel("void(uint8[::1], int64[::1], uint8[::1], int64[::1])")
def write_numbered(head, numbers, out, starts) -> None:
    """Write n texts that are a head and a number, one behind the other.

    numbers: int64[n], none negative; out: uint8, room for n heads and n times NUMBER_BYTES; starts:
    int64[n + 1], where each begins.
    """
    start, to, at = start_of(head), start_of(out), 0
    for row in range(len(numbers)):
        starts[row] = at
        at = copied(start, 0, len(head), to, at)
        at = write_number(numbers[row], to, at)
    starts[len(numbers)] = at


@kernel
def copied(text, start: int, stop: int, to, at: int) -> int:
    """Copy a part of a text; return where it ends."""
    for i in range(stop - start):
        to[at + i] = text[start + i]
    return at + stop - start


@kernel
def end_of_string(text, at: int) -> int:
    """Return where the closing quote of a JSON string stands."""
    while text[at] != QUOTE:
        at += 2 if text[at] == _BACKSLASH else 1
    return at


@kernel
def write_number(number: int, to, at: int) -> int:
    """Write a whole number that is not negative; return where it ends."""
    digits, bound = 1, 10
    while digits < NUMBER_BYTES and number >= bound:
        digits += 1
        bound *= 10 if digits < NUMBER_BYTES else 1
    for place in range(at + digits - 1, at - 1, -1):
        rest = number // 10
        to[place] = _DIGIT_ZERO + number - 10 * rest
        number = rest
    return at + digits
