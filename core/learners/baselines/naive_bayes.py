"""Naive Bayes over the whole stream: normal distributions of numbers, counts of values, by class."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from core.kernels.jit import kernel
from core.leaf_models.nb import first_maximum, normalise
from core.learners.arrays import Array, ArrayLearner, array_at
from core.learners.baselines.majority_class import largest_class
from core.numeric.special import LN2, exp, log2
from core.observers import gaussian, nominal
from core.plugin import choice
from core.tree import layout as at
from core.tree import quirks
from core.tree.byoffset.statistics import add_weight
from core.tree.layout import Floats, Ints


@dataclass(frozen=True, slots=True)
class Plugin(ArrayLearner):
    """``ln π_c + Σ ln f(x_a | c)`` with all learned records: ``"naive-bayes"``; it never grows or forgets.

    A baseline (MOA's ``bayes.NaiveBayes``; John and Langley 1995): it equals the leaf model ``nb`` in a tree
    of one leaf. Numbers have a normal distribution for each class, values of nominal attributes Laplace's
    shares; a missing value has no effect. Strategies use the shares of its answer.

    ``compat="moa"`` multiplies densities as MOA does, which may underflow, and takes the largest value seen
    with a class for the number of an attribute's values.
    """

    compat: str | None = choice(None, None, "moa")
    """The published code whose arithmetic is used."""

    arrays: ClassVar[tuple[Array, ...]] = (
        Array("counts", ("class",), at_least=0.0),
        Array("numeric", ("class", gaussian.STATISTICS, "numeric"), fill=gaussian.Plugin().clear),
        Array("nominal", ("class", "value")),
    )

    def write_plan(self, ints: Ints, floats: Floats, dims: Any, blocks: Any) -> None:
        ints[at.PLAN_QUIRKS] = quirks.OF_COMPAT[self.compat]


@kernel
def answer(
    plan, params, ints, floats, t: int, place: int, x, xs, weight: float, prepared: int, scratch, shares
) -> tuple[int, int, int]:
    """Write the posterior class probabilities; before the first label there are none."""
    counts, k = array_at(plan, t, 0), ints[at.MODEL_CLASSES]
    best = largest_class(ints, floats, counts, shares)
    if best < 0 or floats[counts + best] <= 0.0:
        return best, 0, -1
    numbers, values = array_at(plan, t, 1), array_at(plan, t, 2)
    if plan[at.PLAN_QUIRKS] & quirks.MULTIPLIED_DENSITIES != 0:
        if plan[at.PLAN_NUMERIC] > 0:
            gaussian.densities_numeric(plan, params, floats, numbers, k, xs, shares)
        if plan[at.PLAN_NOMINAL] > 0:
            nominal.densities_nominal(plan, params, ints, floats, values, k, x, shares)
        best = first_maximum(shares, k)
        normalise(shares, k)
        return best, 0, -1
    for c in range(k):
        shares[c] = LN2 * log2(shares[c]) if shares[c] > 0.0 else -math.inf
    if plan[at.PLAN_NUMERIC] > 0:
        gaussian.log_densities_numeric(plan, params, floats, numbers, k, xs, scratch, shares)
    if plan[at.PLAN_NOMINAL] > 0:
        nominal.log_densities_nominal(plan, params, ints, floats, values, k, x, scratch, shares)
    best = first_maximum(shares, k)
    top = shares[best]
    for c in range(k):
        shares[c] = exp(shares[c] - top)
    normalise(shares, k)
    return best, 0, -1


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
    if plan[at.PLAN_NUMERIC] > 0:
        gaussian.update_numeric(plan, params, floats, array_at(plan, t, 1), label, xs, weight)
    if plan[at.PLAN_NOMINAL] > 0:
        nominal.update_nominal(plan, params, ints, floats, array_at(plan, t, 2), label, x, weight)
    return at.LEARNED, 0


@kernel
def uncertainty(
    plan, params, ints, floats, t: int, place: int, shares, scratch, columns: int
) -> tuple[float, float, float]:
    """Return the uncertainty of the posterior, and the weight of all labels."""
    counts = array_at(plan, t, 0)
    weight, largest, second = 0.0, 0.0, 0.0
    for c in range(ints[at.MODEL_CLASSES]):
        weight += floats[counts + c]
        second = max(second, min(shares[c], largest))
        largest = max(largest, shares[c])
    if largest <= 0.0:
        return 0.5, 0.0, weight
    return largest, largest - second, weight
