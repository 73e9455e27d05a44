"""Isotonic: an increasing function through a bounded number of blocks of similar shares."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

from core.calibrators.base import Calibrator, kept
from core.kernels.jit import kernel, tail
from core.kernels.records import Record, word, words_after
from core.plugin import Parameters, count, number

PROBLEMS: Final = (
    "blocks must be from 0 to the most blocks",
    "blocks must have ascending shares from 0 to 1, finite weights above 0, and hits at most the weight",
    "fitted values must be from 0 to 1",
)

SHARE: Final = 0
"""Row of the blocks: mean share."""
WEIGHT: Final = 1
"""Row: weight of labels."""
HITS: Final = 2
"""Row: weight of labels of the class."""
FITTED: Final = 3
"""Row: probability at the mean share."""
ROWS: Final = 4

LEAST_WEIGHT: Final = 1e-12
"""A block that has been forgotten down to this weight is removed."""


class IsotonicState(Record):
    """The blocks in ascending order of their shares; each row has room for one block more than the most."""

    blocks: int = word("blocks in use")
    cells: Any = words_after(float, "rows SHARE … FITTED [blocks]")


@dataclass(frozen=True, slots=True)
class Plugin(Calibrator):
    """Isotonic regression on merged shares: ``{"name": "isotonic", "blocks": 24, "prior": 1.0}``.

    Pool adjacent violators (Ayer and others 1955; for calibration Zadrozny and Elkan 2002), linear between
    blocks. Up to ``blocks`` different shares it is the isotonic regression of all labels. Then the two
    neighbours are merged whose merging changes the shares least (Ward 1963). Each block counts its own share
    as ``prior`` labels more, without which few labels lead to probabilities of 0 and 1. 808 bytes by class.
    """

    blocks: int = count(24, at_least=2, at_most=1000)
    """Most blocks of a class."""
    prior: float = number(1.0, at_least=0.0, at_most=1e9)
    """Labels that the share of a block is worth."""

    def continues(self, before: Parameters) -> bool:
        """Return whether the blocks stay valid: their number determines their places."""
        return isinstance(before, Plugin) and before.blocks == self.blocks

    def initial(self) -> tuple[float, ...]:
        return (0.0,) * (IsotonicState.SIZE + ROWS * (self.blocks + 1))


@kernel
def row(p, state: IsotonicState, number: int) -> Any:
    """Return a row of the blocks."""
    return tail(state.cells, number * (int(p.blocks) + 1))


@kernel
def calibrated(p, state: IsotonicState, share: float) -> float:
    """Return the fitted value at a share, on the line between two blocks."""
    n, shares, fitted = state.blocks, row(p, state, SHARE), row(p, state, FITTED)
    if n == 0:
        return share
    if share <= shares[0]:
        return fitted[0]
    if share >= shares[n - 1]:
        return fitted[n - 1]
    low, high = 0, n - 1
    while high - low > 1:
        middle = (low + high) // 2
        if shares[middle] <= share:
            low = middle
        else:
            high = middle
    part = (share - shares[low]) / (shares[high] - shares[low])
    return fitted[low] + part * (fitted[high] - fitted[low])


@kernel
def learn(p, state: IsotonicState, share: float, is_class: float, weight: float) -> int:
    """Take in a label; merge two neighbours if there is one block too many; fit again."""
    forget(p, state)
    insert(p, state, share, is_class, weight)
    if state.blocks > p.blocks:
        merge(p, state, cheapest(p, state))
    fit(p, state)
    return 0


@kernel
def forget(p, state: IsotonicState) -> None:
    """Lower the weight of earlier labels; remove blocks without any."""
    factor = kept(p.memory)
    if factor == 1.0:
        return
    shares, weights, hits = row(p, state, SHARE), row(p, state, WEIGHT), row(p, state, HITS)
    n = 0
    for block in range(state.blocks):
        weight = weights[block] * factor
        if weight > LEAST_WEIGHT:
            shares[n], weights[n], hits[n] = shares[block], weight, min(hits[block] * factor, weight)
            n += 1
    state.blocks = n


@kernel
def insert(p, state: IsotonicState, share: float, is_class: float, weight: float) -> None:
    """Add a label to the block of exactly its share, or as a block of its own."""
    shares, weights, hits = row(p, state, SHARE), row(p, state, WEIGHT), row(p, state, HITS)
    place = state.blocks
    while place > 0 and shares[place - 1] >= share:
        place -= 1
    if place < state.blocks and shares[place] == share:
        weights[place] += weight
        hits[place] += weight * is_class
        return
    for block in range(state.blocks, place, -1):
        shares[block], weights[block] = shares[block - 1], weights[block - 1]
        hits[block] = hits[block - 1]
    shares[place], weights[place], hits[place] = share, weight, weight * is_class
    state.blocks += 1


@kernel
def cheapest(p, state: IsotonicState) -> int:
    """Return the block whose merging with the next one moves the shares least; the first of equal ones."""
    shares, weights = row(p, state, SHARE), row(p, state, WEIGHT)
    best, least = 0, math.inf
    for block in range(state.blocks - 1):
        gap = shares[block + 1] - shares[block]
        cost = gap * gap * weights[block] * weights[block + 1] / (weights[block] + weights[block + 1])
        if cost < least:
            best, least = block, cost
    return best


@kernel
def merge(p, state: IsotonicState, block: int) -> None:
    """Merge a block with the next one."""
    shares, weights, hits = row(p, state, SHARE), row(p, state, WEIGHT), row(p, state, HITS)
    total = weights[block] + weights[block + 1]
    part = weights[block + 1] / total
    mean = shares[block] + part * (shares[block + 1] - shares[block])
    shares[block] = min(max(mean, shares[block]), shares[block + 1])
    weights[block] = total
    hits[block] = min(hits[block] + hits[block + 1], total)
    for later in range(block + 1, state.blocks - 1):
        shares[later], weights[later] = shares[later + 1], weights[later + 1]
        hits[later] = hits[later + 1]
    state.blocks -= 1


@kernel
def fit(p, state: IsotonicState) -> None:
    """Pool adjacent violators: a pool has one fitted value, and ends before a block of a larger one."""
    fitted = row(p, state, FITTED)
    for block in range(state.blocks):
        start = block
        value = mean_of(p, state, block, block)
        while start > 0 and fitted[start - 1] >= value:
            before = fitted[start - 1]
            while start > 0 and fitted[start - 1] == before:
                start -= 1
            value = mean_of(p, state, start, block)
        for member in range(start, block + 1):
            fitted[member] = value


@kernel
def mean_of(p, state: IsotonicState, first: int, last: int) -> float:
    """Return the share of labels of the class in some blocks, with the prior of each."""
    shares, weights, hits = row(p, state, SHARE), row(p, state, WEIGHT), row(p, state, HITS)
    total, of_class = 0.0, 0.0
    for block in range(first, last + 1):
        total += weights[block] + p.prior
        of_class += hits[block] + p.prior * shares[block]
    return min(max(of_class / total, 0.0), 1.0)


@kernel
def problem(p, state: IsotonicState) -> int:
    """Check the number of blocks, which bounds all loops, and their order."""
    if not 0 <= state.blocks <= p.blocks:
        return 1
    shares, weights, hits = row(p, state, SHARE), row(p, state, WEIGHT), row(p, state, HITS)
    fitted, last = row(p, state, FITTED), -1.0
    for block in range(state.blocks):
        if not (last < shares[block] <= 1.0 and shares[block] >= 0.0):
            return 2
        if not 0.0 <= hits[block] <= weights[block] < math.inf or weights[block] == 0.0:
            return 2
        if not 0.0 <= fitted[block] <= 1.0:
            return 3
        last = shares[block]
    return 0
