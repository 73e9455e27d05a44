"""Majority class: predicts the most frequent class, without features; the baseline of kappa M."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from core.kernels.jit import kernel
from core.layout.learning import LEARNED, NO_CLASS
from core.layout.model import Block, model_of
from core.learners.arrays import Array, ArrayLearner, array_at
from core.tree.statistics import add_weight, two_largest

COUNTS: Final = 0
"""Number of the array of class weights."""


@dataclass(frozen=True, slots=True)
class Plugin(ArrayLearner):
    """Predicts the class with the largest weight so far, the first of equal classes: ``"majority-class"``.

    A baseline (MOA's ``functions.MajorityClass``; Bifet, Holmes, Kirkby, Pfahringer 2010): its kappa M is 0.
    Its shares are the class shares of the labels.
    """

    arrays: ClassVar[tuple[Array, ...]] = (Array("counts", ("class",), at_least=0.0),)


@kernel
def answer(plan, block: Block, place: int, row, prepared: int, scratch, shares) -> tuple[int, int, int]:
    """Write the class shares and return the largest class; the place is always 0."""
    return largest_class(plan, block, shares), 0, -1


@kernel
def largest_class(plan, block: Block, shares) -> int:
    """Return the first class with the largest weight, NO_CLASS while none is known; write the shares."""
    counts, k = array_at(plan, block, COUNTS).numbers, model_of(block).classes
    best = 0 if k > 0 else NO_CLASS
    total = 0.0
    for c in range(k):
        total += counts[c]
        if counts[c] > counts[best]:
            best = c
    if total > 0.0:
        for c in range(k):
            shares[c] = counts[c] / total
    return best


@kernel
def learn(plan, block: Block, place: int, row, hint: int, work) -> tuple[int, int]:
    counts = array_at(plan, block, COUNTS).numbers
    add_weight(counts, row.label, row.weight, model_of(block).labels)
    return LEARNED, 0


@kernel
def uncertainty(plan, block: Block, place: int, shares, scratch, columns: int) -> tuple[float, float, float]:
    counts, k = array_at(plan, block, COUNTS).numbers, model_of(block).classes
    total = 0.0
    for c in range(k):
        total += counts[c]
    if total <= 0.0:
        return 0.5, 0.0, 0.0
    largest, second = two_largest(counts, k)
    return largest / total, (largest - second) / total, total
