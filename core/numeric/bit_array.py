"""Bits in integer words, 32 in a word: windows of errors take little room in a model."""

from __future__ import annotations

from typing import Any, Final

from core.kernels.jit import kernel

PER_WORD: Final = 32


def words_for(bits: int) -> int:
    """Return how many words hold this many bits."""
    return -(-bits // PER_WORD)


@kernel
def bit(words: Any, at: int) -> int:
    """Return a bit, 0 or 1; words: int64[n]."""
    return (words[at >> 5] >> (at & 31)) & 1


@kernel
def set_bit(words: Any, at: int, is_one: bool) -> None:
    """Write a bit; words: int64[n]."""
    mask = 1 << (at & 31)
    if is_one:
        words[at >> 5] |= mask
    else:
        words[at >> 5] &= ~mask
