"""UTF-8: kernels that check whether bytes are text, by table 3-7 of the Unicode Standard."""

from __future__ import annotations

import numpy as np

from core.kernels.jit import kernel

NO_CHARACTER = -1
_ASCII_END, _TWO, _THREE, _FOUR, _END = 0x80, 0xC2, 0xE0, 0xF0, 0xF5
_LOWEST, _HIGHEST = 0x80, 0xBF


@kernel
def behind_character(text, at: int, end: int) -> int:
    """Return the start of the next character; -1 if this one is invalid or cut off."""
    first = np.int64(text[at])
    if first < _ASCII_END:
        return at + 1
    if first < _TWO or first >= _END:
        return NO_CHARACTER
    size = 2 if first < _THREE else 3 if first < _FOUR else 4
    if end - at < size:
        return NO_CHARACTER
    low, high = _LOWEST, _HIGHEST
    if first == _THREE:  # the shortest spelling only
        low = 0xA0
    elif first == 0xED:  # no surrogates
        high = 0x9F
    elif first == _FOUR:
        low = 0x90
    elif first == _END - 1:  # up to U+10FFFF
        high = 0x8F
    second = np.int64(text[at + 1])
    if second < low or second > high:
        return NO_CHARACTER
    for other in range(at + 2, at + size):
        byte = np.int64(text[other])
        if byte < _LOWEST or byte > _HIGHEST:
            return NO_CHARACTER
    return at + size


@kernel
def is_text(text, at: int, end: int) -> bool:
    """Whether the bytes from `at` to before `end` are UTF-8."""
    while at < end:
        at = behind_character(text, at, end)
        if at < 0:
            return False
    return True
