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
from core.kernels.jit import bits, called, kernel, words_at
from core.kernels.records import Words
from core.layout.plan import PlanRecord
from core.learners.boct.parameters import BoctParameters
from core.numeric.credible import INSIDE, OUTSIDE, heterogeneity, middle_tail
from core.numeric.special import LN2, log2

# Bounds
CREDIBLE: Final = 0
HOEFFDING: Final = 1
THREE_INTERVAL: Final = 2
BOUNDS: Final = {"credible": CREDIBLE, "hoeffding": HOEFFDING, "three-interval": THREE_INTERVAL}

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
            table = _tables.get(key)
            if table is None:
                table = _tables[key] = BoundTable(1 if key is None else WORDS)
            return table


_sharing = threading.Lock()
_tables: weakref.WeakValueDictionary[tuple[int, float] | None, BoundTable] = weakref.WeakValueDictionary()


@kernel
def table_of(plan: PlanRecord) -> Words:
    """Return the words of the table of bounds that a plan uses."""
    ints, floats = words_at(plan.ints[plan.arrays])
    return Words(ints, floats, 0)


@called
def credible_bound(kind: int, delta: float, labels: int, fewer: int, is_lower: bool) -> float:
    """Compute ε(1 - δ) or ε(δ)."""
    return heterogeneity(
        kind, middle_tail(float(labels), float(fewer), delta, OUTSIDE if is_lower else INSIDE)
    )


@called
def cached_bound(p: BoctParameters, table: Words, labels: int, fewer: int, is_lower: bool) -> float:
    """Return a bound for more labels than the table has words for.

    The check word is made of the pair and the bound. If a thread reads while another thread writes, check
    word and bound do not fit, and the reader computes the bound.
    """
    pair = (labels << 32) + 2 * fewer + (1 if is_lower else 0)
    place = CACHE + 2 * ((labels * 40503 + 2 * fewer + (1 if is_lower else 0)) % CACHED)
    bound = table.floats[place + 1]
    if table.ints[place] != pair ^ bits(bound) or bound == 0.0:
        bound = credible_bound(int(p.heterogeneity), p.delta, labels, fewer, is_lower)
        table.floats[place + 1] = bound
        table.ints[place] = pair ^ bits(bound)
    return bound


@kernel
def known_bound(p: BoctParameters, table: Words, labels: int, fewer: int, is_lower: bool) -> float:
    """Return a credible bound from the table; a bound that is missing there is computed and stored."""
    if labels > LABELS:
        return cached_bound(p, table, labels, fewer, is_lower)
    place = (labels + 1) * (labels + 1) // 4 + fewer + (PAIRS if is_lower else 0)
    bound = table.floats[place]
    if bound == 0.0:
        bound = credible_bound(int(p.heterogeneity), p.delta, labels, fewer, is_lower)
        table.floats[place] = bound
    return bound


@kernel
def plain_bound(p: BoctParameters, labels: int, fewer: int, is_lower: bool) -> float:
    """Return the entropy in bits, plus or minus sqrt(ln(1/δ) / 2T) [D31].

    ``hoeffding`` subtracts the width from the entropy of the leaf only; ``three-interval`` also adds it to
    the entropy of each branch.
    """
    share = fewer / labels if labels > 0 else 0.0
    entropy = 0.0
    if share > 0.0:
        entropy = -share * log2(share) - (1.0 - share) * log2(1.0 - share)
    width = math.sqrt(p.logarithm / (2.0 * max(labels, 1)))
    if is_lower:
        return entropy - width
    return entropy + width if p.bound == THREE_INTERVAL else entropy


@kernel
def bound_of(p: BoctParameters, table: Words, labels: int, fewer: int, is_lower: bool) -> float:
    """Return the upper or the lower bound of a leaf's heterogeneity.

    labels: T; fewer: labels of the rarer class. Both bounds fall with a label of the other class (with any
    label if both classes have equal counts), and rise with a label of the rarer class. For Beta densities
    this holds because a label multiplies them by a function that moves |µ - ½| up or down.
    """
    if p.bound == CREDIBLE:
        return known_bound(p, table, labels, fewer, is_lower)
    return plain_bound(p, labels, fewer, is_lower)


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
def rough_bound(p: BoctParameters, table: Words, fewer: int, more: int) -> float:
    """Return a value not above the upper bound: the bound of counts rounded to the grid.

    The count of the rarer class is rounded down, the larger count up. Few pairs of the grid serve all pairs
    of counts, so that the bound is usually known already.
    """
    if p.bound != CREDIBLE:
        return plain_bound(p, fewer + more, fewer, False)
    above = point_above(more)
    if above >= POINTS:
        return known_bound(p, table, fewer + more, fewer, False)
    below = point_below(fewer)
    place = ROUGH + below * POINTS + above
    bound = table.floats[place]
    if bound == 0.0:
        count = count_at(below)
        bound = credible_bound(int(p.heterogeneity), p.delta, count + count_at(above), count, False)
        table.floats[place] = bound
    return bound


@kernel("float64(float64)", alone=True)
def logarithm(delta: float) -> float:
    """Return ln(1/δ)."""
    return -LN2 * log2(delta)
