"""Bounds of a leaf's heterogeneity, and a table of credible bounds that is filled on demand.

A bound depends on the number T of labels and on how many of them are of the rarer class. Up to T = 1,024 each
pair of counts has its own word. Pairs with more labels share a bounded cache, in which a newer pair replaces
an older one. The content of a word follows from its pair alone, so that the order and the threads in which
words are filled change nothing. A process has one table for each δ and heterogeneity, for any number of
models and schemas; it lives as long as a plan that uses it.
"""

from __future__ import annotations

import math
import threading
import weakref
from typing import Final

import numpy as np

from core.kernels import jit
from core.kernels.jit import bits, called, kernel
from core.numeric.credible import INSIDE, OUTSIDE, heterogeneity, middle_tail
from core.numeric.special import LN2, log2

# Bounds
CREDIBLE: Final = 0
HOEFFDING: Final = 1
THREE_INTERVAL: Final = 2
BOUNDS: Final = {"credible": CREDIBLE, "hoeffding": HOEFFDING, "three-interval": THREE_INTERVAL}

# Parameters from params[at] on
DELTA: Final = 0
BOUND: Final = 1
HETEROGENEITY: Final = 2
LOGARITHM: Final = 3  # ln(1/δ)
SIZES: Final = 4
CAPACITY: Final = 5
EXHAUSTIVE: Final = 6

LABELS: Final = 1024
"""Largest number of labels whose pairs have their own words."""
PAIRS: Final = (LABELS + 2) * (LABELS + 2) // 4
CACHED: Final = 1 << 16
"""Number of cached bounds of pairs with more labels; each has a check word and the bound."""
CACHE: Final = 2 * PAIRS
ROUGH: Final = CACHE + 2 * CACHED
"""Upper bounds on a grid of counts: labels of the rarer class by labels of the other class."""
EXACT: Final = 256
STEP_BITS: Final = 7
STEPS: Final = 1 << STEP_BITS
OCTAVES: Final = 12
POINTS: Final = EXACT + OCTAVES * STEPS
"""Points of the grid: all counts below EXACT, then 128 in each octave, up to a million."""
WORDS: Final = ROUGH + POINTS * POINTS

_SHIFT: Final = 52 - STEP_BITS
_FIRST_OCTAVE: Final = (1023 + 8) << STEP_BITS  # where the exponent of EXACT begins in a float's leading bits


class BoundTable:
    """Words that kernels read and fill: float64[upper: pair | lower: pair | cache | grid]; 0: not known."""

    def __init__(self, words: int) -> None:
        # Pages that were never written take no memory.
        self.words = np.zeros(words, dtype=np.int64)
        self.address = int(self.words.ctypes.data)
        jit.register(self.words)

    @staticmethod
    def of(bound: int, heterogeneity: int, delta: float) -> BoundTable:
        """Return the table of a kind of bound; kinds with a plain formula share an empty table."""
        key = (heterogeneity, delta) if bound == CREDIBLE else None
        with _sharing:
            found = _tables.get(key)
            if found is None:
                found = _tables[key] = BoundTable(1 if key is None else WORDS)
            return found


_sharing = threading.Lock()
_tables: weakref.WeakValueDictionary[tuple[int, float] | None, BoundTable] = weakref.WeakValueDictionary()


@called
def credible_bound(kind: int, delta: float, labels: int, fewer: int, is_lower: bool) -> float:
    """Compute ε(1 - δ) or ε(δ)."""
    return heterogeneity(
        kind, middle_tail(float(labels), float(fewer), delta, OUTSIDE if is_lower else INSIDE)
    )


@called
def cached_bound(params, at: int, words, values, labels: int, fewer: int, is_lower: bool) -> float:
    """Return a bound for more labels than the table has words for.

    The check word is made of the pair and the bound. If a thread reads while another thread writes, check
    word and bound do not fit, and the reader computes the bound.
    """
    pair = (labels << 32) + 2 * fewer + (1 if is_lower else 0)
    place = CACHE + 2 * ((labels * 40503 + 2 * fewer + (1 if is_lower else 0)) % CACHED)
    found = values[place + 1]
    if words[place] != pair ^ bits(found) or found == 0.0:
        found = credible_bound(int(params[at + HETEROGENEITY]), params[at + DELTA], labels, fewer, is_lower)
        values[place + 1] = found
        words[place] = pair ^ bits(found)
    return found


