"""Scoring: a record goes down all trees, whose predictions add up to the score of each class."""

from __future__ import annotations

from typing import Any, Final

from core.kernels.jit import kernel, outlined
from core.layout.learning import NO_CLASS
from core.layout.plan import PlanRecord
from core.leaf_models.nb import first_maximum, normalise
from core.learners.sgbt.layout import (
    Boosting,
    BoostNode,
    committees_of,
    parameters_of,
    places_of,
)
from core.numeric.special import exp

LEAST_SHARE: Final = 1e-4
"""Least probability of a class, and of the rest, from which targets are computed: they are at most 1e4."""
MOA_LEAST_SHARE: Final = 1e-15
"""The same with MOA's rules, which have no limit: a probability of 1 would make targets infinite."""


@kernel
def share_of(score: float) -> float:
    """Return the probability that belongs to a score: 1/(1 + e^-score)."""
    top = max(score, 0.0)
    own = exp(score - top)
    return own / (own + exp(-top))


@kernel
def child_of(plan: PlanRecord, boosting: Boosting, node: BoostNode, x) -> int:
    """Return the number of the child that a record goes to from an inner node.

    A missing value goes to the child with the most labelled weight, of equals to the left one [D10]; a
    nominal value that the model has not learned is missing.
    """
    order, is_missing, is_right = node.order, False, False
    if node.is_category != 0:
        value = x[plan.nominal_column(order).column]
        is_missing = not 0.0 <= value < boosting.model.values_seen(plan)[order]
        is_right = value == node.cut
    else:
        value = x[plan.numeric_column(order)]
        is_missing = value - value != 0.0
        is_right = value > node.cut
    if is_missing:
        is_right = boosting.node(plan, node.right).weight > boosting.node(plan, node.left).weight
    return node.right if is_right else node.left


@kernel
def leaf_of(plan: PlanRecord, boosting: Boosting, root: int, x) -> BoostNode:
    """Return the leaf where a record ends in the tree with this root."""
    node = boosting.node(plan, root)
    while node.left >= 0:
        node = boosting.node(plan, child_of(plan, boosting, node, x))
    return node


@kernel
def score_of(plan: PlanRecord, boosting: Boosting, committee: int, x) -> tuple[float, int]:
    """Return the score of a committee for a record, and how many of its trees are planted.

    MOA adds up the predictions without the learning rate, which its trees learn with.
    """
    members, p, score, planted = places_of(plan).members, parameters_of(plan), 0.0, 0
    for number in range(committee * members, (committee + 1) * members):
        root = boosting.entry(plan, number).root
        if root >= 0:
            planted += 1
            score += leaf_of(plan, boosting, root, x).value
    return score if p.moa != 0.0 else p.learning_rate * score, planted


@kernel("int64(PlanRecord, Boosting, CPointer(float64), CPointer(float64))", alone=True)
def score_record(plan: PlanRecord, boosting: Boosting, x, shares) -> int:
    """Write the class shares, and return the class with the largest share, the lowest of equals.

    With two classes the committee of the first class gives the shares of both. With more, the probabilities
    of all committees are divided by their sum; a class without trees has none. Before the first label no
    share is written.
    """
    k = boosting.model.classes
    if k == 0:
        return NO_CLASS
    if boosting.trees == 0:
        return 0
    if k == 1:
        shares[0] = 1.0
        return 0
    if k == 2:
        score, planted = score_of(plan, boosting, 0, x)
        shares[0] = share_of(score)
        shares[1] = share_of(-score)
    else:
        for c in range(committees_of(k)):
            score, planted = score_of(plan, boosting, c, x)
            shares[c] = share_of(score) if planted > 0 else 0.0
    best = first_maximum(shares, k)
    normalise(shares, k)
    return best


score_here: Any = outlined(score_record)
