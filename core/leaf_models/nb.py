"""Naive Bayes at a leaf, on the leaf's observers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from core.kernels.jit import kernel, stay_apart
from core.layout.learning import Row, Work
from core.layout.plan import PlanRecord
from core.layout.tree import Leaf, Node, Tree
from core.leaf_models import mc
from core.leaf_models.base import LeafModel
from core.numeric.special import LN2, exp, log2
from core.observers import base as observers
from core.tree import quirks
from core.tree.statistics import is_active

log_densities_numeric, densities_numeric = observers.numeric_dispatcher()[-2:]
log_densities_nominal, densities_nominal = observers.nominal_dispatcher()[-2:]

# Kinds of scores: shares of classes (of a leaf that has observed nothing), products of densities, or
# logarithms of these
SHARES: Final = 0
PRODUCTS: Final = 1
LOGARITHMS: Final = 2

NO_HINT: Final = -1


@dataclass(frozen=True, slots=True)
class Plugin(LeafModel):
    """``ln π_c + Σ ln f(x_a | c)``: ``"leaf_model": "nb"``.

    π are the class masses of the leaf, with inherited mass (Gama, Rocha, Medas 2003). A leaf that has
    observed nothing votes like ``mc``.
    """


@kernel
def votes(plan: PlanRecord, p, tree: Tree, node: Node, row: Row, scratch, out) -> tuple[int, int]:
    """Write the posterior class probabilities."""
    best, form = scores(plan, p, tree, node, row, scratch, out)
    k = tree.model.classes
    if form == LOGARITHMS:
        raise_to_powers(out, k, best)
    if form != SHARES:
        normalise(out, k)
    return best, NO_HINT


@kernel
def scores(plan: PlanRecord, p, tree: Tree, node: Node, row: Row, scratch, out) -> tuple[int, int]:
    """Write the scores of the classes; return the best class, and LOGARITHMS, PRODUCTS or SHARES."""
    best, _ = mc.votes(plan, p, tree, node, row, scratch, out)
    if not is_active(node):
        return best, SHARES
    leaf = tree.leaf_of(node)
    if leaf.observed == 0.0:
        return best, SHARES
    k = tree.model.classes
    if plan.has(quirks.MULTIPLIED_DENSITIES):
        _multiply(plan, tree, leaf, k, row, out)
        return first_maximum(out, k), PRODUCTS
    take_logarithms(out, k)
    if plan.numeric > 0:
        numbers = plan.parameters(plan.numeric_observer_at)
        statistics = tree.numeric_statistics(plan, leaf)
        log_densities_numeric(plan.numeric_observer, plan, numbers, statistics, k, row.xs, scratch, out)
    if plan.nominal > 0:
        numbers = plan.parameters(plan.nominal_observer_at)
        statistics = tree.nominal_statistics(leaf)
        log_densities_nominal(plan.nominal_observer, plan, numbers, statistics, k, row.x, scratch, out)
    return first_maximum(out, k), LOGARITHMS


@kernel
def take_logarithms(values, k: int) -> None:
    """Replace values (float64[k]) by their natural logarithms, those that are not above 0 by -infinity."""
    if k == 2:  # the commonest case: side by side, in registers
        first, second = values[0], values[1]
        log_first, log_second = LN2 * log2(first), LN2 * log2(second)
        values[0] = log_first if first > 0.0 else -math.inf
        values[1] = log_second if second > 0.0 else -math.inf
        return
    for c in range(k):
        values[c] = LN2 * log2(values[c]) if values[c] > 0.0 else -math.inf


@kernel
def raise_to_powers(values, k: int, best: int) -> None:
    """Replace values (float64[k]) by e^(value - the largest); best: its index. 0 where that is no number."""
    top = values[best]
    if k == 2:  # the commonest case: the power of the largest needs no computation
        other = 1 - best
        values[other] = exp(values[other] - top)
        values[best] = 1.0 if top - top == 0.0 else 0.0
        return
    for c in range(k):
        values[c] = exp(values[c] - top)


@kernel
def _multiply(plan: PlanRecord, tree: Tree, leaf: Leaf, k: int, row: Row, out) -> None:
    """Multiply the class shares by the densities (MOA)."""
    if plan.numeric > 0:
        numbers = plan.parameters(plan.numeric_observer_at)
        statistics = tree.numeric_statistics(plan, leaf)
        densities_numeric(plan.numeric_observer, plan, numbers, statistics, k, row.xs, out)
    if plan.nominal > 0:
        numbers = plan.parameters(plan.nominal_observer_at)
        statistics = tree.nominal_statistics(leaf)
        densities_nominal(plan.nominal_observer, plan, numbers, statistics, k, row.x, out)


@kernel
def first_maximum(values, k: int) -> int:
    best, largest = 0, values[0]
    for c in range(1, k):
        if values[c] > largest:
            best, largest = c, values[c]
    return best


@kernel
def normalise(values, k: int) -> None:
    """Divide by the sum, unless the sum is 0."""
    total = 0.0
    for c in range(k):
        total += values[c]
    if total > 0.0:
        for c in range(k):
            values[c] /= total


@kernel
def account(plan: PlanRecord, p, tree: Tree, node: Node, row: Row, hint: int, work: Work) -> int:
    """Update nothing: the leaf model has no state."""
    if plan.judges != 0 and hint < 0:
        return prediction(plan, p, tree, node, row, work)
    return hint


@kernel
def prediction(plan: PlanRecord, p, tree: Tree, node: Node, row: Row, work: Work) -> int:
    """Return the class alone; scratch and the votes of the workspace are overwritten."""
    stay_apart()  # rarely called: most records were answered before they are learned
    for c in range(tree.model.classes):
        work.votes[c] = 0.0
    best, _ = scores(plan, p, tree, node, row, work.scratch, work.votes)
    return best
