"""Sorting of numbers with their codes: numpy's stable order, whatever the number of values and ties."""

import numpy as np
import pytest

from core.numeric.sorting import sort_pairs
from tests.tiers import examples


@pytest.mark.parametrize("values", [1, 2, 5, 1000])
def test_the_order_is_that_of_a_stable_sort(values):
    draw = np.random.default_rng(values)
    for _ in range(examples(100)):
        n = int(draw.integers(0, 200))
        value, code = draw.integers(-values, values, n).astype(np.float64), np.arange(n)
        order = np.argsort(value, kind="stable")
        expected = value[order]
        sort_pairs(value, code, n, np.empty(n), np.empty(n, dtype=np.int64))
        assert (value == expected).all()
        assert (code == order).all()


def test_what_lies_in_order_is_left_alone():
    value, code = np.repeat([0.0, 1.0], 50), np.arange(100)
    space = np.full(100, -1.0)
    sort_pairs(value, code, 100, space, np.full(100, -1))
    assert (code == np.arange(100)).all()
    assert (space == -1.0).all(), "the space was not needed"
