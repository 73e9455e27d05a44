"""Descent of a record through the trees of a forest, and the sum of their votes."""

from __future__ import annotations

from typing import Any

import numpy as np

from core.kernels.jit import kernel, outlined
from core.layout.learning import NO_CLASS
from core.layout.plan import PlanRecord
from core.learners.ufft.layout import (
    BAYES,
    MAJORITY,
    PairForest,
    PairNode,
    pair_number,
    parameters_of,
    places_of,
)
from core.learners.ufft.node_statistics import log_odds, share_of, value_of
from core.numeric.idbd import idbd_predict
from core.numeric.moments import deviation, merged, standard_score


@kernel
def child_of(plan: PlanRecord, forest: PairForest, node: PairNode, x) -> int:
    """Return the number of the child that a record goes to from an inner node.

    A missing value goes to the child with the most labelled weight, of equals to the left one [D10].
    """
    value = value_of(plan, forest, x, node.column)
    if value - value != 0.0:
        left, right = forest.node(plan, node.left), forest.node(plan, node.right)
        return node.right if right.routed > left.routed else node.left
    return node.left if value <= node.cut else node.right


@kernel
def reaches(plan: PlanRecord, forest: PairForest, root: int, number: int, x) -> bool:
    """Return whether a record passes a node on its path from the root, both by number."""
    passed = root
    while passed != number:
        node = forest.node(plan, passed)
        if node.left < 0:
            return False
        passed = child_of(plan, forest, node, x)
    return True


@kernel
def voter_of(plan: PlanRecord, forest: PairForest, root: int, x) -> PairNode:
    """Return the node that answers: the last on the path that has learned."""
    node = forest.node(plan, root)
    voter = node
    while node.left >= 0:
        node = forest.node(plan, child_of(plan, forest, node, x))
        if node.weight > 0.0:
            voter = node
    return voter


@kernel
def write_inputs(plan: PlanRecord, forest: PairForest, node: PairNode, x, inputs) -> None:
    """Write 1 and the standard scores of a record in a node (inputs: float64[1 + column]); missing: 0."""
    statistics = node.statistics(plan)
    inputs[0] = 1.0
    for column in range(places_of(plan).columns):
        first, second = statistics.moments(column, 0), statistics.moments(column, 1)
        n, mean, m2 = merged(first.n, first.mean, first.m2, second.n, second.mean, second.m2)
        inputs[1 + column] = standard_score(value_of(plan, forest, x, column), mean, deviation(n, m2))


@kernel
def tree_share(plan: PlanRecord, forest: PairForest, root: int, x, inputs) -> float:
    """Return the probability of the first class of a pair by its tree."""
    node = voter_of(plan, forest, root, x)
    if node.weight <= 0.0:
        return 0.5
    model = parameters_of(plan).leaf_model
    if model == MAJORITY:
        return node.first_weight / node.weight
    if model == BAYES:
        return share_of(log_odds(plan, forest, node, x))
    write_inputs(plan, forest, node, x, inputs)
    return idbd_predict(node.floats, node.unit_start(plan), inputs, places_of(plan).inputs)


@kernel
def met_classes(plan: PlanRecord, forest: PairForest) -> tuple[int, int]:
    """Return how many classes have labels, and the first of them (-1: none)."""
    met, first = 0, -1
    for c in range(plan.classes):
        if forest.class_entry(plan, c).records > 0:
            met += 1
            first = c if first < 0 else first
    return met, first


@kernel("int64(PlanRecord, PairForest, CPointer(float64), CPointer(float64))", alone=True)
def fuse(plan: PlanRecord, forest: PairForest, x, shares) -> int:
    """Write the class shares, and return the class with the largest share, the lowest of equals.

    By the sum rule, the score of a class is the sum of its shares in the trees of its pairs, divided by the
    number of pairs; a pair without tree counts ½. If only one class has labels, there is no tree, and that
    class is returned.
    """
    k = forest.model.classes
    met, only = met_classes(plan, forest)
    if met <= 1:
        if met == 1:
            shares[only] = 1.0
            return only
        return 0 if k > 0 else NO_CLASS
    inputs = np.empty(places_of(plan).inputs)
    for j in range(1, k):
        for i in range(j):
            root = forest.pair(pair_number(i, j)).root
            share = 0.5
            if root >= 0:
                share = tree_share(plan, forest, root, x, inputs)
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