@kernel
def known_bound(params, at: int, words, values, labels: int, fewer: int, is_lower: bool) -> float:
    """Return a credible bound from the table; a bound that is missing there is computed and stored."""
    if labels > LABELS:
        return cached_bound(params, at, words, values, labels, fewer, is_lower)
    place = (labels + 1) * (labels + 1) // 4 + fewer + (PAIRS if is_lower else 0)
    found = values[place]
    if found == 0.0:
        found = credible_bound(int(params[at + HETEROGENEITY]), params[at + DELTA], labels, fewer, is_lower)
        values[place] = found
    return found


@kernel
def plain_bound(params, at: int, labels: int, fewer: int, is_lower: bool) -> float:
    """Return the entropy in bits, plus or minus sqrt(ln(1/δ) / 2T) (ALGORITHMS section 14) [D31].

    ``hoeffding`` subtracts the width from the entropy of the leaf only; ``three-interval`` also adds it to
    the entropy of each branch.
    """
    share = fewer / labels if labels > 0 else 0.0
    found = 0.0
    if share > 0.0:
        found = -share * log2(share) - (1.0 - share) * log2(1.0 - share)
    width = math.sqrt(params[at + LOGARITHM] / (2.0 * max(labels, 1)))
    if is_lower:
        return found - width
    return found + width if params[at + BOUND] == THREE_INTERVAL else found


@kernel
def bound_of(params, at: int, words, values, labels: int, fewer: int, is_lower: bool) -> float:
    """Return the upper or the lower bound of a leaf's heterogeneity.

    words, values: the table; labels: T; fewer: labels of the rarer class. Both bounds fall with a label of
    the other class (with any label if both classes have equal counts), and rise with a label of the rarer
    class. For Beta densities this holds because a label multiplies them by a function that moves |µ - ½| up
    or down.
    """
    if params[at + BOUND] == CREDIBLE:
        return known_bound(params, at, words, values, labels, fewer, is_lower)
    return plain_bound(params, at, labels, fewer, is_lower)


@kernel
def point_below(count: int) -> int:
    """Return the number of the largest point of the grid that is at most a count."""
    return count if count < EXACT else EXACT + (bits(float(count)) >> _SHIFT) - _FIRST_OCTAVE


@kernel
def point_above(count: int) -> int:
    """Return the number of the smallest point of the grid that is at least a count."""
    return count if count <= EXACT else point_below(count - 1) + 1


@kernel
def count_at(point: int) -> int:
    """Return the count at a point of the grid."""
    if point < EXACT:
        return point
    octave, step = (point - EXACT) // STEPS, (point - EXACT) % STEPS
    return (STEPS + step) << (octave + 1)


@kernel
def rough_bound(params, at: int, words, values, fewer: int, more: int) -> float:
    """Return a value not above the upper bound: the bound of counts rounded to the grid.

    The count of the rarer class is rounded down, the larger count up. Few pairs of the grid serve all pairs
    of counts, so that the bound is usually known already.
    """
    if params[at + BOUND] != CREDIBLE:
        return plain_bound(params, at, fewer + more, fewer, False)
    above = point_above(more)
    if above >= POINTS:
        return known_bound(params, at, words, values, fewer + more, fewer, False)
    below = point_below(fewer)
    place = ROUGH + below * POINTS + above
    found = values[place]
    if found == 0.0:
        count = count_at(below)
        kind, delta = int(params[at + HETEROGENEITY]), params[at + DELTA]
        found = credible_bound(kind, delta, count + count_at(above), count, False)
        values[place] = found
    return found


@kernel("float64(float64)", alone=True)
def logarithm(delta: float) -> float:
    """Return ln(1/δ)."""
    return -LN2 * log2(delta)
