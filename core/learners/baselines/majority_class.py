"""Majority class: predicts the most frequent class, without features; the baseline of kappa M."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from core.kernels.jit import kernel
from core.learners.arrays import Array, ArrayLearner, array_at
from core.tree import layout as at
from core.tree.byoffset.statistics import add_weight, two_largest


@dataclass(frozen=True, slots=True)
class Plugin(ArrayLearner):
    """Predicts the class with the largest weight so far, the first of equal classes: ``"majority-class"``.

    A baseline (MOA's ``functions.MajorityClass``; Bifet, Holmes, Kirkby, Pfahringer 2010): its kappa M is 0.
    Its shares are the class shares of the labels.
    """

    arrays: ClassVar[tuple[Array, ...]] = (Array("counts", ("class",), at_least=0.0),)


@kernel
def answer(
    plan, params, ints, floats, t: int, place: int, x, xs, weight: float, prepared: int, scratch, shares
) -> tuple[int, int, int]:
    """Write the class shares and return the largest class; the place is always 0."""
    return largest_class(ints, floats, array_at(plan, t, 0), shares), 0, -1


@kernel
def largest_class(ints, floats, counts: int, shares) -> int:
    """Return the first class with the largest weight, -1 while none is known; write the shares."""
    best = 0 if ints[at.MODEL_CLASSES] > 0 else -1
    total = 0.0
    for c in range(ints[at.MODEL_CLASSES]):
        total += floats[counts + c]
        if floats[counts + c] > floats[counts + best]:
            best = c
    if total > 0.0:
        for c in range(ints[at.MODEL_CLASSES]):
            shares[c] = floats[counts + c] / total
    return best


@kernel
def learn(
    plan,
    params,
    ints,
    floats,
    t: int,
    place: int,
    x,
    xs,
    label: int,
    weight: float,
    hint: int,
    scratch,
    vote_buffer,
) -> tuple[int, int]:
    add_weight(floats, array_at(plan, t, 0) + label, weight, ints[at.MODEL_LABELS])
    return at.LEARNED, 0


@kernel
def uncertainty(
    plan, params, ints, floats, t: int, place: int, shares, scratch, columns: int
) -> tuple[float, float, float]:
    counts = array_at(plan, t, 0)
    total = 0.0
    for c in range(ints[at.MODEL_CLASSES]):
        total += floats[counts + c]
    if total <= 0.0:
        return 0.5, 0.0, 0.0
    largest, second = two_largest(ints, floats, counts)
    return largest / total, (largest - second) / total, total
