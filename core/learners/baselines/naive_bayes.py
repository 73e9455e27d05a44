"""Naive Bayes over the whole stream: normal distributions of numbers, counts of values, by class."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from core.kernels.jit import kernel
from core.layout.learning import LEARNED
from core.layout.model import Block, Floats, Ints, model_of
from core.layout.plan import PlanRecord
from core.leaf_models.nb import first_maximum, normalise
from core.learners.arrays import Array, ArrayLearner, array_at
from core.learners.baselines.majority_class import COUNTS, largest_class
from core.numeric.special import LN2, exp, log2
from core.observers import gaussian
from core.observers.gaussian import (
    GaussianStatistics,
    densities_numeric,
    log_densities_numeric,
    update_numeric,
)
from core.observers.nominal import NominalCounts, densities_nominal, log_densities_nominal, update_nominal
from core.plugin import choice
from core.tree import quirks
from core.tree.statistics import add_weight

# Numbers of the arrays after COUNTS
NUMERIC: Final = 1
NOMINAL: Final = 2


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
        Array("nominal", ("class", "value"), at_least=0.0),
    )

    def write_plan(self, ints: Ints, floats: Floats, dims: Any, blocks: Any) -> None:
        PlanRecord(ints, floats, 0).quirks = quirks.OF_COMPAT[self.compat]


@kernel
def numeric_statistics(plan, block: Block) -> GaussianStatistics:
    array = array_at(plan, block, NUMERIC)
    return GaussianStatistics(array.ints, array.floats, array.start)


@kernel
def nominal_statistics(plan, block: Block) -> NominalCounts:
    array = array_at(plan, block, NOMINAL)
    return NominalCounts(array.ints, array.floats, array.start)


@kernel
def answer(plan, block: Block, place: int, row, prepared: int, scratch, shares) -> tuple[int, int, int]:
    """Write the posterior class probabilities; before the first label there are none."""
    counts, k = array_at(plan, block, COUNTS).numbers, model_of(block).classes
    best = largest_class(plan, block, shares)
    if best < 0 or counts[best] <= 0.0:
        return best, 0, -1
    numeric, nominal = numeric_statistics(plan, block), nominal_statistics(plan, block)
    p = plan.parameters(plan.learner_at)  # these kernels of the observers read no parameters
    if plan.has(quirks.MULTIPLIED_DENSITIES):
        if plan.numeric > 0:
            densities_numeric(plan, p, numeric, k, row.xs, shares)
        if plan.nominal > 0:
            densities_nominal(plan, p, nominal, k, row.x, shares)
        best = first_maximum(shares, k)
        normalise(shares, k)
        return best, 0, -1
    for c in range(k):
        shares[c] = LN2 * log2(shares[c]) if shares[c] > 0.0 else -math.inf
    if plan.numeric > 0:
        log_densities_numeric(plan, p, numeric, k, row.xs, scratch, shares)
    if plan.nominal > 0:
        log_densities_nominal(plan, p, nominal, k, row.x, scratch, shares)
    best = first_maximum(shares, k)
    top = shares[best]
    for c in range(k):
        shares[c] = exp(shares[c] - top)
    normalise(shares, k)
    return best, 0, -1


@kernel
def learn(plan, block: Block, place: int, row, hint: int, work) -> tuple[int, int]:
    counts, p = array_at(plan, block, COUNTS).numbers, plan.parameters(plan.learner_at)
    add_weight(counts, row.label, row.weight, model_of(block).labels)
    if plan.numeric > 0:
        update_numeric(plan, p, numeric_statistics(plan, block), row.label, row.xs, row.weight)
    if plan.nominal > 0:
        update_nominal(plan, p, nominal_statistics(plan, block), row.label, row.x, row.weight)
    return LEARNED, 0


@kernel
def uncertainty(plan, block: Block, place: int, shares, scratch, columns: int) -> tuple[float, float, float]:
    """Return the uncertainty of the posterior, and the weight of all labels."""
    counts = array_at(plan, block, COUNTS).numbers
    weight, largest, second = 0.0, 0.0, 0.0
    for c in range(model_of(block).classes):
        weight += counts[c]
        second = max(second, min(shares[c], largest))
        largest = max(largest, shares[c])
    if largest <= 0.0:
        return 0.5, 0.0, weight
    return largest, largest - second, weight
