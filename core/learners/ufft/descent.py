"""Descent of a record through the trees of a forest, and the sum of their votes."""

from __future__ import annotations

from typing import Any

import numpy as np

from core.kernels.jit import WORDS, kernel, outlined
from core.learners.ufft import layout as of
from core.learners.ufft.node_statistics import log_odds, share_of, value_of
from core.numeric.idbd import idbd_predict
from core.numeric.moments import deviation, merged, standard_score
from core.tree import layout as at


@kernel
def child_of(plan, ints, floats, t: int, node: int, x) -> int:
    """Return the number of the child that a record goes to from an inner node (its first word).

    A missing value goes to the child with the most labelled weight, of equals to the left one [D10].
    """
    left, right = ints[node + of.NODE_LEFT], ints[node + of.NODE_RIGHT]
    value = value_of(plan, ints, x, ints[node + of.NODE_COLUMN])
    if value - value != 0.0:
        came = floats[of.node_at(plan, t, right) + of.NODE_ROUTED]
        return right if came > floats[of.node_at(plan, t, left) + of.NODE_ROUTED] else left
    return left if value <= floats[node + of.NODE_CUT] else right


@kernel
def reaches(plan, ints, floats, t: int, root: int, number: int, x) -> bool:
    """Return whether a record passes a node on its path from the root."""
    here = root
    while here != number:
        node = of.node_at(plan, t, here)
        if ints[node + of.NODE_LEFT] < 0:
            return False
        here = child_of(plan, ints, floats, t, node, x)
    return True


@kernel
def voter_of(plan, ints, floats, t: int, root: int, x) -> int:
    """Return the first word of the node that answers: the last on the path that has learned."""
    node = of.node_at(plan, t, root)
    voter = node
    while ints[node + of.NODE_LEFT] >= 0:
        node = of.node_at(plan, t, child_of(plan, ints, floats, t, node, x))
        if floats[node + of.NODE_WEIGHT] + floats[node + of.NODE_WEIGHT + 1] > 0.0:
            voter = node
    return voter


@kernel
def write_inputs(plan, ints, floats, node: int, x, inputs) -> None:
    """Write 1 and the standard scores of a record in a node (inputs: float64[1 + column]); missing: 0."""
    statistics = node + of.place(plan, of.STATISTICS_AT)
    inputs[0] = 1.0
    for column in range(of.place(plan, of.COLUMNS)):
        here = statistics + column * of.COLUMN_WORDS
        other = here + of.STATISTICS
        n, mean, m2 = floats[here], floats[here + 1], floats[here + 2]
        n, mean, m2 = merged(n, mean, m2, floats[other], floats[other + 1], floats[other + 2])
        inputs[1 + column] = standard_score(value_of(plan, ints, x, column), mean, deviation(n, m2))


@kernel
def tree_share(plan, params, ints, floats, t: int, root: int, x, inputs) -> float:
    """Return the probability of the first class of a pair by its tree."""
    node = voter_of(plan, ints, floats, t, root, x)
    first, second = floats[node + of.NODE_WEIGHT], floats[node + of.NODE_WEIGHT + 1]
    if first + second <= 0.0:
        return 0.5
    model = of.parameter(plan, params, of.LEAF_MODEL)
    if model == of.MAJORITY:
        return first / (first + second)
    if model == of.BAYES:
        return share_of(log_odds(plan, params, ints, floats, t, node, x))
    write_inputs(plan, ints, floats, node, x, inputs)
    unit = node + of.place(plan, of.UNIT_AT)
    return idbd_predict(floats, unit, inputs, 1 + of.place(plan, of.COLUMNS))


@kernel
def met_classes(plan, ints, t: int) -> tuple[int, int]:
    """Return how many classes have labels, and the first of them (-1: none)."""
    found, first = 0, -1
    for c in range(plan[at.PLAN_CLASSES]):
        if ints[of.class_at(plan, t, c) + of.CLASS_RECORDS] > 0:
            found += 1
            first = c if first < 0 else first
    return found, first


@kernel(f"int64({WORDS}, int64, CPointer(float64), CPointer(float64))", alone=True)
def fuse(plan, params, ints, floats, t: int, x, shares) -> int:
    """Write the class shares, and return the class with the largest share, the lowest of equals.

    By the sum rule, the score of a class is the sum of its shares in the trees of its pairs, divided by the
    number of pairs; a pair without tree counts ½. If only one class has labels, there is no tree, and that
    class is returned.
    """
    k = ints[at.MODEL_CLASSES]
    met, only = met_classes(plan, ints, t)
    if met <= 1:
        if met == 1:
            shares[only] = 1.0
            return only
        return 0 if k > 0 else -1
    inputs = np.empty(1 + of.place(plan, of.COLUMNS))
    for j in range(1, k):
        for i in range(j):
            root = ints[of.pair_at(t, of.pair_number(i, j)) + of.ROOT]
            share = 0.5
            if root >= 0:
                share = tree_share(plan, params, ints, floats, t, root, x, inputs)
            shares[i] += share
            shares[j] += 1.0 - share
    best, pairs = 0, 0.5 * k * (k - 1)
    for c in range(k):
        if shares[c] > shares[best]:
            best = c
    for c in range(k):
        shares[c] /= pairs
    return best


fuse_here: Any = outlined(fuse)
