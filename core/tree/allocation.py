"""Allocation of words: aligned buffers, with reserved address space for buffers that keep growing."""

from __future__ import annotations

import mmap
from typing import Final

import numpy as np

from core.layout.model import WORD, Ints

CACHE_LINE: Final = 64
"""Bytes."""
_SPARE: Final = CACHE_LINE // WORD - 1


def aligned_words(words: int) -> Ints:
    """Return int64[words] of zeros that begin on a cache line."""
    return _aligned(np.zeros(words + _SPARE, dtype=np.int64))


def aligned_copy(words: Ints) -> Ints:
    """Return a copy of words (int64[n]) that begins on a cache line."""
    copy = _aligned(np.empty(len(words) + _SPARE, dtype=np.int64))
    copy[:] = words
    return copy


def _aligned(words: Ints) -> Ints:
    """Return the part without _SPARE words that begins on a cache line."""
    skip = (-words.ctypes.data % CACHE_LINE) // WORD
    return words[skip : skip + len(words) - _SPARE]


LARGE_BYTES: Final = 4 << 20
"""Size from which a buffer that needs room gets a reserve (``reserved_words``)."""

LEAST_RESERVE: Final = 256 << 20

RESERVE: Final = 4


def reserved_words(words: int, most_bytes: float) -> Ints:
    """Return at least int64[words] of zeros for a buffer that keeps growing: a large one gets a reserve.

    The reserve, up to ``most_bytes`` in total, is address space only: memory is allocated at the first write.
    An allocator would reuse freed memory, and clear all of it.
    """
    most = min(max(LEAST_RESERVE, RESERVE * words * WORD), int(most_bytes))
    if words * WORD < LARGE_BYTES or most <= words * WORD:
        return aligned_words(words)
    try:
        pages = mmap.mmap(-1, most - most % WORD, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError:  # address space is limited here
        return aligned_words(words)
    return np.frombuffer(pages, dtype=np.int64)
