"""Resampling at leaves: how often the leaf of an adaptive tree learns a record.

The number is a Poisson variate of mean 1, but at least 1: 1.367879 on average. It is a pure function of the
seed, the tree and the record, the same at the leaves of the main tree and of its alternate trees, so that
they are compared on the same records. MOA has a ``java.util.Random`` with seed 1 at each leaf.
"""

from __future__ import annotations

import math
from typing import Final

from core.kernels.jit import kernel
from core.layout.plan import BAGGED_MOA, BAGGED_ONCE, PlanRecord
from core.layout.tree import Subtree, Tree
from core.numeric import rng

_MULTIPLIER: Final = 0x5DEECE66D
_MASK: Final = (1 << 48) - 1
_SEEDED: Final = (1 ^ _MULTIPLIER) & _MASK
"""The state of ``new Random(1)``: a leaf stores its state xor this, so that a new leaf has zero."""

_MOST: Final = 100
_E: Final = math.e


@kernel
def times_over(plan: PlanRecord, tree: Tree, subtree: Subtree, serial: int) -> int:
    """Return how often a leaf learns the present record, 1 at least.

    subtree: the leaf's state; serial: number of the tree in its model.
    """
    if plan.leaf_bagging == BAGGED_ONCE:
        return 1
    if plan.leaf_bagging == BAGGED_MOA:
        return max(moa_poisson(next_double(subtree)), 1)
    counter = (tree.model.labels << rng.DRAW_BITS) + serial
    return max(rng.poisson(plan.leaf_bagging_key, counter, 1.0), 1)


@kernel
def next_bits(subtree: Subtree, width: int) -> int:
    """Return the next bits of the generator of a leaf, at most 32 of them."""
    # The product has more than 64 bits; only its lowest 48 count. Python's integers have any length.
    state = ((int(subtree.draws) ^ _SEEDED) * _MULTIPLIER + 0xB) & _MASK
    subtree.draws = state ^ _SEEDED
    return state >> (48 - width)


@kernel
def next_double(subtree: Subtree) -> float:
    """Return nextDouble(): uniform in [0, 1)."""
    high = next_bits(subtree, 26)
    return float((high << 27) + next_bits(subtree, 27)) * 2.0**-53


@kernel
def moa_poisson(u: float) -> int:
    """Return MOA's Poisson variate of mean 1 from a uniform."""
    share, below, k = 1.0, 1.0, 1
    while k < _MOST and below <= u * _E:
        share *= 1.0 / k
        below += share
        k += 1
    return k - 1
