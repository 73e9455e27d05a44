"""CART against an obvious twin that weighs all subtrees, and R's limits."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.batch.cart import Cart, CartTree
from core.errors import GroveError


def outline(tree: CartTree, node: int = 0):
    if tree.attribute[node] < 0:
        return tuple(map(int, tree.counts[node]))
    first = int(tree.first[node])
    return (
        int(tree.attribute[node]),
        float(tree.threshold[node]),
        outline(tree, first),
        outline(tree, first + 1),
    )


def twin(cart: Cart, rows: list[tuple[tuple[float, ...], int]], classes: int):
    """Return the outline of the pruned tree: every test tried, fractions, recursion."""
    root_errors = len(rows) - max(sum(label == c for _, label in rows) for c in range(classes))

    def purity(part) -> Fraction:
        counts = [sum(label == c for _, label in part) for c in range(classes)]
        return Fraction(sum(n * n for n in counts), max(len(part), 1))

    def grow(part, depth):
        counts = tuple(sum(label == c for _, label in part) for c in range(classes))
        cost = len(part) - max(counts) + Fraction(cart.cp) * root_errors
        if len(part) < cart.min_split or max(counts) == len(part) or depth == 30:
            return counts, cost
        best, best_test = purity(part), None
        for a in range(len(part[0][0])):
            values = sorted({x[a] for x, _ in part})
            for low, high in pairwise(values):
                middle = 0.5 * low + 0.5 * high
                sides = [r for r in part if r[0][a] <= middle], [r for r in part if r[0][a] > middle]
                gained = sum((purity(side) for side in sides), Fraction())
                if min(map(len, sides)) >= cart.min_bucket and gained > best:
                    best, best_test = gained, (a, middle, sides)
        if best_test is None:
            return counts, cost
        (left, one), (right, other) = (grow(side, depth + 1) for side in best_test[2])
        return (
            ((best_test[0], best_test[1], left, right), one + other) if one + other < cost else (counts, cost)
        )

    return grow(rows, 0)[0]


@given(
    st.integers(0, 10_000),
    st.integers(2, 3),
    st.sampled_from([(2, 1), (6, 2), (20, 7)]),
    st.sampled_from([0.0, 0.0625, 0.25]),
)
def test_the_tree_of_its_twin(seed, classes, least, cp):
    draw = np.random.default_rng(seed)
    x = draw.integers(0, 6, (40, 2)).astype(float)
    y = np.where(draw.random(40) < 0.7, (x[:, 0] > 2).astype(int), draw.integers(0, classes, 40))
    cart = Cart(min_split=least[0], min_bucket=least[1], cp=cp)
    wide = max(int(y.max()) + 1, 1)
    assert outline(cart.fit(x, y)) == twin(
        cart, [(tuple(row), int(c)) for row, c in zip(x.tolist(), y, strict=True)], wide
    )


def test_limits_of_a_node_and_of_a_leaf():
    x, y = np.arange(19.0)[:, None], (np.arange(19) > 9).astype(int)
    assert Cart().fit(x, y).leaves == 1, "19 rows are not split"
    x, y = np.arange(20.0)[:, None], (np.arange(20) >= 6).astype(int)
    tree = Cart().fit(x, y)
    assert tree.threshold[0] == 6.5, "a leaf of 6 is too small"
    assert tree.predict(np.array([[6.5], [6.6]])).tolist() == [0, 1]


def test_what_no_tree_can_be_made_of():
    with pytest.raises(GroveError, match=r"cp=2\.0 must be from 0 to 1"):
        Cart(cp=2.0)
    with pytest.raises(GroveError, match="min_bucket=0 at least 1"):
        Cart(min_bucket=0)
    with pytest.raises(GroveError, match="x must be finite"):
        Cart().fit(np.array([[np.nan]]), np.array([0]))
    with pytest.raises(GroveError, match=r"y\[2\] must be"):
        Cart().fit(np.array([[1.0]]), np.array([0, 1]))
